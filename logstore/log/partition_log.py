"""One partition that is open for writing (`UnifiedLog`): the verbs over its `LogState`, and its lock.

    log = PlannedLog("data/orders-0", LoadSettings(was_clean=False, …)).open(LogHost())
    log.append_as_leader(batch)
    log.roll(), log.flush(), log.delete_records(offset), …
    log.close()

Every change holds `lock`; a reader holds it only while it makes a view. A method may not be called from inside of
another one, as by a signal handler, see `calls`; functions below call each other. After a failed write the log takes no
more changes; a change that an exception cut off is undone by opening the log again, see `failure`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Concatenate

from ..calls import LOG, alone, alone_in_log
from ..columns.decoded_records import Records, TailRecords
from ..config.topic import DEDUPE_BUFFER_SIZE, LogConfig, is_tiered
from ..disk.lock import invalidate_when_forked
from ..errors import KafkaStorageError
from ..folds.producer_state import ProducerEntry
from ..folds.verification import VerificationGuard
from ..model import FetchIsolation, whole_number
from ..view.log_view import LogView, ReadableLog
from ..view.read import ReadBounds
from .cleaner.choice import Cleanable, cleanable
from .cleaner.rounds import clean
from .log_appends import LogAppends, P, T
from .maintain.flush import close, flush_beside
from .maintain.retain import DeletedSegment, delete_old_segments, delete_records, raise_log_start
from .maintain.roll import roll, truncate_fully_and_start_at
from .segment.deleted_files import DeletedFiles
from .state import LogState
from .tail import read_tail

NEVER_MS = (1 << 63) - 1  # of `flush.ms`


class PartitionLog(LogAppends, ReadableLog):
    """The running log; opened by `load.opening.PlannedLog`."""

    def __init__(self, state: LogState, reopen: Callable[[LogState], LogState]) -> None:
        super().__init__(state, reopen)
        invalidate_when_forked(self)

    @property
    def topic_partition(self) -> str:
        """As Kafka's messages name it, `topic-0`."""
        return self.state.topic_partition

    @property
    def topic_id(self) -> str | None:
        """The id in `partition.metadata`; None without the file."""
        return self.state.topic_id

    @property
    def path(self) -> str:
        """The directory, absolute."""
        return self.state.directory.path

    @property
    def config(self) -> LogConfig:
        """The configuration."""
        return self.state.config

    @property
    def record_size_max(self) -> int:
        """As of any view; a log has its configuration."""
        return self.state.rules.record_size_max

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.state.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.state.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Where consumers stop, exclusive: the log's end, as nothing is replicated."""
        return self.state.high_watermark

    @property
    def recovery_point(self) -> int:
        """The offset below which everything is durable."""
        return self.state.recovery_point

    def leader_epoch_before(self, offset: int) -> int | None:
        """Return the epoch of the leader that wrote the record before `offset`; None if the log does not know it.

        If that was deleted, it is the epoch of the first record that was left, which is not below.
        """
        state = self.state  # without the lock: a commit asks each of its logs, and must not wait for their writers
        is_in_log = 0 < offset <= state.log_end_offset
        return state.epochs.epoch_of(max(offset - 1, state.log_start_offset)) if is_in_log else None

    def end_offset_of_epoch(self, epoch: int) -> int | None:
        """Return where what leaders up to `epoch` wrote ends; None for an epoch after the log's own (KIP-320)."""

        def end(state: LogState) -> int | None:
            is_known = epoch <= max(state.epochs.latest_epoch or 0, self.leader_epoch)
            return state.epochs.end_offset(epoch, state.log_end_offset) if is_known else None

        return self._use(end)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open transaction's batch; None if no transaction is open."""
        return self.state.first_unstable_offset

    @property
    def last_stable_offset(self) -> int:
        """Where `read_committed` ends, exclusive."""
        with self.lock:
            return self.state.last_stable_offset

    @property
    def is_writable(self) -> bool:
        """True unless the log is closed or a write failed."""
        return self.state.failure.error is None and not self.state.failure.is_closed

    @property
    def is_closed_in_order(self) -> bool:
        """True once everything was written and synced by `close`."""
        return self.state.failure.is_closed and self.state.failure.error is None

    @property
    def size(self) -> int:
        """Bytes of all `.log` files together."""
        return self._use(lambda state: sum(segment.size for segment in state.segments))

    def __repr__(self) -> str:
        failure = self.state.failure
        use = "closed, " if failure.is_closed else "" if self.is_writable else "not writable, "
        offsets = f"offsets {self.log_start_offset} to {self.log_end_offset}"
        return f"<PartitionLog {self.topic_partition}: {use}{offsets}>"

    def view(self) -> LogView:
        """Return the log as it is now, for readers."""
        return self._use(_view)

    def tail(
        self, start_offset: int, isolation: FetchIsolation, *, check_crc: bool, size_max: int
    ) -> TailRecords | Records | None:
        """Return the records up to the end if there are few, see `read_tail`; else None."""
        return read_tail(self.state, start_offset, isolation, check_crc=check_crc, size_max=size_max)

    def update_config(self, config: LogConfig) -> None:
        """Replace the configuration; the active segment keeps the one it was created with."""
        self._use(LogState.set_config, config)

    def invalidate_after_fork(self) -> None:
        """Disown the log in the child of a fork: the parent has it, and nothing is written or closed here."""
        self.lock = self.state.lock = threading.RLock()  # a thread of the parent may hold the other one for ever
        self.state.failure.disown_after_fork(self.lock)
        self.state.deleted_files = DeletedFiles()

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """Return the state of a producer; None if it is unknown."""
        wanted = whole_number("producer id", producer_id)
        return self._use(lambda state: state.producers.state.get(wanted))

    def producer_entries(self) -> list[ProducerEntry]:
        """Return the state of all producers, in the order in which they came."""
        return self._use(lambda state: list(state.producers.state))

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the producer has an open transaction in this epoch."""
        return self._use(lambda state: state.producers.state.has_ongoing_transaction(producer_id, producer_epoch))

    def start_inside(self) -> int | None:
        """Return the log start offset if it is above the first segment's base offset, else None.

        That of a log with remote storage is returned in any case, as a broker checkpoints it.
        """
        return self._use(_start_inside)

    def begin_verification(
        self, producer_id: int, *, sequence: int, producer_epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Return the guard to append a transactional batch with, see `ProducerState.begin_verification`."""
        return self._use(
            lambda state: state.producers.state.begin_verification(
                whole_number("producer id", producer_id),
                sequence=whole_number("sequence", sequence),
                producer_epoch=whole_number("producer epoch", producer_epoch),
                supports_epoch_bump=supports_epoch_bump,
                now_ms=state.host.now_ms(),
            )
        )

    def roll(self) -> None:
        """Close the active segment and begin a new one at the log's end; an empty one is replaced."""
        self._change("Error while rolling log segment for", roll)

    def flush(self) -> None:
        """Sync everything appended so far; others read and append meanwhile."""
        flushed = None
        while flushed is not self.state:  # opened again meanwhile: files that were closed are not synced yet
            flushed = self._use(lambda state: state)
            with alone(LOG):
                flush_beside(flushed)

    def flush_if_due(self) -> None:
        """Flush if the last flush is `flush.ms` ago, or the clock went back since; to be called periodically."""
        state = self.state
        if state.flush_ms < NEVER_MS and not 0 <= state.host.now_ms() - state.last_flush_ms < state.flush_ms:
            self.flush()

    def increment_log_start_offset(self, offset: int) -> bool:
        """Move the log start up to `offset`, without removing files; return False if it is there or above already.

        Raises OffsetOutOfRangeError above the high watermark.
        """
        return self._use(raise_log_start, whole_number("offset", offset))

    def delete_records(self, offset: int) -> int:
        """Move the log start to `offset`, -1 for the high watermark; return the log start, see `delete_records`."""
        return self._use(delete_records, whole_number("offset", offset))

    def delete_old_segments(self, now_ms: int) -> list[DeletedSegment]:
        """Delete what `retention.ms`, `retention.bytes` and the log start do not retain; to be called periodically."""
        return self._use(delete_old_segments, now_ms)

    def cleanable(self, checkpoint: int | None, now_ms: int) -> Cleanable:
        """Return what of the log may be cleaned, see `cleaner.choice.cleanable`."""
        return self._use(cleanable, checkpoint, now_ms)

    def clean(self, chosen: Cleanable, now_ms: int, *, buffer_size: int = DEDUPE_BUFFER_SIZE) -> int:
        """Clean what was chosen; return the offset below which the log is clean, see `cleaner.rounds.clean`."""
        state = self._use(lambda state: state)
        with alone(LOG):
            return clean(state, chosen, now_ms, buffer_size=buffer_size)

    def stop_cleaning(self) -> None:
        """Make a running pass of the cleaner abort, as the log is about to be closed."""
        self.state.is_cleaning_stopped = True

    def remove_deleted_files(self, now_ms: int) -> list[str]:
        """Remove files deleted `file.delete.delay.ms` ago; return their names. To be called periodically."""
        if not self.state.deleted_files:
            return []
        return self._use(lambda state: state.deleted_files.remove_due(state.directory, now_ms))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty, and starts and ends at `offset`."""
        self._change("Error while truncating log for", truncate_fully_and_start_at, offset)

    def drop_expired_producers(self) -> None:
        """Forget producers that have not written for `producer.id.expiration.ms`; to be called periodically."""
        if not self.state.producers.state.has_expiring:
            return
        now_ms = self.state.host.now_ms()
        self._change(
            "Error while removing expired producers of", lambda state: state.producers.state.drop_expired(now_ms)
        )

    def move(self, rename: Callable[[], str]) -> None:
        """Rename the directory by a function that returns its new path (`UnifiedLog.renameDir`).

        Readers that have a view go on there; by the old path they would get the bytes of the next topic of that name.
        """
        with alone_in_log(), self.lock, ExitStack() as names:
            for segment in self.state.segments:
                names.enter_context(segment.holding_names())
            self.state.directory.path = rename()

    def close(self) -> None:
        """Write and sync everything, so that the next load may treat the log as cleanly closed.

        If a write failed, only files are closed: the next load must treat the log as not cleanly closed.
        """
        try:
            self._use(close)
        except KafkaStorageError:  # it could not be opened again: its files are closed
            self._use(close)
            raise

    def _change(
        self,
        failure_text: str,
        change: Callable[Concatenate[LogState, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Change the state by a function that cannot be repeated, see `Failure.poisoned_by`."""

        def poisoning(state: LogState) -> T:
            with state.failure.poisoned_by(failure_text):
                return change(state, *arguments, **named)

        return self._use(poisoning)


def _view(state: LogState) -> LogView:
    struct = state.struct
    bounds = ReadBounds(
        state.topic_partition,
        struct.log_start_offset,
        struct.log_end_offset,
        struct.high_watermark,
        state.last_stable_offset,
        state.remote_start_offset,
    )
    return LogView(state.view(), bounds, state.epochs.copied())


def _start_inside(state: LogState) -> int | None:
    offset = state.log_start_offset
    if is_tiered(state.config):
        return offset if state.remote_start_offset is None else state.remote_start_offset
    first = state.segments.first
    return offset if first is not None and offset > first.base_offset else None
