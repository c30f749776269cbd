"""CRC-32C, a bit at a time."""

from __future__ import annotations

CASTAGNOLI_REVERSED = 0x82F63B78


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of `data`.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (CASTAGNOLI_REVERSED if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
