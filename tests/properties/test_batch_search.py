"""The quick search of a batch finds what the whole one finds, also where offsets, sizes or bytes are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.errors import LogstoreError
from logstore.log import batch_search
from logstore.log.batch_search import BatchPlace, search
from tests.naive.encoder import Batch, Rec

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


def answer(data: np.ndarray, offset: int, position: int) -> BatchPlace | str | None:
    try:
        return search(data, offset, position, lambda: "/d/0.log")
    except LogstoreError as error:
        return f"{type(error).__name__} {error}"


@example(content=b"", offset=0, position=0)
@given(content=segments(), offset=OFFSETS, position=st.sampled_from([0, 0, 0, 1, 70, 5000]))
def test_quick_and_whole_searches_agree(content: bytes, offset: int, position: int) -> None:
    data = np.frombuffer(content, np.uint8)
    quick = answer(data, offset, position)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_search, "_QUICK_COUNT", 0)
        patch.setattr(batch_search, "_quick_search", lambda *_: (False, None))
        assert answer(data, offset, position) == quick
