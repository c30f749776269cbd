"""An exception between any two lines of product code, as Ctrl-C may raise it, during one call.

    tracer = LineTracer(at=17)
    tracer.run(lambda: log.append_records([b"a"]))
    tracer.was_interrupted, tracer.place

Left out are lines before which no signal is delivered: `try:`, and a `with` line that is come to a second time, before
its `__exit__`. Nothing keeps the traceback, whose frames may hold locks. Other threads are not traced.
"""

from __future__ import annotations

import linecache
import opcode
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import logstore

PRODUCT = str(Path(logstore.__file__).parent) + os.sep
# What the part of a `with` line begins with that calls `__exit__`, in order or after an exception.
_EXIT_OPCODES = {opcode.opmap[name] for name in ("LOAD_CONST", "PUSH_EXC_INFO", "SWAP", "COPY", "POP_TOP", "NOP")}

# What is being executed when the tracer is told of the line that a loop goes back to, from Python 3.12 on.
_BACK_OPCODE = {(3, 11): None, (3, 12): opcode.opmap["FOR_ITER"]}.get(
    sys.version_info[:2], opcode.opmap["JUMP_BACKWARD"]
)

PLACE_DEPTH = 4
AGAIN_S = 20e-6  # after a signal that came to no code of the product; twice as long each time, or a busy machine
AGAIN_S_MAX = 0.01  # would do nothing but take signals

Call = Callable[[], object]


@contextmanager
def traced(on_line: Callable[[FrameType], object]) -> Iterator[None]:
    """Call `on_line` in a `with` block before each line of the product that this thread comes to."""

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        return on_event if frame.f_code.co_filename.startswith(PRODUCT) else None

    def on_event(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            on_line(frame)
        return on_event

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


class Interrupt(ABC):
    """A KeyboardInterrupt at one moment of a call.

    Attributes:
        place: the line of product code that it came at, as `log/roll.py:17 roll < log/partition_log.py:113`; "": none.
        was_swallowed: the call ended in order after it.
    """

    def __init__(self) -> None:
        self.place = ""
        self.was_swallowed = False

    @property
    def was_interrupted(self) -> bool:
        """Whether the call came so far."""
        return self.place != ""

    def run(self, call: Call) -> None:
        """Make the call; what it raises is raised, but for the interrupt."""
        try:
            with self._armed():
                call()
            self.was_swallowed = self.was_interrupted
        except KeyboardInterrupt:
            if not self.was_interrupted:
                raise

    @abstractmethod
    def _armed(self) -> AbstractContextManager[None]:
        """While this is entered, the interrupt may come."""


class LineTracer(Interrupt):
    """Counts the lines of product code that a call comes to, and raises KeyboardInterrupt before one of them.

    Attributes:
        line_count: lines that were come to.
    """

    def __init__(self, at: int | None = None) -> None:
        """`at`: the line before which to raise, the first being 0; None: never."""
        super().__init__()
        self.line_count = 0
        self._at = at

    def _armed(self) -> AbstractContextManager[None]:
        return traced(self._on_line)

    def _on_line(self, frame: FrameType) -> None:
        if is_left_out(frame):
            return
        if not self.place and self._at is not None and self.line_count >= self._at and not _is_finalizer(frame):
            self.place = place_of(frame)
            raise KeyboardInterrupt
        self.line_count += 1


class Alarm(Interrupt):
    """A signal handler that raises KeyboardInterrupt some time after a call began, wherever Python delivers signals.

    Its place is the line of product code that was executed, or that called what was.
    """

    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self._delay_s, self._again_s = delay_s, AGAIN_S
        self._is_armed = False

    @contextmanager
    def _armed(self) -> Iterator[None]:
        before, hook = signal.signal(signal.SIGALRM, self._on_signal), sys.unraisablehook
        sys.unraisablehook = self._on_unraisable
        self._is_armed = True
        signal.setitimer(signal.ITIMER_REAL, self._delay_s)
        try:
            yield
        finally:
            self._is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = hook

    def _on_unraisable(self, unraisable: object) -> None:
        """Python ran a finalizer or a callback of a weak reference, from which no exception comes out; try again."""
        self.place = ""
        self._is_armed = True
        self._try_again()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_raised = self._is_armed and frame is not None and not _is_finalizer(frame)
        while frame is not None and not frame.f_code.co_filename.startswith(PRODUCT):
            frame = frame.f_back
        if is_raised and frame is not None:
            self._is_armed = False  # once
            self.place = place_of(frame)
            raise KeyboardInterrupt
        if self._is_armed:
            self._try_again()

    def _try_again(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._again_s)
        self._again_s = min(self._again_s * 2, AGAIN_S_MAX)


def interrupted_at(line_count: int, call: Call) -> bool:
    """Interrupt a call before this line of the product, the first being 0; whether it came so far."""
    tracer = LineTracer(line_count)
    tracer.run(call)
    return tracer.was_interrupted


def place_of(frame: FrameType) -> str:
    """The line that a frame of product code is at, and those that called it, the nearest first."""
    places = [f"{_line(frame)} {frame.f_code.co_qualname}"]
    while (
        frame.f_back is not None and len(places) < PLACE_DEPTH and frame.f_back.f_code.co_filename.startswith(PRODUCT)
    ):
        frame = frame.f_back
        places.append(_line(frame))
    return " < ".join(places)


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename.removeprefix(PRODUCT)}:{frame.f_lineno}"


def _is_finalizer(frame: FrameType | None) -> bool:
    """Whether Python runs a `__del__`, or the hook that is told of one, from which no exception comes out."""
    while frame is not None and frame.f_code.co_name not in ("__del__", "_on_unraisable"):
        frame = frame.f_back
    return frame is not None


def is_left_out(frame: FrameType) -> bool:
    """Whether no signal is delivered at the line: a `try:`, or the end of a `with` block, before `__exit__`.

    Nor at the line that a loop goes back to, from Python 3.12 on: what the tracer raises there ends no block of the
    function if the loop is a comprehension, where the exception of a signal does.
    """
    if _instructions(frame.f_code)[frame.f_lasti] == _BACK_OPCODE:
        return True
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
    if line.startswith("try:"):
        return True
    return line.startswith("with ") and _instructions(frame.f_code)[frame.f_lasti] in _EXIT_OPCODES


@cache
def _instructions(code: CodeType) -> bytes:
    return code.co_code
