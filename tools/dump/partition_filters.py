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
from logstore.layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from logstore.topics.transaction_state import TOPIC


class ConsumedBatches(NamedTuple):
    """What consumers of a partition get.

    Attributes:
        end_offset: where they stop, exclusive; None: at the end of the log.
        aborted: from producer id to the first and last offsets of its aborted transactions, int64[2, n], ascending.
    """

    end_offset: int | None
    aborted: dict[int, Int64Array]

    def rows(self, table: BatchTable) -> BoolArray:
        """Return which batches of a table they get: bool[count]. Never control batches."""
        passes: BoolArray = (table.attributes & CONTROL_FLAG == 0) | (table.magic < 2)
        if self.end_offset is not None:
            passes &= table.last_offset < self.end_offset
        is_transactional = (table.attributes & TRANSACTIONAL_FLAG != 0) & (table.magic >= 2)
        for producer_id in np.unique(table.producer_id[is_transactional]).tolist():
            if producer_id in self.aborted:
                firsts, lasts = self.aborted[producer_id]
                rows = np.flatnonzero(is_transactional & (table.producer_id == producer_id))
                offsets = table.base_offset[rows]
                numbers = np.searchsorted(firsts, offsets, "right") - 1
                passes[rows] &= (numbers < 0) | (lasts[numbers] < offsets)
        return passes


def consumed_batches(path: str, isolation_level: str) -> ConsumedBatches:
    """Return what a consumer gets of the partition that the log at `path` is of.

    Args:
        isolation_level: `read_committed`, or `read_uncommitted`, for which nothing but control batches is left out.

    Raises:
        UsageError: the log is in no partition's directory, so nobody knows how its transactions ended.
        DataDirectoryError: a segment cannot be read.
    """
    if isolation_level == "read_uncommitted":
        return ConsumedBatches(None, {})
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
    ranges: dict[int, list[tuple[int, int]]] = {}
    for one in history.transactions:
        if one.outcome == "aborted":
            ranges.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))
    aborted = {producer_id: np.array(sorted(found), np.int64).T for producer_id, found in ranges.items()}
    return ConsumedBatches(history.last_stable_offset, aborted)


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
