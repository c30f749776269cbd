"""CRC-32C (Castagnoli), the checksum of v2 batches and of producer snapshots.

With a CRC-32C instruction (SSE 4.2, ARMv8 CRC) three streams are interleaved, because it has a latency of three cycles
and a throughput of one. Processors without it take eight bytes a step from tables.
Polynomial 0x1EDC6F41, reflected 0x82F63B78 (RFC 3720).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...native.device import constants, device, intrinsic
from ...native.kernel import kernel
from ..primitives import MASK32, little_endian, load64, prefetch

if TYPE_CHECKING:
    import numpy as np

POLYNOMIAL = 0x82F63B78
BLOCK_SIZE = 128  # bytes of each stream before the three are joined: few, so that memory is read nearly in order
AHEAD_SIZE = 4096  # bytes to prefetch ahead; the processor itself does not prefetch across the end of a page


def _tables() -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return table[k, b]: CRC register after byte b and k zero bytes; shape (8, 256)."""
    import numpy as np

    first = np.arange(256, dtype=np.int64)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ POLYNOMIAL, first >> 1)
    rows = [first]
    for _ in range(7):
        rows.append((rows[-1] >> 8) ^ first[rows[-1] & 255])
    return np.ascontiguousarray(rows, dtype=np.int64)


def _shift_tables(zero_size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return table[i, b]: the register b << 8i after `zero_size` zero bytes, a power of two; shape (4, 256).

    The CRC is linear in its register, so a table applied to itself doubles the number of zero bytes.
    """
    import numpy as np

    byte_table = _tables()[0]
    rows = np.stack([np.arange(256, dtype=np.int64) << (8 * i) for i in range(4)])
    table = (rows >> 8) ^ byte_table[rows & 255]
    for _ in range(zero_size.bit_length() - 1):
        table = _applied(table, table)
    return np.ascontiguousarray(table)


def _applied(
    table: np.ndarray[Any, np.dtype[np.int64]], registers: np.ndarray[Any, np.dtype[np.int64]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the registers after the zero bytes of a table."""
    return (
        table[0][registers & 255]
        ^ table[1][registers >> 8 & 255]
        ^ table[2][registers >> 16 & 255]
        ^ table[3][registers >> 24]
    )


def _small(table: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the table in half the memory, as the decoded data leaves it little room in the cache."""
    import numpy as np

    return table.ravel().astype(np.uint32)


TABLES = constants(lambda: _tables().ravel())
SHIFT_ONE = constants(lambda: _small(_shift_tables(BLOCK_SIZE)))
SHIFT_TWO = constants(lambda: _small(_shift_tables(2 * BLOCK_SIZE)))
SHIFT_THREE = constants(lambda: _small(_applied(_shift_tables(BLOCK_SIZE), _shift_tables(2 * BLOCK_SIZE))))


@intrinsic("has_crc32c", "logstore.kernels.scan.crc_intrinsics")
def has_crc32c() -> int:
    """Return 1 if the processor has an instruction for `crc32c_word`."""
    return 1


@intrinsic("crc32c_word", "logstore.kernels.scan.crc_intrinsics")
def crc32c_word(crc: int, word: int) -> int:
    """Return the register after the 8 bytes of a little-endian word."""
    for byte in (word & ((1 << 64) - 1)).to_bytes(8, "little"):
        crc = (crc >> 8) ^ TABLES[(crc ^ byte) & 255]
    return crc


@device
def _update_bytes(crc: int, data: Any, start: int, end: int) -> int:
    for position in range(start, end):
        crc = (crc >> 8) ^ TABLES[(crc ^ data[position]) & 255]
    return crc


@device
def _update_by_tables(crc: int, data: Any, start: int, end: int) -> int:
    position = start
    while position + 8 <= end:
        crc = crc ^ little_endian(data, position, 4)
        crc = (
            TABLES[1792 + (crc & 255)]
            ^ TABLES[1536 + ((crc >> 8) & 255)]
            ^ TABLES[1280 + ((crc >> 16) & 255)]
            ^ TABLES[1024 + ((crc >> 24) & 255)]
            ^ TABLES[768 + data[position + 4]]
            ^ TABLES[512 + data[position + 5]]
            ^ TABLES[256 + data[position + 6]]
            ^ TABLES[data[position + 7]]
        )
        position += 8
    return _update_bytes(crc, data, position, end)


@device
def _shifted(table: Any, crc: int) -> int:
    return (
        table[crc & 255]
        ^ table[256 + ((crc >> 8) & 255)]
        ^ table[512 + ((crc >> 16) & 255)]
        ^ table[768 + ((crc >> 24) & 255)]
    )


@device
def _update_words(crc: int, data: Any, start: int, end: int) -> int:
    position = start
    while position + 8 <= end:
        crc = crc32c_word(crc, load64(data, position))
        position += 8
    return _update_bytes(crc, data, position, end)


@device
def _update_by_instruction(crc: int, data: Any, start: int, end: int) -> int:
    position = start
    while position + 3 * BLOCK_SIZE <= end:
        first = 0  # not `crc`: so the streams do not wait until the three before are joined
        second = 0
        third = 0
        for line in range(position + AHEAD_SIZE, position + AHEAD_SIZE + 3 * BLOCK_SIZE, 64):
            prefetch(data, line)
        for at in range(position, position + BLOCK_SIZE, 8):
            first = crc32c_word(first, load64(data, at))
            second = crc32c_word(second, load64(data, at + BLOCK_SIZE))
            third = crc32c_word(third, load64(data, at + 2 * BLOCK_SIZE))
        crc = _shifted(SHIFT_THREE, crc) ^ _shifted(SHIFT_TWO, first) ^ _shifted(SHIFT_ONE, second) ^ third
        position += 3 * BLOCK_SIZE
    return _update_words(crc, data, position, end)


@device
def crc32c_of(data: Any, start: int, end: int) -> int:
    """Return the CRC-32C of data[start:end], unsigned."""
    if has_crc32c() == 1:
        return _update_by_instruction(MASK32, data, start, end) ^ MASK32
    return _update_by_tables(MASK32, data, start, end) ^ MASK32


@kernel("u8*, i64, i64")
def crc32c_range(data: Any, start: int, end: int) -> int:
    """Return the CRC-32C of data[start:end]."""
    return crc32c_of(data, start, end)


def crc32c(buffer: Any) -> int:
    """Return the CRC-32C of a bytes-like object, unsigned."""
    import numpy as np

    data = np.frombuffer(buffer, dtype=np.uint8)
    return crc32c_range(data, 0, data.size)
