"""Files dumped side by side, their text written in the order they were asked for.

Each file is a job with a few buffers; workers fill them, the main thread writes them out. Memory does not grow with the
files: a worker waits while its buffers are full, and only a few jobs run at once.
"""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

from .findings import Findings
from .output import Buffer, Output, new_buffer

BUFFER_COUNT = 3  # of a job: one being filled, one being written, one between
JOB_COUNT = 4  # running, or done and not yet written

Dump = Callable[[str, Output, Findings], None]


class _Cancelled(Exception):
    """The main thread has cancelled the job."""


class Job:
    """The dump of one file: its text in buffers, its findings, and the error that ended it."""

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
        """Dump the file, in a worker; `advance` gets the number of bytes done."""

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
        except BaseException as error:  # the main thread raises it again, but for a job that it has cancelled
            self.error = error
        finally:
            self._filled.put(None)

    def buffers(self) -> Iterator[tuple[Buffer, int]]:
        """Yield filled buffers in order, in the main thread; each is reused once the next is asked for."""
        while (filled := self._filled.get()) is not None:
            yield filled
            self._empty.put(filled[0])

    def cancel(self) -> None:
        """Make the worker stop at its next buffer or window."""
        self._is_cancelled = True
        self._empty.put(None)  # wakes a worker that waits for a buffer

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
    """Yield jobs in the order of `paths`, run by as many workers as there are processors.

    The caller takes all buffers of a job before it asks for the next job. Closing the generator cancels the jobs and
    waits for the workers.
    """
    under_way: deque[Job] = deque()
    with ThreadPoolExecutor(min(os.cpu_count() or 1, JOB_COUNT)) as pool:
        try:
            for path in paths:
                under_way.append(Job(path))
                pool.submit(under_way[-1].run, dump, advance)
                if len(under_way) < JOB_COUNT:
                    continue
                yield under_way[0]  # it stays in the queue meanwhile, so that closing cancels it too
                under_way.popleft()
            for job in list(under_way):
                yield job
                under_way.popleft()
        finally:
            for job in under_way:
                job.cancel()
