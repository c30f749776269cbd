"""Sequences and epochs of producers from batch to batch (KIP-98, KIP-360, KIP-890).

What a leader would have refused must not be in a log. Where a producer is met first it may be anywhere in its
sequence, also after it expired; where the cleaner was, batches may be missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..disk.directory import SegmentFiles
from ..kernels.scan import batches as fields
from ..layout.batch import CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID
from ..topics import consumer_offsets
from ..view.walk import Damage, Run, Tail
from . import rules
from .evidence import Evidence
from .finding import Rule
from .log_pass import SegmentEnd
from .partition import Report

_SEQUENCE_COUNT = 2**31  # 0 follows on 2^31 - 1
_ANY = -2  # the next sequence is not known
_NO_EPOCH = -1


class _Last(NamedTuple):
    """What is known of a producer behind its last batch or marker."""

    epoch: int
    next_sequence: int
    offset: int
    is_marker: bool


class SequenceChecks:
    """Compares each batch with the one before it of the same producer."""

    def __init__(self, evidence: Evidence, report: Report) -> None:
        self._evidence = evidence
        self._report = report
        # its batches are written by the group coordinator, with sequence 0 each
        self._is_numbered = evidence.partition.files.topic != consumer_offsets.TOPIC
        self._last: dict[int, _Last] = {}
        self._path: str | None = None

    def begin(self, segment: SegmentFiles) -> None:
        self._path = segment.log

    def step(self, run: Run) -> None:
        rows = np.arange(run.first_row, run.row_end)
        rows = rows[(run.table.producer_id[rows] != NO_PRODUCER_ID) & (run.table.magic[rows] >= MAGIC_V2)]
        if rows.size:
            self._producers(run, rows[np.argsort(run.table.producer_id[rows], kind="stable")])

    def skip(self, piece: Damage | Tail) -> None:
        """Any producer may have written there."""
        self._last = {producer_id: last._replace(next_sequence=_ANY) for producer_id, last in self._last.items()}

    def end(self, end: SegmentEnd) -> None:
        """Producers go on from segment to segment."""

    def finish(self) -> None:
        """Nothing is left to say."""

    def _producers(self, run: Run, rows: Int64Array) -> None:
        """Rows sorted by producer, each producer's in order."""
        table = run.table
        ids, epochs = table.producer_id[rows], table.producer_epoch[rows]
        is_marker = (table.attributes[rows] & CONTROL_FLAG) != 0
        sequences = table.column(fields.BASE_SEQUENCE)[rows]
        after = (sequences + table.column(fields.LAST_OFFSET_DELTA)[rows] + 1) % _SEQUENCE_COUNT
        is_first = np.ones(rows.size, np.bool_)
        is_first[1:] = ids[1:] != ids[:-1]
        before_epochs, before_sequences = np.roll(epochs, 1), np.roll(after, 1)
        before_offsets, before_markers = np.roll(table.last_offset[rows], 1), np.roll(is_marker, 1)
        suspects = is_first | is_marker | before_markers | (sequences < 0)
        suspects |= (epochs != before_epochs) | (sequences != before_sequences)
        last: _Last | None = None
        for index in np.flatnonzero(suspects).tolist():
            if is_first[index]:
                last = self._last.get(int(ids[index]))
            elif not suspects[index - 1]:
                last = _Last(int(before_epochs[index]), int(before_sequences[index]), int(before_offsets[index]), False)
            row = int(rows[index])
            last = self._batch(run, row, last, is_marker=bool(is_marker[index]), after=int(after[index]))
            if index + 1 == rows.size or is_first[index + 1]:
                self._last[int(ids[index])] = last
        self._keep_ends(table.last_offset[rows], ids, epochs, after, suspects, is_first)

    def _keep_ends(
        self,
        offsets: Int64Array,
        ids: Int64Array,
        epochs: Int64Array,
        after: Int64Array,
        suspects: npt.NDArray[np.bool_],
        is_first: npt.NDArray[np.bool_],
    ) -> None:
        """Producers whose last batch simply followed on the one before it."""
        is_end = np.ones(ids.size, np.bool_)
        is_end[:-1] = is_first[1:]
        for index in np.flatnonzero(is_end & ~suspects).tolist():
            self._last[int(ids[index])] = _Last(int(epochs[index]), int(after[index]), int(offsets[index]), False)

    def _batch(self, run: Run, row: int, last: _Last | None, *, is_marker: bool, after: int) -> _Last:
        """Judge one batch, and what is known behind it."""
        epoch, offset = int(run.table.producer_epoch[row]), int(run.table.last_offset[row])
        sequence = int(run.table.matrix[fields.BASE_SEQUENCE, row])
        if is_marker:
            if last is None:
                return _Last(epoch, _ANY, offset, True)
            return _Last(epoch, 0 if epoch != last.epoch else last.next_sequence, offset, True)
        if last is not None and self._is_numbered:
            self._judge(run, row, last, epoch, sequence)
        return _Last(epoch, after if sequence >= 0 else _ANY, offset, False)

    def _judge(self, run: Run, row: int, last: _Last, epoch: int, sequence: int) -> None:
        if epoch < last.epoch:
            rule = rules.PRODUCER_FENCED if last.is_marker else rules.PRODUCER_EPOCH_BACK
            self._tell(run, row, rule, f"epoch {last.epoch} or above", f"epoch {epoch}")
            return
        expected = 0 if epoch > last.epoch else last.next_sequence
        is_known = last.epoch != _NO_EPOCH and last.offset >= self._evidence.cleaned_up_to
        if expected in (_ANY, sequence) or not is_known or sequence < 0:
            return
        if self._evidence.has_expired(int(run.table.producer_id[row]), last.offset, int(run.table.base_offset[row])):
            return
        distance = (sequence - expected) % _SEQUENCE_COUNT
        is_back = epoch == last.epoch and distance > _SEQUENCE_COUNT // 2
        rule = rules.SEQUENCE_DUPLICATE if is_back else rules.SEQUENCE_GAP
        self._tell(run, row, rule, f"sequence {expected} of epoch {epoch}", f"sequence {sequence}")

    def _tell(self, run: Run, row: int, rule: Rule, expected: str, found: str) -> None:
        producer = f"producer {int(run.table.producer_id[row])}: "
        self._report.add(
            rule,
            self._path,
            expected=producer + expected,
            found=found,
            position=int(run.table.position[row]),
            offset=int(run.table.base_offset[row]),
        )
