"""Batches as rules see them, and the followers of the pass over a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...columns.batch_table import BatchTable, BoolArray, Int64Array
from ...disk.directory import SegmentFiles
from ...disk.mapped import is_too_large
from ...disk.system_errors import is_refused
from ...errors import LogstoreError
from ...kernels.scan import batches as fields
from ...layout.batch import CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ...view.walk import OFFSET_SPAN, Damage, Run
from ..finding import Broken, Where
from ..partition import Partition

if TYPE_CHECKING:
    from ..evidence import Evidence

Ask = Callable[[object], None]  # asks all rules of some facts


class Breach(NamedTuple):
    """A rule that is broken where facts are read, such as by a file that does not parse: its name, and where."""

    rule: str
    broken: Broken

    @classmethod
    def of(cls, rule: str, where: Where, error: LogstoreError, expected: object) -> Breach:
        """Make a breach of an error of reading, which may know the place better than `where`.

        A file that the system refuses to read breaks no rule of Kafka: it is a breach of `log-unreadable`.
        """
        if is_refused(error):
            return cls.unreadable(where, error)
        return cls._of(rule, where, error, expected)

    @classmethod
    def unreadable(cls, where: Where, error: LogstoreError) -> Breach:
        """Make a breach of a file or directory that cannot be read; the system may know its path."""
        path = getattr(error.__cause__, "filename", None) or where.path
        rule = "log-size" if is_too_large(error) else "log-unreadable"
        return cls._of(rule, where._replace(path=path), error, "what can be read")

    @classmethod
    def _of(cls, rule: str, where: Where, error: LogstoreError, expected: object) -> Breach:
        path = where.path if error.path is None else str(error.path)
        cause = error.__cause__
        reason = cause.strerror if isinstance(cause, OSError) else error.message  # Kafka's message may be a path alone
        found = reason or error.message or error.found or type(error).__name__
        place = where._replace(path=path, position=error.position, offset=error.offset)
        return cls(rule, (place, expected if error.expected is None else error.expected, found))


class BadBytes(NamedTuple):
    """Damage in a segment: bytes that are no good batch.

    Attributes:
        is_unused: zeros up to the end of a file that a broker preallocated, and has not closed.
    """

    partition: Partition
    path: str
    piece: Damage
    is_unused: bool = False

    @property
    def where(self) -> Where:
        """The place where they begin."""
        return self.partition.where(self.path, self.piece.start, self.piece.offset)


class AuditedBatches:
    """Good batches of a segment, one behind the other; columns of a row each.

    Attributes:
        run, table: the batches as rows of a larger table, for kernels; and as a table of their own.
        before: end of the offsets of the batch before, exclusive.
        epoch_before: highest leader epoch before each, -1 for none.
        offset_max: highest offset that the segment can hold: below the next segment, and within reach of indexes.
        is_after_damage: bytes before the first batch are none; their offsets are not known.
        transactions: number of the transaction that each has data of, -1 for none; see `transactions`.
        base, last, span, epochs: first and last offset, number of offsets, leader epoch.
        is_v2, is_producers, is_transactional: of magic 2 or above, of a producer, data of a transaction.
        is_thin, is_hole: fewer records than offsets; offsets missing before it that no damage explains.
        is_ascending: each begins behind the one before; followers that go by offsets need it.
    """

    def __init__(self, evidence: Evidence, segment: SegmentFiles, run: Run) -> None:
        """Take rows of a segment; `evidence` is that of the batch before."""
        self.evidence, self.partition, self.segment, self.run = evidence, evidence.partition, segment, run
        matrix = run.table.matrix[:, run.first_row : run.row_end]
        self.table = table = BatchTable(matrix, matrix.shape[1], run.table.status, run.table.next_position)
        self.offset_max = min(self.partition.end_of(segment), segment.base_offset + OFFSET_SPAN) - 1
        self.is_after_damage = evidence.is_after_damage
        self.transactions = np.full(len(table), -1)
        self.base: Int64Array = table.base_offset
        self.last, self.span = table.last_offset, table.column(fields.LAST_OFFSET_DELTA) + 1
        self.epochs = table.column(fields.PARTITION_LEADER_EPOCH)
        end_before = evidence.batch_end_offset
        if end_before is None:
            end_before = min(segment.base_offset, int(self.base[0]))
        self.before = np.concatenate([[end_before], self.last[:-1] + 1])
        self.epoch_before = np.maximum.accumulate(np.concatenate([[evidence.leader_epoch], self.epochs[:-1]]))
        flags = table.attributes & (CONTROL_FLAG | TRANSACTIONAL_FLAG)
        self.is_v2: BoolArray = table.magic >= MAGIC_V2
        self.is_producers: BoolArray = self.is_v2 & (table.producer_id != NO_PRODUCER_ID)
        self.is_transactional: BoolArray = self.is_producers & (flags == TRANSACTIONAL_FLAG)
        self.is_thin: BoolArray = self.is_v2 & (table.record_count >= 0) & (table.record_count < self.span)
        self.is_hole: BoolArray = self.base > self.before
        self.is_hole[0] &= not self.is_after_damage
        self.is_ascending = bool((self.last >= self.base).all() and (self.base[1:] > self.last[:-1]).all())

    def where(self, row: int, offset: int | None = None) -> Where:
        """Return the place of a batch."""
        offset = int(self.base[row]) if offset is None else offset
        return self.partition.where(self.segment.log, int(self.table.position[row]), offset)

    def broken(
        self, is_wrong: BoolArray, expected: str, expected_values: Int64Array, found_values: Int64Array
    ) -> Iterator[Broken]:
        """Yield wrong rows: the place, the expected value within a text, and the value found."""
        for row in np.flatnonzero(is_wrong).tolist():
            yield self.where(row), expected.format(int(expected_values[row])), int(found_values[row])


class Follower:
    """A part of the pass, called for each segment: `begin`, `step` and `skip` in the order of the bytes, `end`."""

    def begin(self, segment: SegmentFiles) -> None:
        """Take the next segment."""

    def step(self, batches: AuditedBatches) -> None:
        """Take good batches of it."""

    def skip(self, piece: Damage) -> None:
        """Take bytes of it that are no good batch."""

    def end(self) -> None:
        """Take the end of the segment."""

    def finish(self) -> None:
        """Take the end of the log."""
