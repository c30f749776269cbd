"""Hands out a consumer's records by `poll`, as a table and one by one: waits for them and moves the positions."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from ... import clock
from ...errors import (
    IllegalStateError,
    ReentrantCallError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    WakeupError,
)
from ...model import TopicPartition
from ...store.data_directory import DataDirectory
from ...store.fetch import LOOK_AGAIN_S
from ..arguments import duration
from .config import ConsumerConfig
from .consumer_records import ConsumerRecord, Iteration, NextOffsets, RecordsByPartition
from .fetcher import Fetcher
from .membership import Membership, RebalanceListener
from .positions import Positions

_PAUSE_S = 0.05  # between two looks at what no append announces: the group, a commit, `fetch.max.wait.ms`
_POLL_INTERVAL_S = 0.05  # between two looks at the group during an iteration
_NOTHING = Iteration({}, {}, 0)

T = TypeVar("T")


class OneThread:
    """Reentrant lock that refuses a second thread instead of letting it wait (`KafkaConsumer.acquire`).

    `with` raises IllegalStateError while another thread is inside, and when `is_closed`.

    Attributes:
        owner: ident of the thread that entered last.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self.owner = 0
        self._lock = threading.RLock()

    def _entered(self) -> None:
        """Hook for each entry; an exception refuses it."""

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            current = threading.current_thread()
            raise IllegalStateError(
                "KafkaConsumer is not safe for multi-threaded access. "
                f"currentThread(name: {current.name}, id: {current.ident}) otherThread(id: {self.owner})",
                java_class="java.util.ConcurrentModificationException",
            )
        try:
            if self.is_closed:
                raise closed()
            self._entered()
            self.owner = threading.get_ident()  # last: a call that is refused lets no iteration take a record
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def closed() -> IllegalStateError:
    """Return the error for a call of a closed consumer."""
    return IllegalStateError("This consumer has already been closed.")


