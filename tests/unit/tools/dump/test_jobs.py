"""Files dumped side by side: in order, with bounded memory, and nothing left behind when the reader leaves."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import closing

import pytest

from logstore_tools.dump import jobs as module
from logstore_tools.dump.findings import Findings
from logstore_tools.dump.jobs import BUFFER_COUNT, JOB_COUNT, run_jobs
from logstore_tools.dump.output import BUFFER_SIZE, Buffer, Output, new_buffer

FILES = [f"{number}.log" for number in range(40)]
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def ignore(size: int) -> None:
    """Progress that nobody watches."""


def echo(path: str, out: Output, findings: Findings) -> None:
    findings.immediate(f"about {path}")
    out.print(path)


def three_buffers_and_a_bit(path: str, out: Output, findings: Findings) -> None:
    for _ in range(3):
        out.write(bytes(BUFFER_SIZE))
    out.print(path)


def text_of(job: module.Job) -> bytes:
    return b"".join(array[:size].tobytes() for array, size in job.buffers())


def test_jobs_come_in_the_order_of_their_files() -> None:
    with closing(run_jobs(FILES, echo, ignore)) as jobs:
        found = [(job.path, text_of(job), job.immediate_lines, job.error) for job in jobs]
    assert found == [(path, f"{path}\n".encode(), [f"about {path}"], None) for path in FILES]


def test_no_files_are_no_jobs() -> None:
    assert list(run_jobs([], echo, ignore)) == []


def test_the_error_of_a_file_comes_after_its_text_and_stops_no_other() -> None:
    def dump(path: str, out: Output, findings: Findings) -> None:
        out.print(path)
        if path == "3.log":
            raise ValueError(path)

    with closing(run_jobs(FILES, dump, ignore)) as jobs:
        found = [(text_of(job), repr(job.error)) for job in jobs]
    assert found[3] == (b"3.log\n", "ValueError('3.log')")
    assert [error for _, error in found].count("None") == len(FILES) - 1
    assert found[-1][0] == b"39.log\n"


def test_a_worker_without_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_buffer() -> Buffer:
        raise MemoryError

    monkeypatch.setattr("logstore_tools.dump.output.new_buffer", no_buffer)
    with closing(run_jobs(FILES, echo, ignore)) as jobs:
        found = [(text_of(job), repr(job.error)) for job in jobs]
    assert found == [(b"", "MemoryError()")] * len(FILES)


def test_buffers_do_not_grow_with_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Buffer]] = []
    counts = []

    def counted() -> Buffer:
        array = new_buffer()
        made.append(weakref.ref(array))
        counts.append(sum(each() is not None for each in made))
        return array

    monkeypatch.setattr(module, "new_buffer", counted)
    monkeypatch.setattr("logstore_tools.dump.output.new_buffer", counted)
    with closing(run_jobs(FILES, three_buffers_and_a_bit, ignore)) as jobs:
        sizes = [len(text_of(job)) for job in jobs]
    assert sizes == [3 * BUFFER_SIZE + len(path) + 1 for path in FILES]
    assert max(counts) <= JOB_COUNT * BUFFER_COUNT


def test_workers_wait_for_a_slow_writer() -> None:
    started = []

    def dump(path: str, out: Output, findings: Findings) -> None:
        started.append(path)
        three_buffers_and_a_bit(path, out, findings)

    with closing(run_jobs(FILES, dump, ignore)) as jobs:
        for index, job in enumerate(jobs):
            assert len(started) <= index + JOB_COUNT
            assert len(text_of(job)) > BUFFER_SIZE
    assert started == FILES


@pytest.mark.parametrize("read_count", [0, 1, 3])
def test_workers_end_when_nobody_reads_on(read_count: int) -> None:
    def dump(path: str, out: Output, findings: Findings) -> None:
        while True:
            out.write(bytes(BUFFER_SIZE))

    with closing(run_jobs(FILES, dump, ignore)) as jobs:
        buffers = next(jobs).buffers()
        assert [next(buffers)[1] for _ in range(read_count)] == [BUFFER_SIZE] * read_count


def test_workers_that_print_nothing_end_at_their_next_window() -> None:
    is_under_way = threading.Event()

    def dump(path: str, out: Output, findings: Findings) -> None:
        while True:
            out.advance(1)
            is_under_way.set()

    with closing(run_jobs(FILES, dump, ignore)) as jobs:
        next(jobs)
        assert is_under_way.wait(PATIENCE_S)


def test_the_bytes_done_are_told() -> None:
    told = []

    def dump(path: str, out: Output, findings: Findings) -> None:
        out.advance(len(path))

    with closing(run_jobs(FILES, dump, told.append)) as jobs:
        for job in jobs:
            assert text_of(job) == b""
    assert sorted(told) == sorted(len(path) for path in FILES)
