"""Files dumped side by side, their text written in the order they were asked for.

Each file is a job with a few buffers; workers fill them, the main thread writes them out. A worker that is ahead waits
when its buffers are full, and only a few jobs are under way, so memory does not grow with the files.
"""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

from .findings import Findings
from .output import Buffer, Output, new_buffer

BUFFER_COUNT = 3  # a job's: one being filled, one being written, one between
JOB_COUNT = 4  # under way: being dumped, or done and not yet written

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
