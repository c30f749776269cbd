"""Choice of the partition of an internal topic that keeps a group or a transactional id."""

from __future__ import annotations

_INT_MIN = -(2**31)


def java_hash(text: str) -> int:
    """Return `String.hashCode`: over UTF-16 units, as a signed int of 32 bits.

    >>> java_hash("polygenelubricants")
    -2147483648
    """
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = code * 31 + (high << 8 | low) & 0xFFFFFFFF
    return (code ^ 0x80000000) - 0x80000000


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition of a group or transactional id, as Kafka's two coordinators choose it.

    The hash without a positive counterpart counts as 0 (`Utils.abs`).

    >>> partition_for("first-transactional", 50), partition_for("测试", 50), partition_for("😀x", 50)
    (12, 46, 39)
    """
    code = java_hash(key)
    return (0 if code == _INT_MIN else abs(code)) % partition_count
