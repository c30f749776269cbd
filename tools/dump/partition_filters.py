"""Filters that need more than the log: the batches that a consumer gets, and the producer ids of a transactional id.

Of logs that do not change, both are asked once for all segments of a partition. Of logs that are followed, each look
asks anew; what was read of a partition is kept, so that a look reads only what is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from glob import escape, glob
from typing import NamedTuple

import numpy as np

from logstore.audit.directory_audit import read_coordinators
from logstore.audit.evidence import Evidence
from logstore.audit.facts.coordinators import CoordinatorLog
from logstore.audit.facts.transactions import PartitionTransactions
from logstore.audit.log_pass import follow
from logstore.audit.partition import open_partition
from logstore.columns.batch_table import BatchTable, BoolArray, Int64Array
from logstore.disk.files import file_size
from logstore.disk.paths import is_directory
from logstore.errors import InvalidNameError, LogstoreError, UsageError
from logstore.folds.committed_filter import is_in_aborted
from logstore.layout.batch import CONTROL_FLAG, MAGIC_V2
from logstore.layout.file_names import LOG_SUFFIX
from logstore.topics.transaction_state import TOPIC
from logstore.view.partition_reader import PartitionReader

_FOLLOWED_COUNT_MAX = 4096  # partitions; of the others each look reads more than what is new


class ConsumedBatches(NamedTuple):
    """The batches that consumers of a partition get.

    Attributes:
        end_offset: consumers stop before it; None: at the end of the log.
        aborted: int64[n, 3]: producer id, first and last offset of aborted transactions, ascending.
        problem: why nothing is known of batches from `end_offset` on; None if their transactions are still open.
    """

    end_offset: int | None
    aborted: Int64Array
    problem: LogstoreError | None = None

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
        raise _no_partition(directory) from error
    history = PartitionTransactions(evidence)
    follow(evidence, [history])
    ranges = [
        (one.producer_id, one.first_offset, one.last_offset) for one in history.transactions if one.outcome == "aborted"
    ]
    return ConsumedBatches(history.last_stable_offset, np.array(sorted(ranges), np.int64).reshape(-1, 3))


def batches_consumed_now(directory: str, isolation_level: str) -> ConsumedBatches:
    """Return what `consumed_batches` does, of a partition that grows; raise too if it cannot be followed."""
    if isolation_level == "read_uncommitted":
        return consumed_batches(directory, isolation_level)
    try:
        reader = _reader(directory)
    except InvalidNameError as error:
        raise _no_partition(directory) from error
    reader.refresh()
    view = reader.view()
    indexes = [segment.transaction_index for segment in view.segments]
    aborted = [np.stack([one.producer_ids, one.first_offsets, one.last_offsets], axis=1) for one in indexes]
    ranges = np.concatenate(aborted) if aborted else np.empty((0, 3), np.int64)
    ranges = ranges[np.lexsort((ranges[:, 1], ranges[:, 0]))]
    return ConsumedBatches(view.bounds.last_stable_offset, ranges, reader.problem)


@lru_cache(maxsize=_FOLLOWED_COUNT_MAX)
def _reader(directory: str) -> PartitionReader:
    return PartitionReader(directory, holds_files=False)


def _no_partition(directory: str) -> UsageError:
    return UsageError(
        "--isolation-level read_committed reads the partition's other segments too, and this is no partition",
        path=directory,
        expected="a directory with a name such as orders-0",
    )


def producer_ids_now(root: str, transactional_id: str) -> frozenset[int]:
    """Return what `producer_ids_of` does, at this moment: with all ids that it had at an earlier look."""
    known = _followed_ids(root, transactional_id)
    sizes = {path: file_size(path) for path in glob(f"{escape(root)}/{TOPIC}-*/*{LOG_SUFFIX}")}
    if sizes != known.sizes:
        try:
            known.ids |= producer_ids_of.__wrapped__(root, transactional_id)
        except UsageError:  # the cleaner removes the records of an id that was forgotten
            if not known.ids:
                raise
        known.sizes = sizes
    return known.ids


@dataclass(slots=True)
class _FollowedIds:
    ids: frozenset[int] = frozenset()
    sizes: dict[str, int] | None = None  # of the logs of the coordinators at the last look


@lru_cache(maxsize=_FOLLOWED_COUNT_MAX)
def _followed_ids(root: str, transactional_id: str) -> _FollowedIds:
    return _FollowedIds()


@lru_cache(maxsize=64)
def producer_ids_of(root: str, transactional_id: str) -> frozenset[int]:
    """Return the producer ids that a transactional id has or had in a data directory; UsageError for an unknown one."""
    log = read_coordinators(root)[0] if is_directory(root) else CoordinatorLog()
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