class Polling(OneThread):
    """Polling of one consumer; entered by each of its calls.

    Attributes:
        is_closing: a signal handler has asked for the close, which the call that it interrupted does at its end.
        listener: hears of partitions that the consumer gets and loses.
    """

    def __init__(
        self,
        store: DataDirectory,
        config: ConsumerConfig,
        positions: Positions,
        fetcher: Fetcher,
        member: Membership | None,
        *,
        iteration_timeout_ms: float | None,
        close: weakref.WeakMethod[Callable[[], None]],
    ) -> None:
        """Take the parts of a consumer.

        An iteration ends after `iteration_timeout_ms` without a record; None: never. `ask_to_close` calls `close`.
        """
        super().__init__()
        self._store, self._close = store, close
        self.listener: RebalanceListener | None = None
        self._config, self._positions, self._fetcher, self._member = config, positions, fetcher, member
        self._timeout_ms = float("inf")
        if iteration_timeout_ms is not None:
            self._timeout_ms = duration("consumer_timeout_ms", iteration_timeout_ms)
        self.is_closing = self._is_woken = False
        self._waiting = threading.Lock()  # held while a call reads or waits; `with` releases it in C
        self._iteration = _NOTHING
        self._next_poll_s = 0.0

    def poll(self, timeout_ms: float, count_max: int) -> RecordsByPartition:
        """See `Consumer.poll`."""
        return self._handed_out(timeout_ms, partial(self._fetcher.collect, count_max))

    def to_arrow(self, timeout_ms: float) -> Any:
        """See `Consumer.to_arrow`."""
        return self._handed_out(timeout_ms, self._fetcher.collect_table)

    def next_record(self) -> ConsumerRecord:
        """Return the next record of an iteration; raises as `poll`; StopIteration at the timeout and if closed."""
        iteration = self._iteration
        if (
            # the usual call enters no lock and looks at no group: it takes the next record of those at hand
            iteration.row >= len(iteration.records)
            or clock.monotonic_s() >= self._next_poll_s
            or iteration.change_count != self._positions.change_count
            or threading.get_ident() != self.owner
            # last, and without a call: a signal handler may have read or closed
            or iteration is not self._iteration
        ):
            iteration = self._next_iteration()
            if self.is_closed:
                raise StopIteration
        row = iteration.row
        try:
            iteration.row = row + 1
            return iteration.records[row]
        except BaseException:  # an interrupt: the record was not handed out
            iteration.row = row
            raise

    def wakeup(self) -> None:
        """See `Consumer.wakeup`."""
        self._is_woken = True  # before `wake`: the woken thread reads it
        self._fetcher.wake()

    @property
    def is_interrupted(self) -> bool:
        """True in code that interrupts a call which reads or waits: a signal handler, a listener, a deserializer."""
        return self._waiting.locked() and self.owner == threading.get_ident()

    def ask_to_close(self) -> None:
        """Make the interrupted call, or the next that reads, hand out nothing and close."""
        self.is_closing = True
        if not self.is_interrupted:
            self.owner = 0  # an iteration looks at this before it takes a record that is at hand
        self._fetcher.wake()

    def _close_if_asked(self) -> None:
        close = self._close()
        if self.is_closing and close is not None and not self.is_interrupted:
            close()

    def raise_if_closing(self) -> None:
        """Raise IllegalStateError after `ask_to_close`."""
        if self.is_closing:
            raise closed()

    def raise_if_woken(self) -> None:
        """Raise WakeupError once after a `wakeup` (`ConsumerNetworkClient.maybeTriggerWakeup`)."""
        if self._is_woken:
            self._is_woken = False
            raise WakeupError("The consumer was woken up")

    def answer(self, ask: Callable[[], T | None], text: str) -> T:
        """Call `ask` until its answer is not None, and return that; raises as `raise_if_woken`.

        After `default.api.timeout.ms` it raises RequestTimedOutError; `text` ends the message, and it tells what
        transaction holds an offset for which `ask` has raised UnstableOffsetCommitError.
        """
        timeout_ms = self._config["default.api.timeout.ms"]
        end_s, held = clock.monotonic_s() + timeout_ms / 1000, dict[str, Any]()
        with self._marked():
            while True:
                self.raise_if_closing()
                self.raise_if_woken()
                try:
                    answer = ask()
                    if answer is not None:
                        return answer
                except UnstableOffsetCommitError as error:  # whose frames would keep a consumer that is dropped
                    held = {"found": error.found, "advice": error.given_advice}
                if not self._has_waited(end_s):
                    message = f"Timeout of {timeout_ms}ms expired before the {text}"
                    raise RequestTimedOutError(message, **held)

    def find_positions(self, partitions: list[TopicPartition]) -> None:
        """Set positions to the group's committed offsets, else by `auto.offset.reset`; raises as `Positions.reset`."""
        member = self._member
        self._positions.find(partitions, (lambda partition: None) if member is None else member.committed_of)

    def close(self) -> None:
        """Hand out nothing more; the caller is inside `use`."""
        self._iteration = _NOTHING
        self._fetcher.close()
        self.is_closed = True
        self.owner = 0  # an iteration that is interrupted before it takes a record looks at this last

    # -- steps ------------------------------------------------------------------------------------------------------

    def _handed_out(self, timeout_ms: float, read: Callable[[], tuple[T, NextOffsets]]) -> T:
        """Return what `_awaited` returns, and move the positions behind it; an interrupt moves them back."""
        duration("timeout_ms", timeout_ms)
        before = None
        try:
            with self._reading():
                with self:
                    self._iteration = _NOTHING
                    found, moved = self._awaited(timeout_ms, read)
                    before = {partition: self._positions.get(partition) for partition in moved}
                    self._positions.advance_all(moved)
                    self._fetcher.confirm()
                self.raise_if_closing()  # last: nothing is handed out after a close
                return found
        except BaseException:
            if before is not None:  # nothing reaches the program: it must get the records again
                self._positions.take_back(before)
            self._close_if_asked()
            raise

    def _awaited(self, timeout_ms: float, read: Callable[[], tuple[T, NextOffsets]]) -> tuple[T, NextOffsets]:
        """Call `read` until it gives records or the time is up; return them and the positions behind them."""
        end_s = clock.monotonic_s() + timeout_ms / 1000
        while True:
            self.raise_if_closing()
            self._keep_up()
            found, moved = read()
            if found:
                return found, moved
            # behind data without records for the consumer
            self._positions.advance_all(moved)
            self._fetcher.confirm()
            if not self._has_waited(end_s):
                return found, moved

    def _has_waited(self, end_s: float) -> bool:
        """Pause before another attempt, until an append to an assigned partition or a wakeup; False at the end."""
        left_s = end_s - clock.monotonic_s()
        if left_s <= 0:
            return False
        is_all_told = not self._positions.subscription.is_shared and self._config["fetch.min.bytes"] <= 1
        # without a group, a minimum and an unknown position only appends matter, and those end the pause
        pause_s = LOOK_AGAIN_S if is_all_told and not self._positions.unknown() else _PAUSE_S
        self._fetcher.wait(min(pause_s, left_s))
        return True

    def _next_iteration(self) -> Iteration:
        """Return the records at hand if one is left and still valid, else read the next ones."""
        try:
            return self._read_iteration()
        except IllegalStateError:
            self._close_if_asked()
            if self.is_closed:  # as by a signal handler, in the middle of a loop
                raise StopIteration from None
            raise

    def _read_iteration(self) -> Iteration:
        with self._reading():
            with self:
                iteration = self._iteration
                if iteration.row < len(iteration.records):
                    self._keep_up()
                if iteration.row >= len(iteration.records) or iteration.change_count != self._positions.change_count:
                    count_max = self._config["max.poll.records"]
                    found, moved = self._awaited(self._timeout_ms, partial(self._fetcher.collect, count_max))
                    if not found:
                        raise StopIteration
                    iteration = self._iteration = Iteration(found, moved, self._positions.change_count)
                self._next_poll_s = clock.monotonic_s() + _POLL_INTERVAL_S
            self.raise_if_closing()
            return iteration

    def _reading(self) -> threading.Lock:
        """Return `_marked` for a call that hands out records; raise ReentrantCallError inside of another call."""
        if not self._waiting.locked():
            return self._waiting
        if self.is_interrupted:
            raise ReentrantCallError(
                "The consumer is read in the middle of another call of it in the same thread, as from a signal handler",
                advice="let the handler set a flag, and act upon it when the interrupted call has returned",
            )
        return self._marked()

    def _marked(self) -> threading.Lock:
        """Return the lock that marks a call which reads or waits; inside of such a call one that nobody looks at."""
        return threading.Lock() if self._waiting.locked() else self._waiting

    def _entered(self) -> None:
        """Move the positions behind what the iteration has handed out, unless a change such as `seek` came since.

        Raises DataDirectoryError in the child of a fork.
        """
        self._store.require_same_process()
        iteration = self._iteration
        if iteration.settled_row != iteration.row and iteration.change_count == self._positions.change_count:
            self._positions.advance_all(iteration.positions())
            iteration.settled_row = iteration.row
            if iteration.row == len(iteration.records):
                self._fetcher.confirm()

    def _keep_up(self) -> None:
        """Do what precedes a read: raise a wakeup, take part in the group, commit, find positions."""
        if self._is_woken:
            self.raise_if_woken()
        self._store.require_open()  # no rebalance of a closed store ends, so that a member would wait for ever
        state, member = self._positions.subscription, self._member
        if not state.is_assigned and (member is None or not state.is_shared):
            raise IllegalStateError("Consumer is not subscribed to any topics or assigned any partitions")
        if member is not None:
            if state.is_shared:
                member.poll(self.listener)
            member.commit_automatically()
        unknown = self._positions.unknown()
        if unknown:
            with suppress(UnknownTopicOrPartitionError):  # the read raises it, in the turn of the partition
                self.find_positions(unknown)
