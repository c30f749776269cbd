"""`leader-epoch-checkpoint` against the epochs that batches have (`LeaderEpochFileCache`, KIP-101)."""

from __future__ import annotations

import numpy as np

from ..disk.directory import SegmentFiles
from ..disk.side_files import read_leader_epoch_checkpoint
from ..errors import CheckpointFormatError
from ..kernels.scan import batches as fields
from ..layout import leader_epoch_checkpoint
from ..layout.batch import MAGIC_V2
from ..view.walk import Damage, Run, Tail
from . import rules
from .evidence import Evidence
from .log_pass import SegmentEnd
from .partition import Report, unless_gone


class EpochChecks:
    """The checkpoint must give each batch, by its offset, the epoch that it has.

    Batches below the first entry are passed over when the log starts above them. Where nothing was compacted, an epoch
    begins with its first batch.
    """

    def __init__(self, evidence: Evidence, report: Report) -> None:
        self._evidence = evidence
        self._report = report
        self._path: str | None = evidence.partition.files.files.get(leader_epoch_checkpoint.FILE_NAME)
        self._epochs = self._starts = np.empty(0, np.int64)
        self._is_told: set[tuple[int, int | None]] = set()
        self._segment: SegmentFiles | None = None
        self._is_readable = self._read()

    def begin(self, segment: SegmentFiles) -> None:
        self._segment = segment

    def step(self, run: Run) -> None:
        if not self._is_readable:
            return
        rows = slice(run.first_row, run.row_end)
        base = run.table.base_offset[rows]
        epochs = run.table.column(fields.PARTITION_LEADER_EPOCH)[rows]
        is_asked = (run.table.magic[rows] >= MAGIC_V2) & (epochs >= 0) & (base >= self._asked_from())
        entries = np.searchsorted(self._starts, base, side="right") - 1
        if self._epochs.size:
            known = np.where(entries >= 0, self._epochs[entries], -1)
        else:
            known = np.full(base.size, -1)
        for row in np.flatnonzero(is_asked & (known != epochs)).tolist():
            self._tell(int(epochs[row]), None if known[row] < 0 else int(known[row]), int(base[row]))

    def skip(self, piece: Damage | Tail) -> None:
        """Says nothing of epochs."""

    def end(self, end: SegmentEnd) -> None:
        """Epochs go on from segment to segment."""

    def finish(self) -> None:
        """Nothing is left to say."""

    def _asked_from(self) -> int:
        """Where the log starts; while its checkpoint may be behind, where its epochs start (`truncateFromStart`)."""
        start = self._evidence.partition.first_offset
        return start if self._evidence.is_start_known or not self._starts.size else max(start, self._starts[0])

    def _tell(self, epoch: int, known: int | None, offset: int) -> None:
        """Once for each wrong pair: where it begins."""
        if (epoch, known) in self._is_told:
            return
        self._is_told.add((epoch, known))
        log = "the log" if self._segment is None else self._segment.log
        self._report.add(
            rules.LEADER_EPOCHS,
            self._path or log,
            expected=f"epoch {epoch}, which the batch has",
            found="no epoch" if known is None else f"epoch {known}",
            offset=offset,
        )

    def _read(self) -> bool:
        """Takes the entries; False where there is nothing to compare with."""
        if self._path is None:
            return True
        try:
            entries = unless_gone(read_leader_epoch_checkpoint, self._path)
        except CheckpointFormatError as error:
            self._report.add_error(rules.CHECKPOINT_FORMAT, self._path, error, expected="epochs and start offsets")
            return False
        if entries is None:
            return False
        pairs = np.array(entries, np.int64).reshape(-1, 2)
        self._epochs, self._starts = pairs[:, 0], pairs[:, 1]
        for row in np.flatnonzero((np.diff(pairs, axis=0) <= 0).any(axis=1)).tolist():
            self._report.add(
                rules.LEADER_EPOCHS,
                self._path,
                expected=f"an epoch and an offset above {entries[row][0]} and {entries[row][1]}",
                found=f"{entries[row + 1][0]} and {entries[row + 1][1]}",
            )
            return False
        return True
