"""What the partition around a log says of its batches: which a consumer gets, and whose a producer id is."""

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
from logstore.disk.names import absolute_path, parent
from logstore.errors import InvalidNameError, UsageError
from logstore.folds.committed_filter import is_in_aborted
from logstore.layout.batch import CONTROL_FLAG, MAGIC_V2
from logstore.topics.transaction_state import TOPIC


class ConsumedBatches(NamedTuple):
    """What consumers of a partition get.

    Attributes:
        end_offset: where they stop, exclusive; None: at the end of the log.
        aborted: int64[n, 3]: producer id, first and last offset of aborted transactions, ascending.
    """

    end_offset: int | None
    aborted: Int64Array

    def rows(self, table: BatchTable) -> BoolArray:
        """Return which batches of a table they get: bool[count]. Never control batches."""
        passes: BoolArray = (table.attributes & CONTROL_FLAG == 0) | (table.magic < MAGIC_V2)
        if self.end_offset is not None:
            passes &= table.last_offset < self.end_offset
        return passes & ~is_in_aborted(self.aborted, table)


def consumed_batches(path: str, isolation_level: str) -> ConsumedBatches:
    """Return what a consumer gets of the partition that the log at `path` is of.

    Args:
        isolation_level: `read_committed`, or `read_uncommitted`, for which nothing but control batches is left out.

    Raises:
        UsageError: the log is in no partition's directory, so nobody knows how its transactions ended.
        DataDirectoryError: a segment cannot be read.
    """
    if isolation_level == "read_uncommitted":
        return ConsumedBatches(None, np.empty((0, 3), np.int64))
    return _committed_batches(parent(absolute_path(path)))


@lru_cache(maxsize=64)
def _committed_batches(directory: str) -> ConsumedBatches:
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


def producer_ids_of(path: str, transactional_id: str) -> frozenset[int]:
    """Return the producer ids that a transactional id has or had, in the data directory around the log at `path`.

    Raises:
        UsageError: no `__transaction_state` is there, or it does not know the id.
    """
    return _producer_ids(parent(parent(absolute_path(path))), transactional_id)


@lru_cache(maxsize=64)
def _producer_ids(root: str, transactional_id: str) -> frozenset[int]:
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
