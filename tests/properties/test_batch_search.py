"""The quick search of a batch, the whole one and the one piece by piece agree, also where bytes are wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.columns.batch_table import BatchTable
from logstore.errors import LogstoreError
from logstore.view import batch_search
from logstore.view.batch_search import BatchPlace, batch_tables, quick_search, read_batch_tables, search
from tests.support.encoder import Batch, Rec

OFFSETS = st.integers(0, 30) | st.sampled_from([2**63 - 1, -(2**63), 2**63 - 3])


@st.composite
def segments(draw: st.DrawFn) -> bytes:
    """Up to forty batches behind one another, some bytes of them changed, or the end cut off."""
    parts, base_offset = [], 0
    for _ in range(draw(st.integers(0, 40))):
        base_offset = (
            draw(OFFSETS) if draw(st.integers(0, 9)) == 0 else min(base_offset, 2**62) + draw(st.integers(0, 3))
        )
        delta = draw(st.sampled_from([0, 0, 1, 2, -1, 2**31 - 1]))
        parts.append(Batch(base_offset, [Rec(b"k", b"v")], last_offset_delta=delta).to_bytes())
    content = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 2))):
        if content:
            content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content)


PATH = "/d/0.log"
Batches = Iterator[tuple[int, np.ndarray, BatchTable]]


def whole(data: np.ndarray, position: int) -> Batches:
    return ((0, data, table) for table in batch_tables(data, position, PATH, first_capacity=128))


def piece_by_piece(data: np.ndarray, position: int) -> Batches:
    return read_batch_tables(lambda start, size: data[start : start + size], position, data.size, PATH, capacity=128)


def answer(batches: Batches, offset: int) -> BatchPlace | str | None:
    try:
        return search(batches, offset)
    except LogstoreError as error:
        return f"{type(error).__name__} {error}"


@example(content=b"", offset=0, position=0)
@given(content=segments(), offset=OFFSETS, position=st.sampled_from([0, 0, 0, 1, 70, 5000]))
def test_all_searches_agree(content: bytes, offset: int, position: int) -> None:
    data = np.frombuffer(content, np.uint8)
    found = answer(whole(data, position), offset)
    quick = quick_search(data, offset, position)
    assert not quick.is_answer or quick.place == found
    if position <= data.size:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch_search, "_WINDOW_SIZE_MIN", 64)
            assert answer(piece_by_piece(data, position), offset) == found
