"""Damage that can be done again: a kind, a seed, a file, and what is left of it.

A kind is a function of the file's bytes and of dice; `KINDS` says which kinds suit which suffix. None of this imports
logstore: where batches begin is found by their length fields alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.naive.checksum import crc32c
from tests.support.dice import Dice

Bytes = bytes | bytearray
Damage = Callable[[bytearray, Dice], bytes]

LENGTH_AT = 8
MAGIC_AT = 16
ATTRIBUTES_AT = 22
HEADER_BYTES = 61
INT_FIELDS_V2 = {"leader epoch": 12, "crc": 17, "last offset delta": 23, "base sequence": 53, "count": 57}
LONG_FIELDS_V2 = {"base offset": 0, "base timestamp": 27, "max timestamp": 35, "producer id": 43}
LENGTHS = (-(2**31), -13, -1, 0, 1, 13, 14, 25, 26, 48, 49, 50, 60, 1000, 2**20, 2**31 - 13, 2**31 - 1)
INTS = (-(2**31), -1, 0, 1, 2, 127, 1 << 16, 2**31 - 1)
LONGS = (-(2**63), -2, -1, 0, 1, 2**31, 2**62, 2**63 - 1)
OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, ABORTED_ENTRY_BYTES = 8, 12, 34
SNAPSHOT_CRC_AT, SNAPSHOT_COUNT_AT = 2, 6
STRANGERS = (
    b"",
    b"\n",
    b"This is no Kafka file but a line of text, long enough for a header or two of a batch, and then some.\n" * 3,
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00" + b"\x00\x17" * 40,
    b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + b"\x21\x54\x7f\x31" * 30,
    b"\xff" * 200,
    b"\x00" * 200,
    b"0\n1\norders 0 17\n",
)


def batch_positions(data: Bytes) -> list[int]:
    """Where the batches (or legacy records) begin, as far as their lengths make sense."""
    positions, position = [], 0
    while position + MAGIC_AT < len(data):
        (length,) = struct.unpack_from(">i", data, position + LENGTH_AT)
        if length < 14 or position + 12 + length > len(data):
            break
        positions.append(position)
        position += 12 + length
    return positions


def truncate(data: bytearray, dice: Dice) -> bytes:
    return bytes(data[: dice.below(len(data) + 1)])


def truncate_in_header(data: bytearray, dice: Dice) -> bytes:
    return bytes(data[: _batch(data, dice) + dice.below(HEADER_BYTES + 8)])


def flip_bit(data: bytearray, dice: Dice) -> bytes:
    data[dice.below(len(data))] ^= 1 << dice.below(8)
    return bytes(data)


def flip_header_bit(data: bytearray, dice: Dice) -> bytes:
    position = min(_batch(data, dice) + dice.below(HEADER_BYTES), len(data) - 1)
    data[position] ^= 1 << dice.below(8)
    return bytes(data)


def flip_many_bits(data: bytearray, dice: Dice) -> bytes:
    for _ in range(dice.between(2, 12)):
        flip_bit(data, dice)
    return bytes(data)


def set_body_bytes(data: bytearray, dice: Dice) -> bytes:
    """A run of one value in the records: lengths and counts in them become wild."""
    position = min(_batch(data, dice) + HEADER_BYTES + dice.below(40), len(data) - 1)
    length = min(dice.between(1, 6), len(data) - position)
    data[position : position + length] = bytes([dice.choose((0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF))]) * length
    return bytes(data)


def zero_tail(data: bytearray, dice: Dice) -> bytes:
    cut = dice.below(len(data))
    return bytes(data[:cut]) + bytes(len(data) - cut)


def zero_middle(data: bytearray, dice: Dice) -> bytes:
    cut = dice.below(len(data))
    length = min(dice.between(1, 300), len(data) - cut)
    data[cut : cut + length] = bytes(length)
    return bytes(data)


def append_zeros(data: bytearray, dice: Dice) -> bytes:
    return bytes(data) + bytes(dice.choose((1, 3, 8, 12, 16, 17, 34, 61, 100, 4096)))


def append_noise(data: bytearray, dice: Dice) -> bytes:
    return bytes(data) + dice.take(dice.between(1, 200))


def insert_noise(data: bytearray, dice: Dice) -> bytes:
    cut = dice.below(len(data) + 1)
    return bytes(data[:cut]) + dice.take(dice.between(1, 30)) + bytes(data[cut:])


def cut_out(data: bytearray, dice: Dice) -> bytes:
    cut = dice.below(len(data))
    return bytes(data[:cut] + data[cut + dice.between(1, 30) :])


def replace_by_stranger(data: bytearray, dice: Dice) -> bytes:
    return dice.choose(STRANGERS)


def set_length(data: bytearray, dice: Dice) -> bytes:
    struct.pack_into(">i", data, _batch(data, dice) + LENGTH_AT, dice.choose(LENGTHS))
    return bytes(data)


def nudge_length(data: bytearray, dice: Dice) -> bytes:
    position = _batch(data, dice) + LENGTH_AT
    (length,) = struct.unpack_from(">i", data, position)
    struct.pack_into(">i", data, position, length + dice.choose((-20, -2, -1, 1, 2, 20)))
    return bytes(data)


def set_magic(data: bytearray, dice: Dice) -> bytes:
    data[_batch(data, dice) + MAGIC_AT] = dice.choose((0, 1, 2, 3, 127, 128, 255))
    return bytes(data)


def set_codec(data: bytearray, dice: Dice) -> bytes:
    position = _batch(data, dice)
    at = position + (ATTRIBUTES_AT if data[position + MAGIC_AT] == 2 else MAGIC_AT + 1)
    data[at] = data[at] & ~7 | dice.below(8)
    return bytes(data)


def set_attributes(data: bytearray, dice: Dice) -> bytes:
    position = _batch(data, dice)
    at = position + (ATTRIBUTES_AT if data[position + MAGIC_AT] == 2 else MAGIC_AT + 1)
    data[at] ^= 1 << dice.between(3, 7)
    return bytes(data)


def set_count(data: bytearray, dice: Dice) -> bytes:
    position = _batch(data, dice) + INT_FIELDS_V2["count"]
    if position + 4 > len(data):
        return flip_bit(data, dice)
    (count,) = struct.unpack_from(">i", data, position)
    struct.pack_into(">i", data, position, dice.choose((-(2**31), -1, 0, count - 1, count + 1, 1000, 2**31 - 1)))
    return bytes(data)


def set_int_field(data: bytearray, dice: Dice) -> bytes:
    position = _batch(data, dice) + dice.choose(list(INT_FIELDS_V2.values()))
    if position + 4 <= len(data):
        struct.pack_into(">i", data, position, dice.choose(INTS))
    return bytes(data)


def set_long_field(data: bytearray, dice: Dice) -> bytes:
    position = _batch(data, dice) + dice.choose(list(LONG_FIELDS_V2.values()))
    if position + 8 <= len(data):
        struct.pack_into(">q", data, position, dice.choose(LONGS))
    return bytes(data)


def swap_batches(data: bytearray, dice: Dice) -> bytes:
    batches = _batches(data)
    one, other = dice.below(len(batches)), dice.below(len(batches))
    batches[one], batches[other] = batches[other], batches[one]
    return b"".join(batches)


def repeat_batch(data: bytearray, dice: Dice) -> bytes:
    batches = _batches(data)
    one = dice.below(len(batches))
    return b"".join([*batches[:one], *[batches[one]] * 2, *batches[one:]])


def lose_batch(data: bytearray, dice: Dice) -> bytes:
    batches = _batches(data)
    del batches[dice.below(len(batches))]
    return b"".join(batches)


def swap_entries(entry_bytes: int) -> Damage:
    def swap(data: bytearray, dice: Dice) -> bytes:
        entries = [bytes(data[i : i + entry_bytes]) for i in range(0, len(data), entry_bytes)]
        one, other = dice.below(len(entries)), dice.below(len(entries))
        entries[one], entries[other] = entries[other], entries[one]
        return b"".join(entries)

    return swap


def set_entry_field(layout: str) -> Damage:
    """One field of one entry gets an odd value, or moves a little."""

    def change(data: bytearray, dice: Dice) -> bytes:
        size = struct.calcsize(layout)
        if len(data) < size:
            return dice.take(size)
        start = dice.below(len(data) // size) * size
        fields = list(struct.unpack_from(layout, data, start))
        which = dice.below(len(fields))
        width = 8 * struct.calcsize(f">{layout[1:][which]}")
        odd = dice.choose((0, 1, -1, -(2 ** (width - 1)), 2 ** (width - 1) - 1, fields[which] + 1, fields[which] - 1))
        fields[which] = (odd + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)
        struct.pack_into(layout, data, start, *fields)
        return bytes(data)

    return change


def checked(damage: Damage) -> Damage:
    """The same damage to a producer snapshot, with a checksum that fits."""

    def damage_and_sign(data: bytearray, dice: Dice) -> bytes:
        body = bytearray(data[SNAPSHOT_COUNT_AT:])
        changed = damage(body, dice)
        crc = struct.pack(">I", crc32c(changed))
        return bytes(data[:SNAPSHOT_CRC_AT]) + crc + changed

    return damage_and_sign


ANYWHERE: dict[str, Damage] = {
    "truncate": truncate,
    "flip-bit": flip_bit,
    "flip-many-bits": flip_many_bits,
    "zero-tail": zero_tail,
    "zero-middle": zero_middle,
    "append-zeros": append_zeros,
    "append-noise": append_noise,
    "insert-noise": insert_noise,
    "cut-out": cut_out,
    "stranger": replace_by_stranger,
}
IN_BATCHES: dict[str, Damage] = {
    "truncate-in-header": truncate_in_header,
    "flip-header-bit": flip_header_bit,
    "set-body-bytes": set_body_bytes,
    "set-length": set_length,
    "nudge-length": nudge_length,
    "set-magic": set_magic,
    "set-codec": set_codec,
    "set-attributes": set_attributes,
    "set-count": set_count,
    "set-int-field": set_int_field,
    "set-long-field": set_long_field,
    "swap-batches": swap_batches,
    "repeat-batch": repeat_batch,
    "lose-batch": lose_batch,
}
KINDS: dict[str, dict[str, Damage]] = {
    ".log": ANYWHERE | IN_BATCHES,
    ".checkpoint": ANYWHERE | IN_BATCHES,
    ".index": ANYWHERE | {"swap-entries": swap_entries(OFFSET_ENTRY_BYTES), "set-field": set_entry_field(">ii")},
    ".timeindex": ANYWHERE | {"swap-entries": swap_entries(TIME_ENTRY_BYTES), "set-field": set_entry_field(">qi")},
    ".txnindex": ANYWHERE | {"swap-entries": swap_entries(ABORTED_ENTRY_BYTES), "set-field": set_entry_field(">hqqqq")},
    ".snapshot": ANYWHERE | {f"checked-{kind}": checked(damage) for kind, damage in ANYWHERE.items()},
}


def damaged(content: bytes, suffix: str, kind: str, seed: str) -> bytes:
    """`content` of a file with `suffix` after damage of this `kind`; an empty file only grows or is replaced."""
    dice = Dice(f"{kind}/{seed}")
    if not content and kind not in ("append-zeros", "append-noise", "stranger"):
        return dice.take(dice.between(1, 100))
    return KINDS[suffix][kind](bytearray(content), dice)


def _batch(data: Bytes, dice: Dice) -> int:
    return dice.choose(batch_positions(data) or [0])


def _batches(data: Bytes) -> list[bytes]:
    starts = batch_positions(data) or [0]
    return [bytes(data[start:end]) for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]
