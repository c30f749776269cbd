"""Record inside a v2 batch (`DefaultRecord`): varints, so small that most take less than ten bytes beside the payload.

    record  = length:varint attributes:int8 timestampDelta:varlong offsetDelta:varint
              key:field value:field headerCount:varint header*
    field   = size:varint byte*size            size -1 = null, which is not the empty field of size 0
    header  = keySize:varint UTF-8*keySize value:field                         keySize is never negative

`length` counts what follows it. Varints are zigzag (0, -1, 1, -2 → 0, 1, 2, 3), then base 128 with the low seven bits
first; at most 5 bytes (varint) or 10 (varlong). offset = baseOffset + offsetDelta. timestamp = baseTimestamp +
timestampDelta, or the batch's maxTimestamp for every record when the timestamp type is LogAppendTime. sequence =
baseSequence + offsetDelta, where 0 follows 2147483647. Deltas may be negative after cleaning.

`k1 -> v1` at deltas 0, in 11 bytes:

>>> list(bytes.fromhex("14000000046b3104763100"))[:5]    # length 10, attributes, two deltas, key size 2
[20, 0, 0, 0, 4]
>>> [zigzag(n) for n in (20, 4, 1)]
[10, 2, -1]
"""

from __future__ import annotations

VARINT_SIZE_MAX = 5
VARLONG_SIZE_MAX = 10
SEQUENCE_MAX = 2**31 - 1


def zigzag(value: int) -> int:
    """The signed number that the unsigned varint `value` stands for."""
    return (value >> 1) ^ -(value & 1)
