"""`leader-epoch-checkpoint` beside the epochs that batches have (`LeaderEpochFileCache`, KIP-101).

The checkpoint must give each batch, by its offset, the epoch that it has. Batches below the first entry are skipped if
the log start may have been above them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray, Int64Array
from ...disk.side_files import read_leader_epoch_checkpoint
from ...errors import CheckpointFormatError, DataDirectoryError
from ...layout import leader_epoch_checkpoint
from ...layout.file_names import METADATA_TOPIC
from ..cluster import Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import Broken, Rule, Silence
from ..partition import unless_gone
from .batches import DAMAGED, EACH_OFFSET, ERROR, UNSETTLED, log_leader_epoch, offsets_lost
from .checkpoints import checkpoint_format

START_UNKNOWN = Silence.START_UNKNOWN

leader_epochs = Rule(
    "leader-epochs",
    ERROR,
    "`leader-epoch-checkpoint` does not tell the epochs that the batches have.",
    "replicas truncate by it: stop the broker, `logstore repair`",
    (START_UNKNOWN, DAMAGED),
)
metadata_behind = Rule(
    "metadata-behind",
    ERROR,
    "A closed log has leader epochs or producer ids that the cluster's metadata has not given out yet.",
    "was `__cluster_metadata` put back from an older copy, or this partition brought from another cluster?",
    (UNSETTLED,),
)


class EpochCheckpoint(Follower):
    """Compares the checkpoint with the epochs of batches."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._path = evidence.partition.files.files.get(leader_epoch_checkpoint.FILE_NAME)
        self._is_compared = False
        self._epochs, self._starts = np.empty((2, 0), np.int64)
        self._disordered: tuple[Int64Array, Int64Array] | None = None  # the first entry that does not ascend
        # by the epoch of a batch and that of the checkpoint (None without one): path and offset of the first
        self._wrong: dict[tuple[int, int | None], tuple[str, int]] = {}

    def start(self) -> Iterator[Broken]:
        try:
            entries = [] if self._path is None else unless_gone(read_leader_epoch_checkpoint, self._path)
        except (CheckpointFormatError, DataDirectoryError) as error:
            yield checkpoint_format.by(error, self._evidence.partition.where(self._path), "epochs and start offsets")
            return
        self._is_compared = entries is not None
        pairs = np.array([(-1, -1), *(entries or [])], np.int64)
        for row in np.flatnonzero((np.diff(pairs, axis=0) <= 0).any(axis=1))[:1].tolist():
            self._disordered = pairs[row], pairs[row + 1]
        self._epochs, self._starts = pairs[1:].T

    def step(self, batches: AuditedBatches) -> Iterator[Broken]:
        if not self._is_compared or self._disordered:
            return
        is_asked = batches.is_v2 & (batches.base >= self._evidence.partition.first_offset)
        entries = np.searchsorted(self._starts, batches.base, side="right") - 1
        known = np.concatenate([self._epochs, [-1]])[entries]  # the last one is that of batches below all entries
        if self._path is not None:
            is_below = is_asked & self._is_below(batches)
            self._evidence.note(leader_epochs, START_UNKNOWN, is_below & (known != batches.epochs))
            is_asked &= ~is_below
        has_none = is_asked & (batches.epochs < 0) & (known != batches.epochs)
        for row in np.flatnonzero(has_none & (batches.epoch_before < 0)).tolist():  # else it goes back, as any may
            expected = f"epoch {known[row]}, as {leader_epoch_checkpoint.FILE_NAME} has"
            yield log_leader_epoch.at(batches.where(row), expected, int(batches.epochs[row]))
        rows = np.flatnonzero(is_asked & ~has_none & (known != batches.epochs))
        pairs = np.stack([batches.epochs[rows], known[rows]])
        # of batches with the same pair the first tells
        for row in rows[np.append(True, (np.diff(pairs) != 0).any(axis=0))[: rows.size]].tolist():
            pair = int(batches.epochs[row]), None if known[row] < 0 else int(known[row])
            self._wrong.setdefault(pair, (self._path or batches.segment.log, int(batches.base[row])))

    def finish(self) -> Iterator[Broken]:
        yield from self._lost_behind_start()
        partition, evidence = self._evidence.partition, self._evidence
        if self._disordered is not None:
            (epoch_before, start_before), (epoch, start) = self._disordered
            expected = f"an epoch and an offset above {epoch_before} and {start_before}"
            yield leader_epochs.at(partition.where(self._path), expected, f"{epoch} and {start}")
        for (epoch, known), (path, offset) in self._wrong.items():
            found = "no epoch" if known is None else f"epoch {known}"
            yield leader_epochs.at(partition.where(path, offset=offset), f"epoch {epoch}, which the batch has", found)
        end = evidence.log_end_offset
        if (self._starts[-1:] > end).any():
            where, found = partition.where(self._path, offset=int(self._starts[-1])), f"epoch {self._epochs[-1]}"
            expected = f"epochs that begin up to {end}, where the log ends"
            silence = None if evidence.is_start_known else START_UNKNOWN
            silence = silence if evidence.is_end_known else DAMAGED
            yield leader_epochs.at(where, expected, f"{found} from {where.offset} on", silence)
        yield from self._newer()

    def _lost_behind_start(self) -> Iterator[Broken]:
        """Find epochs below the log start, which truncates them when it is raised (`truncateFromStart`)."""
        evidence, first, start = self._evidence, self._starts[:1], self._evidence.oldest_offset
        if self._disordered is None and (first < start).any():
            # its last segments were deleted just before it was closed: another thread flushes epochs
            is_deleted = any(first[0] <= offset < start for offset in evidence.partition.deleted_base_offsets)
            silence = None if evidence.is_start_known and not is_deleted else START_UNKNOWN
            where, count = evidence.partition.where(self._path, offset=int(first[0])), start - int(first[0])
            found = f"none at {count} offsets up to {start - 1}, which are of its epochs"
            yield offsets_lost.at(where, EACH_OFFSET, found, silence)

    def _newer(self) -> Iterator[Broken]:
        """Tell the last epoch if batches agree, and the metadata that the broker led by, closed later, is behind."""
        partition, cluster = self._evidence.partition, self._evidence.cluster
        is_known = partition.is_live and cluster.has_partition(*partition.key) is Known.YES
        if self._wrong or self._disordered or not self._epochs.size or not is_known:
            return
        topic, number = partition.key
        known, epoch = cluster.image.topics[topic].partitions[number].leader_epoch, int(self._epochs[-1])
        if epoch > known:
            expected = f"epochs up to {known}, as {METADATA_TOPIC} has"
            silence = None if partition.surroundings.was_closed else UNSETTLED
            yield metadata_behind.at(partition.where(self._path), expected, f"epoch {epoch}", silence)

    def _is_below(self, batches: AuditedBatches) -> BoolArray:
        """Return which batches may have lost their epoch when the log start was raised above them.

        The first epoch then begins at the start (`truncateFromStart`). A crash may lose the start, since its checkpoint
        follows within a minute; if it was the end of the log, there is no epoch after the crash (`truncateFromEnd`)
        until the broker leads again, in a higher one, or a store writes in the one before.
        """
        evidence = self._evidence
        is_stopped = evidence.partition.surroundings.has_marker
        if not self._starts.size:  # the metadata log always has one: it is not cut off at its end behind a snapshot
            is_told = evidence.is_start_known and evidence.cluster.is_of_brokers
            is_told |= is_stopped and evidence.partition.files.topic == METADATA_TOPIC
            return np.full(batches.base.size, not is_told)
        if not evidence.may_have_begun_at(int(self._starts[0])):
            return np.zeros(batches.base.size, np.bool_)
        is_below: BoolArray = batches.base < self._starts[0]
        return is_below & (batches.epochs <= self._epochs[0]) if evidence.is_start_known else is_below
