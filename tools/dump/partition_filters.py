"""Filters that need more than the log: the batches that a consumer gets, and the producer ids of a transactional id."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from logstore.audit.directory_audit import read_coordinators
from logstore.audit.evidence import Evidence
from logstore.audit.facts.coordinators import CoordinatorLog
from logstore.audit.facts.transactions import PartitionTransactions
from logstore.audit.log_pass import follow
from logstore.audit.partition import open_partition
from logstore.columns.batch_table import BatchTable, BoolArray, Int64Array
from logstore.errors import InvalidNameError, UsageError
from logstore.folds.committed_filter import is_in_aborted
from logstore.layout.batch import CONTROL_FLAG, MAGIC_V2
from logstore.topics.transaction_state import TOPIC


class ConsumedBatches(NamedTuple):
    """The batches that consumers of a partition get.

    Attributes:
        end_offset: consumers stop before it; None: at the end of the log.
        aborted: int64[n, 3]: producer id, first and last offset of aborted transactions, ascending.
    """

    end_offset: int | None
    aborted: Int64Array

    def rows(self, table: BatchTable) -> BoolArray:
        """Return which batches of a table consumers get, bool[count]; never control batches."""
        passes: BoolArray = (table.attributes & CONTROL_FLAG == 0) | (table.magic < MAGIC_V2)
        if self.end_offset is not None:
            passes &= table.last_offset < self.end_offset
        return passes & ~is_in_aborted(self.aborted, table)


OF_NO_PARTITION = ConsumedBatches(None, np.empty((0, 3), np.int64))


@lru_cache(maxsize=64)
def consumed_batches(directory: str, isolation_level: str) -> ConsumedBatches:
    """Return the batches that a consumer gets of the partition in `directory`.

    Args:
        isolation_level: `read_committed`; or `read_uncommitted`, which leaves out only control batches.

    Raises:
        UsageError: the directory is no partition's, so the ends of its transactions are unknown.
        DataDirectoryError: a segment cannot be read.
    """
    if isolation_level == "read_uncommitted":
        return OF_NO_PARTITION
    try:
        evidence = Evidence(open_partition(directory))
    except InvalidNameError as error:
        raise UsageError(
            "--isolation-level read_committed reads the partition's other segments too, and this is no partition",
            path=directory,
            expected="a directory with a name such as orders-0",
        ) from error
    history = PartitionTransactions(evidence)
    follow(evidence, [history])
    ranges = [
        (one.producer_id, one.first_offset, one.last_offset) for one in history.transactions if one.outcome == "aborted"
    ]
    return ConsumedBatches(history.last_stable_offset, np.array(sorted(ranges), np.int64).reshape(-1, 3))


@lru_cache(maxsize=64)
def producer_ids_of(root: str, transactional_id: str) -> frozenset[int]:
    """Return the producer ids that a transactional id has or had in the data directory at `root`.

    Raises:
        UsageError: no `__transaction_state` is there, or it does not know the id.
    """
    log = read_coordinators(root)[0] if os.path.isdir(root) else CoordinatorLog()
    found = frozenset(producer_id for producer_id, owner in log.owners.items() if owner == transactional_id)
    if not found:
        known = ", ".join(sorted(set(log.owners.values()))) or "none"
        raise UsageError(
            "No coordinator in the data directory knows the transactional id",
            path=root,
            expected=f"one of {known}" if log.history else f"partitions of {TOPIC}",
            found=transactional_id if log.history else "none",
            advice="--producer-id needs no coordinator",
        )
    return found
