"""Before a round there is as much memory as it will write, in the pieces in which it will be asked for."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from benchmarks import memory

MIB = 1 << 20


class Scratch:
    """A file whose first `waiting_size` bytes wait for their memory; it is its own clock."""

    def __init__(self, waiting_size: int) -> None:
        self.waiting_size = waiting_size
        self.written: list[int] = []
        self.seconds = 0.0

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def writelines(self, pieces: Iterable[bytes]) -> None:
        for size in map(len, pieces):
            waits = sum(self.written) < self.waiting_size
            self.seconds += size * memory.WAITING_S_PER_BYTE * (2 if waits else 0.4)
            self.written.append(size)


@pytest.fixture(params=[0])
def scratch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    scratch = Scratch(request.param)
    monkeypatch.setattr(memory.tempfile, "TemporaryFile", lambda buffering: scratch)
    monkeypatch.setattr(memory.time, "perf_counter", lambda: scratch.seconds)
    return scratch


def test_as_much_as_a_round_writes_is_written_before_it_and_some_to_spare(scratch: Scratch) -> None:
    memory.make_ready(3 * MIB)
    assert 6 * MIB <= sum(scratch.written) < 7 * MIB
    assert len(set(scratch.written)) == 4


def test_nothing_is_written_for_a_round_that_writes_nothing(scratch: Scratch) -> None:
    memory.make_ready(0)
    assert scratch.written == []


def test_a_round_that_writes_little_has_some_memory_too(scratch: Scratch) -> None:
    memory.make_ready(1)
    assert sum(scratch.written) >= memory.LEAST_SIZE


def test_for_a_round_that_writes_much_there_are_large_pieces_and_small_ones(scratch: Scratch) -> None:
    memory.make_ready(memory.LARGE_SIZE)
    large = [size for size in scratch.written if size == 8 * MIB]
    assert sum(large) >= memory.LARGE_SIZE
    assert sum(scratch.written) - sum(large) >= memory.LARGE_SIZE


@pytest.mark.parametrize("scratch", [7 * MIB], indirect=True)
def test_what_waited_for_its_memory_does_not_count(scratch: Scratch) -> None:
    memory.make_ready(3 * MIB)
    assert sum(scratch.written) >= 2 * 6 * MIB


@pytest.mark.parametrize("scratch", [1 << 62], indirect=True)
@pytest.mark.parametrize("size", [1, 3 * MIB, memory.LARGE_SIZE])
def test_where_all_waits_it_ends(scratch: Scratch, size: int) -> None:
    memory.make_ready(size)
    assert sum(scratch.written) <= 8 * size + 8 * 4 * MIB
