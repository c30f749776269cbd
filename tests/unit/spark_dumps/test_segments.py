"""Which entries of an offset index a query goes by: those before the first that cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from logstore.disk.loaded import LoadedFile
from logstore.layout.offset_index import ENTRY_SIZE
from spark_dumps import segments
from tests.support.encoder import Batch, Rec

BASE_OFFSET, END = 1000, 90
# small numbers, so that many ascend, and what no index has
entries = st.lists(st.tuples(st.integers(-2, 40), st.integers(-2, 100)), max_size=12)


def index_of(directory: Path, found: list[tuple[int, int]], tail: bytes = b"") -> str:
    path = directory / f"{BASE_OFFSET:020d}.index"
    path.write_bytes(np.array(found, ">i4").tobytes() + tail)
    return str(path)


def usable(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The naive twin."""
    good: list[tuple[int, int]] = []
    last = (-1, 0)
    for entry in found:
        if entry[0] <= last[0] or not last[1] < entry[1] < END:
            break
        good.append((BASE_OFFSET + entry[0], entry[1]))
        last = entry
    return good


@given(entries, st.booleans(), st.integers(0, ENTRY_SIZE - 1))
def test_entries_count_up_to_the_first_that_cannot_be(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[int, int]], is_sorted: bool, tail_size: int
) -> None:
    if is_sorted:
        found = list(zip(sorted(one for one, _ in found), sorted(other for _, other in found), strict=True))
    path = index_of(tmp_path_factory.mktemp("index"), found, b"\x00" * tail_size)
    for piece_size in (ENTRY_SIZE, 3 * ENTRY_SIZE, segments.PIECE_SIZE):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(segments, "PIECE_SIZE", piece_size)
            read = segments.read_entries(path, END)
        assert [*zip(read.last_offsets.tolist(), read.positions.tolist(), strict=True)] == usable(found)
        assert read.end == END


def test_the_zeros_of_an_index_that_is_being_written_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    parse = segments.parse_offset_index

    def counted(data: np.ndarray, **names: object) -> object:
        parsed.append(len(data))
        return parse(data, **names)

    monkeypatch.setattr(segments, "parse_offset_index", counted)
    path = index_of(tmp_path, [(4, 50), (9, 70)], bytes(10 * 1024 * 1024))
    assert segments.read_entries(path, END).positions.tolist() == [50, 70]
    assert parsed == [segments.PIECE_SIZE]


def test_an_index_may_be_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the segment rolls; a link is followed."""
    path = index_of(tmp_path, [(4, 50), (9, 70)], bytes(10 * 1024 * 1024))
    link = tmp_path / "elsewhere" / Path(path).name
    link.parent.mkdir()
    link.symlink_to(path)
    parse = segments.parse_offset_index

    def cut(data: np.ndarray, **names: object) -> object:
        os.truncate(path, 2 * ENTRY_SIZE)
        return parse(data, **names)

    monkeypatch.setattr(segments, "parse_offset_index", cut)
    monkeypatch.setattr(segments, "PIECE_SIZE", ENTRY_SIZE)
    assert segments.read_entries(str(link), END).positions.tolist() == [50, 70]


def test_without_an_index_there_are_none() -> None:
    assert segments.read_entries(None, END).positions.size == 0


def test_an_entry_of_an_append_of_several_batches_is_used(tmp_path: Path) -> None:
    """Kafka before 4.1 gives it the position of the first batch and the offset of the last."""
    batches = [Batch(BASE_OFFSET + 3 * number, [Rec(value=b"v")] * 3, 2).to_bytes() for number in range(8)]
    size = len(batches[0])
    (tmp_path / "log").write_bytes(b"".join(batches))
    index = index_of(tmp_path, [(11, size), (20, 4 * size), (23, 7 * size + 1)])  # the last leads into a batch
    entries = segments.read_entries(index, 8 * size)
    with LoadedFile(str(tmp_path / "log")) as log:
        assert entries.position_at_or_before(log, BASE_OFFSET + 21) == 4 * size
        assert entries.position_at_or_before(log, BASE_OFFSET + 10) == 0
        assert entries.position_behind(log, BASE_OFFSET + 9) == 4 * size
        assert entries.position_to(log, 8 * size) == 4 * size


def test_an_entry_whose_batch_has_other_offsets_is_not_used(tmp_path: Path) -> None:
    batches = [Batch(BASE_OFFSET + 3 * number, [Rec(value=b"v")] * 3, 2).to_bytes() for number in range(8)]
    size = len(batches[0])
    (tmp_path / "log").write_bytes(b"".join(batches))
    with LoadedFile(str(tmp_path / "log")) as log:
        for found in [(4, size)], [(5, size), (11, 2 * size)], [(14, size), (20, 4 * size)]:
            expected = {(4, size): 0, (5, size): 2 * size, (14, size): size}[found[0]]
            entries = segments.read_entries(index_of(tmp_path, found), 8 * size)
            assert entries.position_to(log, 8 * size) == expected
