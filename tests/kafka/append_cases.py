"""Appends of all kinds to an empty log: right batches, odd ones, and damaged ones with and without a right checksum."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.naive import legacy
from tests.naive.checksum import crc32c
from tests.support.dice import Dice
from tests.support.encoder import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NONE,
    SOME_TIME,
    TRANSACTIONAL,
    Batch,
    Rec,
    compressed,
    record_bytes,
    varint,
)

NOW = SOME_TIME
CRC_AT, CHECKED_AT, COUNT_AT, RECORDS_AT = 17, 21, 57, 61
CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Case:
    """One append."""

    data: bytes
    origin: str = "CLIENT"
    end_offset: int = 0
    leader_epoch: int = 3
    config: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        question = {"config": self.config, "now": NOW, "end": self.end_offset, "origin": self.origin}
        return {**question, "epoch": self.leader_epoch, "data": self.data.hex()}


def random_case(number: int) -> Case:
    """Case `number`, the same every time."""
    dice = Dice(f"append {number}")
    origin = dice.choose(("CLIENT",) * 7 + ("COORDINATOR",) * 3 + ("REPLICATION", "RAFT_LEADER"))
    end_offset = dice.choose((0, 0, 5, 1000, 2**40))
    is_leader = origin in ("CLIENT", "COORDINATOR")
    offset = 0 if is_leader or dice.chance(5) else end_offset
    batches = []
    for _ in range(dice.choose((1,) * 30 + (2, 2, 0, 3)) if is_leader else dice.choose((1, 2, 3))):
        batch = _batch(dice, offset + (dice.chance(2) and 3), is_leader)
        offset = 0 if is_leader else batch.base_offset + batch.last_offset_delta + 1 - dice.chance(3)
        batches.append(_legacy(dice, batch) if dice.chance(2) else _damaged(dice, batch))
    data = b"".join(batches)
    if dice.chance(4):
        data += data[: dice.choose((3, 12, 15, 16, 17, 18, 40, 60, 61, 62, 70))]
    return Case(data, origin, end_offset, dice.choose((3, 3, 3, 0)), _config(dice))


def _config(dice: Dice) -> dict[str, str]:
    choices = {
        "compression.type": (20, CODECS),
        "cleanup.policy": (25, ("compact", "compact,delete")),
        "message.timestamp.type": (20, ("LogAppendTime",)),
        "message.timestamp.before.max.ms": (25, ("0", "4", "1000", str(2**62))),
        "message.timestamp.after.max.ms": (10, ("0", "4", str(2**62), str(2**63 - 1))),
        "max.message.bytes": (10, ("0", "60", "80", "150")),
        "internal.segment.bytes": (3, ("61", "80", "150")),
    }
    return {name: dice.choose(values) for name, (percent, values) in choices.items() if dice.chance(percent)}


def _batch(dice: Dice, offset: int, is_leader: bool) -> Batch:
    is_log_append_time = dice.chance(5)
    records = _records(dice)
    timestamps = [record.timestamp_delta for record in records] or [0]
    base_timestamp = dice.choose((NOW,) * 9 + (NOW - 10, 0, -1, -7, 2**62, -(2**63)))
    max_timestamp = base_timestamp + max(timestamps)
    batch = Batch(
        offset,
        records,
        last_offset_delta=max(len(records) - 1, 0),
        codec=dice.choose((NONE, NONE, 1, 2, 3, 4)),
        base_timestamp=base_timestamp,
        max_timestamp=max(min(max_timestamp, 2**63 - 1), -1) if dice.chance(95) else dice.choose((5, -1, NOW)),
        flags=LOG_APPEND_TIME if is_log_append_time else 0,
        leader_epoch=-1 if is_leader else dice.choose((3, 3, 3, -1, 4)),
    )
    if dice.chance(40):
        batch = replace(batch, producer_id=dice.below(50), producer_epoch=0, base_sequence=0)
        if dice.chance(20):
            batch = replace(batch, flags=batch.flags | TRANSACTIONAL)
    if dice.chance(8):
        batch = replace(batch, codec=batch.codec if dice.chance(30) else NONE, flags=batch.flags | CONTROL)
    return _odd(dice, batch)


def _records(dice: Dice) -> list[Rec]:
    count = dice.choose((1, 1, 1, 2, 3, 5, 20)) if dice.chance(97) else 0
    is_keyless, is_late, is_odd = dice.chance(15), dice.chance(10), dice.chance(5)
    records = []
    for index in range(count):
        key = None if is_keyless and dice.chance(60) else dice.take(dice.choose((0, 1, 5)))
        value = dice.choose((None, b"", b"value", b"long " * dice.choose((1, 9, 60))))
        headers = [(b"h", b"1"), (b"", None), ("ü".encode(), b"")][: dice.choose((0, 0, 0, 1, 3))]
        delta = dice.choose((3, -3, 2000, -2000, 2**40, -NOW - 1)) if is_late else index
        offset_delta = dice.choose((index, index + 1, 0, -1)) if is_odd else index
        records.append(Rec(key, value, headers, offset_delta, delta, attributes=dice.choose((0,) * 9 + (1, 255))))
    return records


def _odd(dice: Dice, batch: Batch) -> Batch:
    """Sometimes with a field that does not go with the others."""
    if dice.chance(90):
        return batch
    name, values = dice.choose(
        (
            ("last_offset_delta", (-1, 0, 1, 7, 2**31 - 1, -(2**31))),
            ("base_sequence", (-1, -2, 5, 2**31 - 1)),
            ("producer_id", (-1, 0, 7, -2)),
            ("producer_epoch", (-1, 0, 3, -5)),
            ("flags", (0x80, 0x7F00, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, -0x8000)),
            ("codec", (5, 6, 7)),
            ("base_offset", (1, -1, 2**62)),
        )
    )
    return replace(batch, **{name: dice.choose(values)})


def _damaged(dice: Dice, batch: Batch) -> bytes:
    content = bytearray(batch.to_bytes())
    if dice.chance(75):
        return bytes(content)
    kind = dice.below(6)
    if kind == 0:
        content[dice.below(len(content))] = dice.choose((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 1:
        at, form = dice.choose(((COUNT_AT, ">i"), (8, ">i"), (23, ">i")))
        number = dice.choose((-1, 0, 1, 2, 3, 13, 14, 15, 30, 49, 50, 2**31 - 1, 2**31 - 13))
        struct.pack_into(form, content, at, number)
    elif kind == 2:
        del content[dice.between(26, 61) :]
        struct.pack_into(">i", content, 8, len(content) - 12)
    elif kind == 3:
        content[16] = dice.choose((3, 127, 128, 255, 2, 0, 1))
    else:
        content = bytearray(_with_records(batch, _damaged_records(dice, batch.records)))
    if kind != 3 and dice.chance(70) and len(content) >= RECORDS_AT:
        struct.pack_into(">I", content, CRC_AT, crc32c(bytes(content[CHECKED_AT:])))
    return bytes(content)


def _with_records(batch: Batch, plain: bytes) -> bytes:
    return replace(batch, stream=compressed(batch.codec, plain)).to_bytes()


def _damaged_records(dice: Dice, records: Sequence[Rec]) -> bytes:
    content = bytearray(b"".join(map(record_bytes, records)))
    at = dice.below(len(content)) if content else 0
    kind = dice.below(4)
    if kind == 0:
        content[at : at + 1] = bytes([dice.choose((0, 1, 2, 3, 0x7F, 0x80, 0xFF))])
    elif kind == 1:
        del content[at : at + dice.between(1, 9)]
    elif kind == 2:
        long_varints = (b"\xff" * 5, b"\x80" * 9 + b"\x01", b"\xff" * 11, varint(2**31 - 1), varint(-5), b"\x80\x00")
        content[at:at] = dice.choose(long_varints)
    else:
        content += dice.choose((b"\0", b"more"))
    return bytes(content)


def _legacy(dice: Dice, batch: Batch) -> bytes:
    message = legacy.Message(batch.base_offset + batch.last_offset_delta, NOW, b"k", b"v")
    magic = dice.below(2)
    content = bytearray(legacy.wrapped(magic, [message]) if dice.chance(30) else legacy.message_set(magic, [message]))
    if dice.chance(20):
        content[-1] ^= 1
    return bytes(content)
