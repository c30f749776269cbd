"""CRC-32C of any part of a buffer, by the processor's instruction, by tables and bit by bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logstore.kernels.scan.crc32c import BLOCK_SIZE, crc32c, crc32c_range
from tests.naive import checksum
from tests.support.crc32c_ways import crcs_of


@given(st.binary(max_size=7 * BLOCK_SIZE), st.data())
def test_all_ways_lead_to_one_checksum(data: bytes, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    expected = checksum.crc32c(data[start:end])
    assert crcs_of(data, start, end) == {expected}
    assert crc32c_range(np.frombuffer(data, np.uint8), start, end) == crc32c(data[start:end]) == expected


@given(st.binary(min_size=1, max_size=200), st.data())
def test_every_changed_bit_changes_the_checksum(data: bytes, draw: st.DataObject) -> None:
    changed = bytearray(data)
    changed[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    assert crc32c(changed) != crc32c(data)
