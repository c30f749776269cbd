"""Batches by themselves: checksum, length, order of offsets, counts, leader epochs (`LogValidator`, `LogSegment`)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..disk.directory import SegmentFiles
from ..kernels.scan import batches as fields
from ..layout.batch import CODEC_MASK, HEADER_SIZE, MAGIC_V2
from ..model import Codec
from ..view.walk import OFFSET_SPAN, Damage, Run, Tail
from . import rules
from .finding import Rule
from .log_pass import SegmentEnd
from .partition import Partition, Report


class BatchChecks:
    """Carries the last offset and leader epoch from one segment to the next."""

    def __init__(self, partition: Partition, report: Report) -> None:
        self._report = report
        segments = partition.files.segments
        self._next_base = {a.log: b.base_offset for a, b in pairwise(segments)}
        self._segment: SegmentFiles | None = None
        self._last_offset: int | None = None
        self._leader_epoch = -1
        self._tail: Tail | None = None

    def begin(self, segment: SegmentFiles) -> None:
        self._segment = segment

    def step(self, run: Run) -> None:
        table, rows = run.table, slice(run.first_row, run.row_end)
        base, last = table.base_offset[rows], table.last_offset[rows]
        magic, count = table.magic[rows], table.record_count[rows]
        is_v2 = magic >= MAGIC_V2
        delta = table.column(fields.LAST_OFFSET_DELTA)[rows]
        before = np.concatenate([[base[0] - 1 if self._last_offset is None else self._last_offset], last[:-1]])
        self._told(
            run, rules.LOG_OFFSET_ORDER, (base <= before) | (delta < 0), "an offset above {}", before, "{}", base
        )
        low, high = self._range()
        self._told(
            run,
            rules.LOG_OFFSET_RANGE,
            (base < low) | (last > high),
            f"offsets from {low} to {high}",
            base,
            "{}",
            np.where(base < low, base, last),
        )
        wrong_count = is_v2 & ((count < 0) | (count > delta + 1))
        self._told(run, rules.LOG_RECORD_COUNT, wrong_count, "at most {} records", delta + 1, "{}", count)
        self._told(run, rules.LOG_MAGIC, magic > MAGIC_V2, "magic 0 to 2", magic, "{}", magic)
        codec = table.attributes[rows] & CODEC_MASK
        self._told(run, rules.LOG_CODEC, codec > max(Codec), "codec 0 to 4", codec, "{}", codec)
        self._step_epochs(run, table.column(fields.PARTITION_LEADER_EPOCH)[rows])
        self._last_offset = int(last[-1])

    def skip(self, piece: Damage | Tail) -> None:
        if isinstance(piece, Tail):
            self._tail = piece
        else:
            self._damage(piece)

    def end(self, end: SegmentEnd) -> None:
        tail, self._tail = self._tail, None
        if tail is None or end.is_growing:
            return
        if tail.is_batch and tail.end - tail.start >= HEADER_SIZE:
            self._damage(tail)
            return
        self._report.add(
            rules.LOG_TAIL,
            end.files.log,
            expected="the end of the file",
            found=f"{tail.end - tail.start} bytes",
            position=tail.start,
        )

    def finish(self) -> None:
        """Nothing is left to say."""

    def _step_epochs(self, run: Run, epochs: Int64Array) -> None:
        highest = np.maximum.accumulate(np.concatenate([[self._leader_epoch], epochs]))
        wrong = (epochs >= 0) & (epochs < highest[:-1])
        self._told(run, rules.LOG_LEADER_EPOCH, wrong, "epoch {} or above", highest[:-1], "{}", epochs)
        self._leader_epoch = int(highest[-1])

    def _damage(self, piece: Damage | Tail) -> None:
        rule = rules.LOG_CRC if piece.is_batch else rules.LOG_LENGTH
        path = None if self._segment is None else self._segment.log
        size = piece.end - piece.start
        self._report.add(
            rule,
            path,
            expected=piece.expected,
            found=piece.found if piece.is_batch else f"{piece.found}; the next {size} bytes are no batch",
            position=piece.start,
            offset=piece.offset,
        )

    def _range(self) -> tuple[int, int]:
        """The offsets that the segment can hold: up to the next one's, and as its indexes can tell them."""
        if self._segment is None:
            return 0, 0
        low = self._segment.base_offset
        return low, min(self._next_base.get(self._segment.log, low + OFFSET_SPAN), low + OFFSET_SPAN) - 1

    def _told(
        self,
        run: Run,
        rule: Rule,
        is_wrong: npt.NDArray[np.bool_],
        expected: str,
        expected_values: Int64Array,
        found: str,
        found_values: Int64Array,
    ) -> None:
        """A finding for each row that is wrong, with the row's values in its texts."""
        for row in np.flatnonzero(is_wrong).tolist():
            self._report.add(
                rule,
                None if self._segment is None else self._segment.log,
                expected=expected.format(int(expected_values[row])),
                found=found.format(int(found_values[row])),
                position=int(run.table.position[run.first_row + row]),
                offset=int(run.table.base_offset[run.first_row + row]),
            )
