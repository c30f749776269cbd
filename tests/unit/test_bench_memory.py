"""Before a round there is as much memory as it will write, in pieces such as it will be asked for."""

from __future__ import annotations

import pytest

from benchmarks import memory

MIB = 1 << 20


class Scratch:
    """A file that forgets all but sizes."""

    def __init__(self) -> None:
        self.written: list[int] = []

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.written.append(len(data))


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Scratch:
    scratch = Scratch()
    monkeypatch.setattr(memory.tempfile, "TemporaryFile", lambda buffering: scratch)
    return scratch


@pytest.mark.parametrize(("call_count", "call_size"), [(1, 3 * MIB), (3 * 1024, 1024), (3, MIB)])
def test_as_much_as_a_round_writes_is_written_before_it_and_some_to_spare(
    call_count: int, call_size: int, scratch: Scratch
) -> None:
    memory.make_ready(call_count, call_size)
    assert 6 * MIB <= sum(scratch.written) < 7 * MIB
    assert len(set(scratch.written)) == 4


def test_nothing_is_written_for_a_round_that_writes_nothing(scratch: Scratch) -> None:
    memory.make_ready(100, 0)
    assert scratch.written == []


def test_a_round_that_writes_little_has_some_memory_too(scratch: Scratch) -> None:
    memory.make_ready(1, 1)
    assert sum(scratch.written) >= memory.LEAST_SIZE


def test_for_a_call_that_writes_much_the_pieces_are_large_and_for_many_that_do_not_small(scratch: Scratch) -> None:
    memory.make_ready(1, memory.LARGE_SIZE)
    assert sum(scratch.written) >= 2 * memory.LARGE_SIZE
    assert set(scratch.written) == {8 * MIB}
    scratch.written.clear()
    memory.make_ready(2, memory.LARGE_SIZE // 2)
    assert sum(scratch.written) >= 2 * memory.LARGE_SIZE
    assert max(scratch.written) == MIB
