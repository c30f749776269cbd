"""Logs that are unusual, as old clients, cleaners, restores and bad disks left them.

Each is the `.log` files of one partition, by base offset. The real Kafka keeps every batch of `LOADED`. Of `REFUSED` it
cuts some or does not start; there the number is that of the batches which a rescue leaves out.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.naive.checksum import crc32c
from tests.support.encoder import CONTROL, GZIP, SOME_TIME, TRANSACTIONAL, ZSTD, Batch, Rec, varint

Log = dict[int, bytes]

FAR = 2**31  # the first offset that a segment at 0 cannot hold
LARGE = 5000  # bytes of a value that gets each batch an entry in the indexes
COUNT, BASE_OFFSET, MAGIC = 57, 0, 16


# names of files in a partition's directory: a broker does not start beside the first, and passes over the others
FOREIGN = (
    "._00000000000000000000.log",
    "00000000000000000000 (copy).log",
    "backup.snapshot",
    ".index",
    "99999999999999999999.timeindex",
    "old.txnindex",
)
PASSED_OVER = (
    *(
        ".DS_Store",
        "Thumbs.db",
        "00000000000000000000.log~",
        "notes",
        "backup.checkpoint",
        "00000000000000000000.log.bak",
    ),
    *(".nfs000000000000123400000001", ".00000000000000000000.log.Ab3dEf"),  # of NFS, and of an rsync that was ended
)


def batch(offset: int, count: int = 1, *, size: int = 10, **fields: Any) -> bytes:
    records = [Rec(b"k", b"x" * size, offset_delta=delta) for delta in range(count)]
    whole = Batch(offset, records, last_offset_delta=count - 1)
    return replace(whole, **fields).to_bytes()


def large(offset: int, **fields: Any) -> bytes:
    """One batch that is indexed."""
    return batch(offset, size=LARGE, **fields)


def sealed(content: bytes, position: int, data: bytes) -> bytes:
    """The batch with other bytes, under a checksum that is right."""
    changed = bytearray(content)
    changed[position : position + len(data)] = data
    changed[17:21] = struct.pack(">I", crc32c(bytes(changed[21:])))
    return bytes(changed)


def with_offset(content: bytes, offset: int) -> bytes:
    """The batch at another offset, which no checksum covers."""
    return struct.pack(">q", offset) + content[8:]


def hurt(content: bytes) -> bytes:
    """The batch with other bytes under its old checksum."""
    return content[:-9] + b"?" * 9


def with_length(content: bytes, length: int) -> bytes:
    """The batch with another length, which no checksum covers."""
    return content[:8] + struct.pack(">i", length) + content[12:]


def marker(offset: int, producer: int, *, kind: int = 1, key_version: int = 0, value_version: int = 0) -> bytes:
    """One control batch: ABORT 0, COMMIT 1."""
    record = Rec(struct.pack(">hh", key_version, kind), struct.pack(">hi", value_version, 0))
    flags = TRANSACTIONAL | CONTROL
    return Batch(offset, [record], flags=flags, producer_id=producer, producer_epoch=0).to_bytes()


def paid(offset: int, producer: int, sequence: int) -> bytes:
    """One transactional batch."""
    return batch(offset, flags=TRANSACTIONAL, producer_id=producer, producer_epoch=0, base_sequence=sequence)


def message(offset: int, magic: int, value: bytes | None = b"old", attributes: int = 0) -> bytes:
    body = bytes([magic, attributes]) + (struct.pack(">q", SOME_TIME) if magic else b"")
    body += struct.pack(">i", -1) + (struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value)
    whole = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(whole)) + whole


def ten(**fields: Any) -> bytes:
    return b"".join(large(offset, **fields) for offset in range(10))


def _old_client() -> bytes:
    """Batches whose `lastOffsetDelta` is 0, whatever they hold (old Go clients)."""
    data, offset = b"", 0
    for count in (3, 2, 1, 4):
        data += batch(offset + count - 1, count, last_offset_delta=0)
        offset += count
    return data


LOADED: dict[str, Log] = {
    "last offset delta 0": {0: _old_client()},
    "more offsets than records": {0: batch(0, 2, last_offset_delta=9) + batch(10)},
    "fewer offsets than records": {0: batch(0) + batch(1, 5, last_offset_delta=1) + batch(3)},
    "a count that is not there": {0: batch(0) + sealed(batch(1), COUNT, struct.pack(">i", 99)) + batch(2)},
    "a negative count": {0: batch(0) + sealed(batch(1), COUNT, struct.pack(">i", -1)) + batch(2)},
    "an offset delta below 0": {0: large(0) + batch(5, last_offset_delta=-2) + large(6)},
    "far offsets": {0: b"".join(map(batch, (0, 1, 2, FAR + 5, FAR + 6, FAR + 7)))},
    "offsets farther than two segments hold": {0: b"".join(map(large, (0, FAR + 5, 2 * FAR + 9, 3 * FAR)))},
    "far offsets before a segment": {0: batch(0) + batch(FAR + 1), 2 * FAR: batch(2 * FAR)},
    "a first offset far above the base": {0: batch(FAR) + batch(FAR + 1)},
    "offsets that overlap": {
        0: b"".join(map(large, range(6))) + batch(4, 4, size=LARGE) + large(8) + large(9),
    },
    "offsets that go back between index entries": {0: large(0) + batch(1) + batch(3) + batch(2) + batch(4)},
    "an offset twice": {0: batch(0) + batch(1) + batch(1) + batch(2)},
    "offsets beyond the next segment": {0: batch(0) + batch(7), 5: batch(5) + batch(6)},
    "segments that overlap": {0: b"".join(map(batch, range(8))), 4: b"".join(map(batch, range(4, 10)))},
    "a hole": {0: batch(0) + batch(1000), 5000: batch(6000)},
    "an empty segment in the middle": {0: batch(0), 3: b"", 5: batch(5)},
    "an empty last segment": {0: batch(0), 3: b""},
    "nothing": {0: b""},
    "timestamps of nobody": {0: batch(0, base_timestamp=-1, max_timestamp=-1) + batch(1)},
    "timestamps that go back": {0: large(0, max_timestamp=SOME_TIME * 2) + large(1, max_timestamp=5) + large(2)},
    "a largest timestamp that no record has": {0: batch(0, max_timestamp=SOME_TIME + 99) + batch(1)},
    "a largest timestamp below its records'": {0: batch(0, max_timestamp=3) + batch(1)},
    "timestamps of the end of time": {0: large(0, max_timestamp=2**63 - 1) + large(1)},
    "empty batches of compaction": {0: batch(0) + Batch(1, last_offset_delta=5).to_bytes() + batch(7)},
    "a batch without records but with bytes": {0: batch(0) + Batch(1, stream=b"noise").to_bytes() + batch(2)},
    "unknown attributes": {0: batch(0) + batch(1, flags=0x7F80) + batch(2)},
    "an unknown codec": {0: batch(0) + batch(1, flags=0x07) + batch(2)},
    "streams that do not decode": {
        0: batch(0) + batch(1, codec=GZIP, stream=b"no gzip") + batch(2, codec=ZSTD, stream=b"") + batch(3)
    },
    "records that end early": {0: batch(0) + batch(1, stream=varint(60) + b"short") + batch(2)},
    "record offsets outside of the batch": {0: batch(0) + batch(1, records=[Rec(b"k", offset_delta=77)]) + batch(2)},
    "record attributes": {0: batch(0, records=[Rec(b"k", b"v", attributes=0x7F, headers=[(b"h", None), (b"", b"")])])},
    "an unknown magic": {0: batch(0) + batch(1)[:MAGIC] + b"\x05" + batch(1)[MAGIC + 1 :] + batch(2)},
    "control batches of nobody": {
        0: batch(0) + batch(1, flags=CONTROL) + batch(2, flags=CONTROL | TRANSACTIONAL) + batch(3)
    },
    "an empty control batch": {
        0: paid(0, 7, 0)
        + Batch(1, flags=CONTROL | TRANSACTIONAL, producer_id=7, producer_epoch=0).to_bytes()
        + marker(2, 7)
    },
    "a newer marker": {0: paid(0, 7, 0) + marker(1, 7, value_version=5) + batch(2)},
    "a marker of no transaction": {0: batch(0) + marker(1, 7) + marker(2, 7, kind=0) + batch(3)},
    "sequences that jump": {
        0: batch(0, producer_id=7, producer_epoch=3, base_sequence=9)
        + batch(1, producer_id=7, producer_epoch=3, base_sequence=2)
        + batch(2, producer_id=7, producer_epoch=1, base_sequence=77)
    },
    "producers of no epoch": {0: batch(0, producer_id=7) + batch(1, producer_epoch=5) + batch(2, base_sequence=8)},
    "a negative producer": {0: batch(0, producer_id=-5, producer_epoch=-7, base_sequence=-3) + batch(1)},
    "an open transaction": {0: paid(0, 7, 0) + batch(1), 2: paid(2, 7, 1)},
    "leader epochs that go back": {0: batch(0, leader_epoch=9) + batch(1, leader_epoch=2) + batch(2, leader_epoch=-1)},
    "messages of magic 0 and 1": {0: message(0, 0) + message(1, 1) + message(2, 1, None) + batch(3) + message(4, 0)},
}

REFUSED: dict[str, tuple[Log, int]] = {
    "an offset that comes again": ({0: ten() + large(3)}, 1),
    "one offset too high": (
        {0: ten()[: -len(large(9))] + with_offset(large(9), 99) + b"".join(map(large, range(10, 20)))},
        1,
    ),
    "one offset far too high in the middle": ({0: large(0) + large(FAR + 5) + large(1) + large(2)}, 1),
    "offsets below the base": ({5: b"".join(map(large, range(9)))}, 0),
    "negative offsets": ({0: with_offset(large(0), -7) + large(1) + large(2)}, 1),
    "the last offset there is": ({0: large(0) + large(1), 2: with_offset(large(2), 2**63 - 1)}, 1),
    "damage before far offsets": ({0: large(0) + hurt(large(1)) + large(FAR + 5) + large(FAR + 6)}, 1),
    "damage among far offsets": (
        {0: large(0) + large(FAR + 5) + hurt(large(FAR + 6)) + large(FAR + 7) + large(FAR + 8)},
        1,
    ),
    "a wrong length among far offsets": (
        {0: large(0) + large(FAR + 5) + with_length(large(FAR + 6), 99) + large(FAR + 7) + large(FAR + 8)},
        1,
    ),
    "a marker of no kind": ({0: paid(0, 7, 0) + marker(1, 7, kind=9) + batch(2)}, 1),
    "a marker that is too short": (
        {
            0: paid(0, 7, 0)
            + Batch(1, [Rec(b"?")], flags=TRANSACTIONAL | CONTROL, producer_id=7, producer_epoch=0).to_bytes()
            + batch(2)
        },
        1,
    ),
    "a batch outside of its transaction": (
        {0: paid(0, 7, 0) + batch(1, producer_id=7, producer_epoch=0, base_sequence=1) + batch(2)},
        1,
    ),
    "wrappers that do not decode": (
        {0: message(3, 1, b"no gzip", GZIP) + message(5, 0, None, GZIP) + message(6, 1)},
        2,
    ),
    "messages of an unknown codec": ({0: message(0, 1, b"?", 7) + message(1, 1)}, 1),
    "damage, and a torn tail": ({0: large(0) + hurt(large(1)) + large(2) + large(3)[:-100], 4: large(4)}, 1),
}


def lay_out(log: Log, directory: Path) -> Path:
    """The `.log` files in the directory, which is made."""
    directory.mkdir(parents=True)
    for base_offset, content in log.items():
        (directory / f"{base_offset:020d}.log").write_bytes(content)
    return directory
