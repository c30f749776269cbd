"""A log alone, whose calls are interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from logstore.columns.any_columns import record_columns
from logstore.config.topic import parse_config
from logstore.log.load.loader import LoadSettings
from tests.crash.acknowledged import Transaction
from tests.crash.interrupted_world import World, records_of
from tests.support.encoder import SOME_TIME, Batch, Rec
from tests.support.logs import append_batch, open_log

PLACE = ("t", 0)
CONFIG = {"segment.index.bytes": "65536", "index.interval.bytes": "200"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
LATER = SOME_TIME + 1_000_000_000
IDEMPOTENT, TRANSACTIONAL = 7, 8  # producer ids


class LogWorld(World):
    """A log with a few records in it, and its producers.

    Attributes:
        log: it.
    """

    def __init__(self, root: Path, config: Mapping[str, str] | None = None) -> None:
        super().__init__(root)
        self._config = parse_config({**CONFIG, **(config or {})})
        self._is_compacted = config is COMPACTED
        self._sequences = {IDEMPOTENT: 0, TRANSACTIONAL: 0}
        self._pending: list[bytes] | None = None
        self._is_closed_in_order = True
        self._recovery_point = self._start = 0
        self.open()
        self.append(2)

    def open(self) -> None:
        settings = LoadSettings(self._is_closed_in_order, self._recovery_point, self._start, SOME_TIME, self._config)
        path = self.root / "t-0"
        self.log = open_log(path, settings, now_ms=lambda: SOME_TIME, topic_id="t" + "A" * 21)

    # -- calls ------------------------------------------------------------------------------------------------------

    def append(self, count: int) -> None:
        """Without a producer; in a compacted log with one of three keys."""
        values, keys = self.tried(count), None
        if self._is_compacted:
            keys = [b"key %d" % (len(self.acknowledged.keys) % 3) for _ in values]
            self.acknowledged.keys.update(zip(values, keys, strict=True))
        info = self.log.append_records(values, keys)
        self.acknowledged.tell(values, PLACE, info.first_offset)

    def append_columns(self) -> None:
        values = self.tried(20)
        info = self.log.append_columns(record_columns(values=values))
        self.acknowledged.tell(values, PLACE, info.first_offset)

    def append_batch(self) -> None:
        values = self.tried(3)
        records = [Rec(b"k", value, offset_delta=number) for number, value in enumerate(values)]
        info = append_batch(self.log, Batch(0, records, last_offset_delta=2))
        self.acknowledged.tell(values, PLACE, info.first_offset)

    def append_idempotent(self) -> None:
        """With the sequence of the last one, if that was not acknowledged."""
        values = self._pending = self._pending or self.tried(2)
        info = self.log.append_records(
            values, producer_id=IDEMPOTENT, producer_epoch=0, base_sequence=self._sequences[IDEMPOTENT]
        )
        self._pending = None
        self._sequences[IDEMPOTENT] += len(values)
        self.acknowledged.tell(values, PLACE, info.first_offset)

    def append_verified(self) -> None:
        """The first batch of a transaction; the same again until it is acknowledged."""
        if not self._pending:
            self._pending = self.tried(2)
            self.acknowledged.transactions.append(Transaction(self._pending))
        sequence = self._sequences[TRANSACTIONAL]
        guard = self.log.begin_verification(
            TRANSACTIONAL, sequence=sequence, producer_epoch=0, supports_epoch_bump=False
        )
        info = self.log.append_records(
            self._pending,
            producer_id=TRANSACTIONAL,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
            guard=guard,
        )
        self.acknowledged.tell(self._pending, PLACE, info.first_offset)
        self._sequences[TRANSACTIONAL] += len(self._pending)
        self._pending = None

    def append_marker(self, *, is_commit: bool = True) -> None:
        """The end of the transaction."""
        self.log.append_end_transaction(
            TRANSACTIONAL, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=1
        )
        if self._pending is None and self.acknowledged.transactions:
            last = self.acknowledged.transactions[-1]
            last.outcome = last.outcome or ("committed" if is_commit else "aborted")

    def roll(self) -> None:
        self.log.roll()

    def append_and_roll(self) -> None:
        self.append(3)
        self.log.roll()

    def flush(self) -> None:
        self.log.flush()

    def delete_old_segments(self) -> None:
        self.acknowledged.start_max[PLACE] = self.log.log_end_offset
        self.log.delete_old_segments(LATER)

    def delete_records(self) -> None:
        """All but the last; whole segments go at once."""
        self.acknowledged.start_max[PLACE] = offset = self.log.log_end_offset - 1
        self.log.delete_records(offset)

    def clean(self) -> None:
        self.log.clean(self.log.cleanable(0, LATER), LATER, buffer_size=1 << 16)

    def remove_deleted_files(self) -> None:
        self.log.remove_deleted_files(LATER)

    def read(self) -> None:
        """All records, each acknowledged one at its place."""
        found = {value: offset for offset, value in records_of(self.log)}
        for value, (_, offset) in self.acknowledged.told.items():
            if value in found and found[value] != offset:
                self.problems.append(f"a reader finds {value[:20]!r} at {found[value]} instead of {offset}")

    def close_log(self) -> None:
        self.log.close()

    # -- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._end_offset = -1
        is_closed = [self.attempt("close", self.log.close) for _ in range(2)][-1]
        self._is_closed_in_order = is_closed and self.log.state.failure.error is None
        self._recovery_point, self._start = self.log.recovery_point, self.log.log_start_offset
        (self.root / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {self._start}\n")
        if self._is_closed_in_order:
            self._end_offset = self.log.log_end_offset

    def look(self) -> None:
        if not self.attempt("open", self.open):
            self.problems += self.refusals[-1:]
            return
        if self._end_offset not in (-1, self.log.log_end_offset):
            self.problems.append(f"the log ended at {self._end_offset} and ends at {self.log.log_end_offset}")
        self.compare({PLACE: records_of(self.log)})
        self.log.close()
        self.audit(SOME_TIME)

    def tried(self, count: int) -> list[bytes]:
        """New values of one batch."""
        values = self.values(count)
        self.acknowledged.tried.append(tuple(values))
        return values
