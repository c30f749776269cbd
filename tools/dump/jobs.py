"""Files dumped side by side, their text written in the order they were asked for, and how far that is.

Each file is a job with a few buffers; workers fill them, the main thread writes them out. A worker that is ahead waits
when its buffers are full, and only a few jobs are under way, so memory does not grow with the files.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, TextIO

from logstore.clock import monotonic_s

from .findings import Findings
from .output import Buffer, Output, new_buffer

BUFFER_COUNT = 3  # a job's: one being filled, one being written, one between
JOB_COUNT = 4  # under way: being dumped, or done and not yet written
INTERVAL_S = 0.2
SIZE_MIN = 32 * 1024 * 1024  # bytes of input below which a dump is over before a line would help
_REMOVE = "\r\033[K"

Dump = Callable[[str, Output, Findings], None]


class _Cancelled(Exception):
    """The main thread wants no more of a job."""


class Job:
    """One file: its text in buffers, what it found, what it died of."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.immediate_lines: list[str] = []
        self.findings = Findings(self.immediate_lines.append)
        self.error: BaseException | None = None
        self._filled: queue.SimpleQueue[tuple[Buffer, int] | None] = queue.SimpleQueue()
        self._empty: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        self._buffer_count = 1
        self._is_cancelled = False

    def run(self, dump: Dump, advance: Callable[[int], None]) -> None:
        """Dump the file, in a worker; `advance` is told the bytes done."""

        def advance_or_stop(size: int) -> None:
            self._stop_if_cancelled()
            advance(size)

        try:
            self._stop_if_cancelled()
            output = Output(self._hand_over, advance_or_stop)
            try:
                dump(self.path, output, self.findings)
            finally:
                output.flush()
        except _Cancelled:
            return
        except BaseException as error:  # raised again by the main thread
            self.error = error
        finally:
            self._filled.put(None)

    def buffers(self) -> Iterator[tuple[Buffer, int]]:
        """Filled buffers in order, in the main thread; each is reused once the next is asked for."""
        while (filled := self._filled.get()) is not None:
            yield filled
            self._empty.put(filled[0])

    def cancel(self) -> None:
        """Let the worker go."""
        self._is_cancelled = True
        self._empty.put(None)

    def _hand_over(self, array: Buffer, size: int) -> Buffer:
        self._stop_if_cancelled()
        self._filled.put((array, size))
        if self._buffer_count < BUFFER_COUNT and self._empty.empty():
            self._buffer_count += 1
            return new_buffer()
        empty = self._empty.get()
        if empty is None:
            raise _Cancelled
        return empty

    def _stop_if_cancelled(self) -> None:
        if self._is_cancelled:
            raise _Cancelled


def run_jobs(paths: list[str], dump: Dump, advance: Callable[[int], None]) -> Generator[Job, None, None]:
    """Jobs in the order of `paths`, run by as many workers as there are processors.

    The caller takes each job's buffers before it asks for the next job. When it closes the generator the workers stop
    at their next buffer or window, and are waited for.
    """
    under_way: deque[Job] = deque()
    with ThreadPoolExecutor(min(os.cpu_count() or 1, JOB_COUNT)) as pool:
        try:
            for path in paths:
                under_way.append(Job(path))
                pool.submit(under_way[-1].run, dump, advance)
                if len(under_way) == JOB_COUNT:
                    yield under_way[0]
                    under_way.popleft()
            while under_way:
                yield under_way[0]
                under_way.popleft()
        finally:
            for job in under_way:
                job.cancel()


class Progress:
    """One line on stderr that is rewritten in place; safe to be told of progress by many threads.

    Silent where stderr is no terminal, where stdout is one (its lines are the progress), and where the input is small.
    """

    def __init__(self, stderr: TextIO, stdout: BinaryIO, input_size: int) -> None:
        self._stream = stderr
        self._input_size = input_size
        self._is_shown = input_size >= SIZE_MIN and stderr.isatty() and not stdout.isatty()
        self._done_size = 0
        self._next_s = 0.0
        self._is_line_there = False
        self._lock = threading.Lock()

    def advance(self, size: int) -> None:
        """`size` more bytes of input are dumped."""
        if not self._is_shown:
            return
        with self._lock:
            self._done_size += size
            now_s = monotonic_s()
            if now_s >= self._next_s:
                self._next_s = now_s + INTERVAL_S
                self._write()

    def clear(self) -> None:
        """Remove the line, so that another one can be printed."""
        with self._lock:
            if self._is_line_there:
                self._is_line_there = False
                self._stream.write(_REMOVE)
                self._stream.flush()

    def _write(self) -> None:
        percent = min(100 * self._done_size // self._input_size, 100)
        self._is_line_there = True
        self._stream.write(f"\rlogstore: {percent:3d} % of {self._input_size / 2**30:.2f} GiB dumped")
        self._stream.flush()
