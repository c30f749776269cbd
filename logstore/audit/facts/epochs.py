"""`leader-epoch-checkpoint` beside the epochs that batches have (`LeaderEpochFileCache`, KIP-101).

The checkpoint must give each batch, by its offset, the epoch that it has. Batches below the first entry are skipped if
the log start may have been above them.
"""

from __future__ import annotations

import numpy as np

from ...columns.batch_table import BoolArray
from ...disk.side_files import read_leader_epoch_checkpoint
from ...errors import CheckpointFormatError, DataDirectoryError
from ...layout import leader_epoch_checkpoint
from ...layout.file_names import METADATA_TOPIC
from ..cluster import Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import Ask, Breach, Broken
from ..partition import unless_gone


class EpochFacts(Follower):
    """The checkpoint of a partition.

    Attributes:
        path: None if there is none.
        epochs, starts: its entries, int64[n].
        disordered: entries that do not ascend: (the one before, the one).
        wrong: by the epoch of a batch and that of the checkpoint (None without one): path and offset of the first.
    """

    def __init__(self, evidence: Evidence, ask: Ask) -> None:
        self.evidence = evidence
        self._ask = ask
        self.path = evidence.partition.files.files.get(leader_epoch_checkpoint.FILE_NAME)
        self.wrong: dict[tuple[int, int | None], tuple[str, int]] = {}
        entries = None
        try:
            entries = [] if self.path is None else unless_gone(read_leader_epoch_checkpoint, self.path)
        except (CheckpointFormatError, DataDirectoryError) as error:
            where = evidence.partition.where(self.path)
            ask(Breach.of("checkpoint-format", where, error, "epochs and start offsets"))
        self._is_compared, entries = entries is not None, entries or []
        pairs = np.array(entries, np.int64).reshape(-1, 2)
        self.epochs, self.starts = pairs[:, 0], pairs[:, 1]
        wrong = np.flatnonzero((np.diff(pairs, axis=0) <= 0).any(axis=1)).tolist()
        self.disordered = [(entries[row], entries[row + 1]) for row in wrong[:1]]

    def step(self, batches: AuditedBatches) -> None:
        if not self._is_compared or self.disordered:
            return
        is_asked = batches.is_v2 & (batches.base >= self.evidence.partition.first_offset)
        if self.path is not None:
            is_asked &= ~self._is_below(batches)
        entries = np.searchsorted(self.starts, batches.base, side="right") - 1
        known = np.concatenate([self.epochs, [-1]])[entries]  # the last one is that of batches below all entries
        has_none = is_asked & (batches.epochs < 0) & (known != batches.epochs)
        for row in np.flatnonzero(has_none & (batches.epoch_before < 0)).tolist():  # else it goes back, as any may
            expected = f"epoch {known[row]}, as {leader_epoch_checkpoint.FILE_NAME} has"
            self._ask(Breach("log-leader-epoch", (batches.where(row), expected, int(batches.epochs[row]))))
        rows = np.flatnonzero(is_asked & ~has_none & (known != batches.epochs))
        pairs = np.stack([batches.epochs[rows], known[rows]])
        # of batches with the same pair the first tells
        for row in rows[np.append(True, (np.diff(pairs) != 0).any(axis=0))[: rows.size]].tolist():
            pair = int(batches.epochs[row]), None if known[row] < 0 else int(known[row])
            self.wrong.setdefault(pair, (self.path or batches.segment.log, int(batches.base[row])))

    def finish(self) -> None:
        self._ask(self)

    @property
    def newer(self) -> list[Broken]:
        """The last epoch if batches agree, and the metadata that the broker led by, closed after the log, is behind."""
        partition, cluster = self.evidence.partition, self.evidence.cluster
        is_judged = partition.surroundings.was_closed and cluster.has_partition(*partition.key) is Known.YES
        if self.wrong or self.disordered or not self.epochs.size or not (is_judged and partition.is_live):
            return []
        topic, number = partition.key
        known, epoch = cluster.image.topics[topic].partitions[number].leader_epoch, int(self.epochs[-1])
        return [(partition.where(self.path), f"epochs up to {known}", f"epoch {epoch}")] if epoch > known else []

    def _is_below(self, batches: AuditedBatches) -> BoolArray:
        """Return which batches may have lost their epoch when the log start was raised above them.

        The first epoch then begins at the start (`truncateFromStart`). A crash may lose the start, since its checkpoint
        follows within a minute; if it was the end of the log, there is no epoch after the crash (`truncateFromEnd`)
        until the broker leads again, in a higher one.
        """
        evidence = self.evidence
        is_closed = evidence.partition.surroundings.was_closed
        if not self.starts.size:  # the metadata log always has one: it is not cut off at its end behind a snapshot
            is_told = evidence.is_start_known or (is_closed and evidence.partition.files.topic == METADATA_TOPIC)
            return np.full(batches.base.size, not is_told)
        if not evidence.may_have_begun_at(int(self.starts[0])):
            return np.zeros(batches.base.size, np.bool_)
        is_below: BoolArray = batches.base < self.starts[0]
        return is_below & (batches.epochs <= self.epochs[0]) if evidence.is_start_known else is_below
