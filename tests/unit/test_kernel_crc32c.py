"""CRC-32C: published checksums, every short length, and the joints of the three interleaved streams."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.kernels import crc32c as kernels
from logstore.kernels.crc32c import BLOCK_SIZE, MASK32, crc32c, crc32c_range, crc32c_range_by_tables
from tests.naive import checksum
from tests.naive.dice import Dice
from tests.unit.kernel_forms import Guarded, run_both

RFC_3720 = {
    "32 zeroes": (bytes(32), 0x8A9136AA),
    "32 ones": (b"\xff" * 32, 0x62A8AB43),
    "32 counted up": (bytes(range(32)), 0x46DD794E),
    "32 counted down": (bytes(range(31, -1, -1)), 0x113FDB5C),
    "a SCSI read command": (
        bytes.fromhex("01c00000000000000000000000000000140000000000040000000014000000182800000000000000")
        + bytes.fromhex("0200000000000000"),
        0xD9963A56,
    ),
    "nine digits": (b"123456789", 0xE3069283),
    "nothing": (b"", 0),
}
NOISE = Dice("checksums").take(3 * BLOCK_SIZE * 2 + 64)
THREE_BLOCKS = 3 * BLOCK_SIZE


@pytest.mark.parametrize(("data", "expected"), RFC_3720.values(), ids=RFC_3720)
def test_published_checksums(data: bytes, expected: int) -> None:
    array = np.frombuffer(data, np.uint8)
    assert checksum.crc32c(data) == expected
    assert crc32c(data) == expected
    assert run_both(crc32c_range, array, 0, len(data)) == expected
    assert run_both(crc32c_range_by_tables, array, 0, len(data)) == expected


def test_every_length_up_to_200_from_every_start_in_a_word() -> None:
    data = np.frombuffer(NOISE, np.uint8)
    for size in range(201):
        start = size % 9
        expected = checksum.crc32c(NOISE[start : start + size])
        assert run_both(crc32c_range, data[:250], start, start + size, read_limit=start + size) == expected
        assert crc32c_range_by_tables(data, start, start + size) == expected


@pytest.mark.parametrize("size", [THREE_BLOCKS + more for more in (-8, -1, 0, 1, 7, 8, 9)] + [2 * THREE_BLOCKS + 13])
def test_lengths_around_the_block_that_three_streams_share(size: int) -> None:
    expected = checksum.crc32c(NOISE[3 : 3 + size])
    data = np.frombuffer(NOISE, np.uint8)
    assert crc32c_range(data, 3, 3 + size) == expected
    assert crc32c_range_by_tables(data, 3, 3 + size) == expected


@pytest.mark.parametrize("size", [5, THREE_BLOCKS - 1, THREE_BLOCKS, THREE_BLOCKS + 9])
def test_the_interleaved_form_stays_within_its_part_and_is_right_without_the_instruction(size: int) -> None:
    data = Guarded(np.frombuffer(NOISE, np.uint8), limit=3 + size)
    crc = kernels._update_by_instruction(MASK32, data, 3, 3 + size) ^ MASK32
    assert crc == checksum.crc32c(NOISE[3 : 3 + size])
