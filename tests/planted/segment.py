"""A `.log` taken apart batch by batch, to be changed and put together again; its indexes follow."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.naive.batch import scan
from tests.naive.checksum import crc32c
from tests.naive.lz4 import decode_frame
from tests.naive.record import Fields
from tests.naive.snappy import decode_stream
from tests.naive.zstd import decode_frames
from tests.support.encoder import CONTROL, TRANSACTIONAL, Rec, compressed, record_bytes

# position and format of each field of a batch of magic 2
FIELDS = {
    "base_offset": (0, ">q"),
    "length": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}
RECORDS = 61
CODEC_MASK = 7


class Segment:
    """The batches of one segment, and where each was."""

    def __init__(self, log: Path) -> None:
        self.log = log
        content = log.read_bytes()
        rows = scan(content, 0, len(content)).rows
        self.batches = [bytearray(content[row.position : row.position + row.size]) for row in rows]
        self.tail = content[sum(map(len, self.batches)) :]
        self._positions = {id(batch): row.position for batch, row in zip(self.batches, rows, strict=True)}

    def get(self, row: int, field: str) -> int:
        position, form = FIELDS[field]
        value: int = struct.unpack_from(form, self.batches[row], position)[0]
        return value

    def put(self, row: int, field: str, value: int, *, keeps_crc: bool = False) -> None:
        """Change a field; the checksum follows, unless it is kept."""
        position, form = FIELDS[field]
        struct.pack_into(form, self.batches[row], position, value)
        if not keeps_crc:
            self.seal(row)

    def seal(self, row: int) -> None:
        batch = self.batches[row]
        struct.pack_into(">I", batch, FIELDS["crc"][0], crc32c(bytes(batch[FIELDS["attributes"][0] :])))

    def is_data(self, row: int) -> bool:
        return not self.get(row, "attributes") & CONTROL and self.get(row, "record_count") > 0

    def is_marker(self, row: int) -> bool:
        return self.get(row, "attributes") & (CONTROL | TRANSACTIONAL) == CONTROL | TRANSACTIONAL

    def is_transactional_data(self, row: int) -> bool:
        return self.is_data(row) and bool(self.get(row, "attributes") & TRANSACTIONAL)

    def is_producers(self, row: int) -> bool:
        return self.is_data(row) and self.get(row, "producer_id") >= 0

    def codec(self, row: int) -> int:
        return self.get(row, "attributes") & CODEC_MASK

    def last_offset(self, row: int) -> int:
        return self.get(row, "base_offset") + self.get(row, "last_offset_delta")

    def stream(self, row: int) -> bytes:
        """Records, decompressed."""
        return _decompressed(self.codec(row), bytes(self.batches[row][RECORDS:]))

    def records(self, row: int) -> list[Rec]:
        fields = Fields(self.stream(row))
        return [_record(Fields(fields.take(fields.varint()))) for _ in range(self.get(row, "record_count"))]

    def write_records(self, row: int, records: Sequence[Rec]) -> None:
        self.write_stream(row, b"".join(record_bytes(record) for record in records))

    def write_stream(self, row: int, stream: bytes) -> None:
        """Other records, compressed as before."""
        self.write_payload(row, compressed(self.codec(row), stream))

    def write_payload(self, row: int, payload: bytes) -> None:
        """Other bytes in the place of the records, compressed or not."""
        batch = self.batches[row]
        batch[RECORDS:] = payload
        struct.pack_into(">i", batch, FIELDS["length"][0], len(batch) - 12)
        self.seal(row)

    def position(self, row: int) -> int:
        return sum(map(len, self.batches[:row]))

    def save(self) -> None:
        """Write the file; entries of `.index` lead to where their batches are now, those of removed ones go."""
        moved, position = {}, 0
        for batch in self.batches:
            moved[self._positions.get(id(batch), -1)] = position
            position += len(batch)
        self.log.write_bytes(b"".join(map(bytes, self.batches)) + self.tail)
        index = self.log.with_suffix(".index")
        if index.exists():
            content = index.read_bytes()
            entries = [struct.unpack_from(">ii", content, at) for at in range(0, len(content) - 7, 8)]
            kept = [(offset, moved[old]) for offset, old in entries if old in moved]
            index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in kept))


def _record(fields: Fields) -> Rec:
    attributes, timestamp, offset = fields.take(1)[0], fields.varlong(), fields.varint()
    key, value, headers = fields.nullable(), fields.nullable(), []
    for _ in range(fields.varint()):
        headers.append((fields.take(fields.varint()), fields.nullable()))
    return Rec(key, value, headers, offset, timestamp, attributes)


def _decompressed(codec: int, payload: bytes) -> bytes:
    match codec:
        case 1:
            return zlib.decompressobj(wbits=31).decompress(payload)
        case 2:
            return decode_stream(payload)
        case 3:
            return decode_frame(payload)
        case 4:
            return decode_frames(payload)
        case _:
            return payload
