"""Where a log ends: the quick way over the last headers and the long way say the same, whatever was cut or damaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from struct import Struct

import numpy as np
import pytest

from logstore.errors import LogstoreError
from logstore.layout.batch import HEADER_SIZE, LOG_OVERHEAD_SIZE
from logstore.layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, base_offset_of
from logstore.log.segment.log_segment import LogSegment
from logstore.log.segment.writable_folder import WritableFolder
from logstore.view import segment as view_segment
from logstore.view.batch_search import quick_end
from tests.support.sampling import IS_LONG
from tests.support.seams import UnsyncedSeam

GOLDENS = ("random", "transactions", "killed", "edges", "legacy", "compacted")
DAMAGE_COUNT = 20 if IS_LONG else 4  # of each segment


def end_of(path: Path, *, is_quick: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patch:
        if not is_quick:
            patch.setattr(view_segment, "quick_end", lambda data, offset: None)
        directory = WritableFolder(str(path.parent), UnsyncedSeam())
        try:
            return str(LogSegment.open(directory, base_offset_of(path.name)).highest_end()[:2])
        except LogstoreError as error:
            return f"{type(error).__name__}: {error}"


def is_found_quickly(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    ends: list[int | None] = []

    def told(data: np.ndarray, offset: int) -> int | None:
        ends.append(quick_end(data, offset))
        return ends[-1]

    with monkeypatch.context() as patch:
        patch.setattr(view_segment, "quick_end", told)
        end_of(path, is_quick=True, monkeypatch=patch)
    return ends not in ([], [None])


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Cut somewhere, or with another byte, most often in a header."""
    if draw.random() < 0.4 or not content:
        return content[: draw.randrange(len(content) + 1)]
    place = draw.randrange(min(len(content), 120)) if draw.random() < 0.3 else draw.randrange(len(content))
    return content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :]


@pytest.mark.parametrize("name", GOLDENS)
def test_both_ways_find_the_same_end(
    name: str, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(name)
    quick_count = 0
    for log in sorted(golden(name).rglob("*" + LOG_SUFFIX)):
        copy = tmp_path / log.name
        index = log.with_suffix(OFFSET_INDEX_SUFFIX)
        for number in range(DAMAGE_COUNT):
            content = log.read_bytes()
            copy.write_bytes(content if number == 0 else damaged(content, draw))
            if index.exists():
                entries = index.read_bytes()
                copy.with_suffix(OFFSET_INDEX_SUFFIX).write_bytes(entries if number % 2 else damaged(entries, draw))
            ends = [end_of(copy, is_quick=is_quick, monkeypatch=monkeypatch) for is_quick in (True, False)]
            assert ends[0] == ends[1], (log, number)
        quick_count += is_found_quickly(log, monkeypatch)
    assert (quick_count > 0) == (name != "legacy"), "which is of older magics"


@pytest.mark.parametrize(
    ("offsets", "end"),
    [
        ([(5, 9)], 10),
        ([(5, 9), (10, 10), (14, 20)], 21),
        ([(5, 9), (9, 12)], None),  # goes back: the long way may find no batch at all
        ([(5, 9), (10, 9)], None),
        ([(8, 9)], None),  # does not hold the offset that is looked for
        ([(3, 6)], None),
        ([(5, 9), (2**63 - 3, 2**63 - 1)], None),  # nothing can follow
        ([], None),
    ],
    ids=str,
)
def test_only_what_is_in_order_is_found_the_quick_way(offsets: list[tuple[int, int]], end: int | None) -> None:
    assert quick_end(np.frombuffer(b"".join(map(header, offsets)), np.uint8), 7) == end


def header(ends: tuple[int, int]) -> bytes:
    """Of a batch from its first offset to its last, without records."""
    base_offset, last_offset = ends
    length = HEADER_SIZE - LOG_OVERHEAD_SIZE
    fields = Struct(">qi4xb6xi").pack(base_offset, length, 2, min(last_offset - base_offset, 2**31 - 1))
    return fields.ljust(HEADER_SIZE, b"\0")
