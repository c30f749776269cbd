"""Files dumped side by side, their text written in the order they were asked for.

Each file is a job with a few buffers; workers fill them, the main thread writes them out. A worker that is ahead waits
when its buffers are full, so memory does not grow with the files.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator

from .findings import Findings
from .output import Buffer, Output, new_buffer

BUFFER_COUNT = 3  # a job's: one being filled, one being written, one between
JOBS_AHEAD_COUNT = 4

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
        self._filled: queue.Queue[tuple[Buffer, int] | None] = queue.Queue()
        self._empty: queue.Queue[Buffer | None] = queue.Queue()
        self._buffer_count = 1

    def run(self, dump: Dump) -> None:
        """Dump the file, in a worker."""
        output = Output(self._hand_over)
        try:
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
        self._empty.put(None)

    def _hand_over(self, array: Buffer, size: int) -> Buffer:
        self._filled.put((array, size))
        if self._buffer_count < BUFFER_COUNT and self._empty.empty():
            self._buffer_count += 1
            return new_buffer()
        empty = self._empty.get()
        if empty is None:
            raise _Cancelled
        return empty


def run_jobs(paths: list[str], dump: Dump) -> Iterator[Job]:
    """Jobs in the order of `paths`, started by as many workers as there are processors.

    The caller takes each job's buffers before it asks for the next job; when it stops asking, the workers end.
    """
    jobs = [Job(path) for path in paths]
    may_start = threading.Semaphore(JOBS_AHEAD_COUNT)
    pending = iter(jobs)
    lock = threading.Lock()
    stopped = threading.Event()

    def work() -> None:
        while True:
            may_start.acquire()
            with lock:
                job = None if stopped.is_set() else next(pending, None)
            if job is None:
                may_start.release()
                return
            job.run(dump)

    for _ in range(min(os.cpu_count() or 1, len(jobs))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for job in jobs:
            yield job
            may_start.release()
    finally:
        stopped.set()
        may_start.release()
        for job in jobs:
            job.cancel()
