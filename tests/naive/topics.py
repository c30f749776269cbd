"""A slow, obvious writer of Kafka's generated messages, straight from the JSON definitions inside Kafka's jars.

Imports nothing of logstore: it is the other side of the tests of `logstore.topics`.
"""

from __future__ import annotations

import json
import random
import re
import struct
import uuid
from typing import Any

Definition = dict[str, Any]

PACKED = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H", "float64": ">d"}
TEXTS = ["", "a", "topic-1", 'q"\\/\b\f\n\r\t', "\x00\x01\x1b\x1f\x7f", "ü€😀", "\u2028\u2029\ufffd", "x" * 300]
DOUBLES = [0.0, -0.0, 1.0, 0.1, 1e7, 9999999.0, 1e-3, 1e-5, 1e21, 1.7976931348623157e308, 5e-324, 2.0**63, 8.27e21]
DOUBLES += [float("nan"), float("inf"), float("-inf")]


def definition_of(text: str) -> Definition:
    """One definition: JSON with `//` comments on lines of their own."""
    definition: Definition = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return definition


def bounds(versions: str, highest: int = 0x7FFF) -> tuple[int, int]:
    """`3`, `0-4`, `2+` or `none` as the lowest and highest version."""
    if versions == "none":
        return 1, 0
    low, dash, high = versions.strip().removesuffix("+").partition("-")
    return int(low), highest if versions.strip().endswith("+") else int(high if dash else low)


def exists(field: Definition, version: int) -> bool:
    low, high = bounds(field.get("versions", field.get("taggedVersions", "none")))
    return low <= version <= high


def is_flexible(definition: Definition, version: int) -> bool:
    low, high = bounds(definition["flexibleVersions"])
    return low <= version <= high


def struct_fields(definition: Definition, field: Definition) -> list[Definition] | None:
    """The fields of the struct that a field holds, None if it holds something else."""
    kind = field["type"].strip().removeprefix("[]")
    shared = {item["name"]: item["fields"] for item in definition.get("commonStructs", [])}
    found: list[Definition] | None = field.get("fields", shared.get(kind))
    return found


def random_message(rng: random.Random, definition: Definition, version: int) -> bytes:
    """The bytes of a message of `version` with random fields, some of them null, default or unknown to Kafka."""
    return _struct(rng, definition, definition["fields"], version)


def _struct(rng: random.Random, definition: Definition, fields: list[Definition], version: int) -> bytes:
    flexible = is_flexible(definition, version)
    present = [field for field in fields if exists(field, version)]
    data = b"".join(_field(rng, definition, field, version) for field in present if "tag" not in field)
    if not flexible:
        return data
    tagged = [
        (field["tag"], _field(rng, definition, field, version))
        for field in present
        if "tag" in field and rng.random() < 0.6
    ]
    if rng.random() < 0.1:
        tagged.append((rng.choice([77, 1000]), rng.randbytes(rng.randrange(5))))
    tagged.sort()
    data += varint(len(tagged))
    return data + b"".join(varint(tag) + varint(len(value)) + value for tag, value in tagged)


def _field(rng: random.Random, definition: Definition, field: Definition, version: int) -> bytes:
    kind = field["type"].strip()
    flexible = is_flexible(definition, version)
    if "nullableVersions" in field and rng.random() < 0.3:
        return _null(definition, field, kind, flexible)
    if kind.startswith("[]"):
        items = [_plain(rng, definition, field, kind.removeprefix("[]"), version) for _ in range(rng.randrange(4))]
        return _length(len(items), ">i", flexible) + b"".join(items)
    mark = b""
    if "nullableVersions" in field and struct_fields(definition, field) is not None:
        mark = b"\x01"
    return mark + _plain(rng, definition, field, kind, version)


def _plain(rng: random.Random, definition: Definition, field: Definition, kind: str, version: int) -> bytes:
    fields = struct_fields(definition, field)
    flexible = is_flexible(definition, version)
    if fields is not None:
        return _struct(rng, definition, fields, version)
    if kind == "string":
        text = rng.choice(TEXTS).encode() if rng.random() < 0.9 else rng.randbytes(rng.randrange(9))
        return _length(len(text), ">h", flexible) + text
    if kind == "bytes":
        blob = rng.randbytes(rng.randrange(9))
        return _length(len(blob), ">i", flexible) + blob
    if kind == "uuid":
        return uuid.UUID(int=rng.choice([0, rng.getrandbits(128)])).bytes
    if kind == "bool":
        return struct.pack(">b", rng.choice([0, 1, -1]))
    return _number(rng, field, kind)


def _number(rng: random.Random, field: Definition, kind: str) -> bytes:
    if kind == "float64":
        value = rng.choice(DOUBLES) if rng.random() < 0.5 else rng.uniform(-1e9, 1e9)
        return struct.pack(PACKED[kind], value)
    default = int(field.get("default") or 0) if str(field.get("default")) != "null" else 0
    if rng.random() < 0.3:
        return struct.pack(PACKED[kind], default)
    size = struct.calcsize(PACKED[kind])
    return rng.randbytes(size) if rng.random() < 0.5 else struct.pack(PACKED[kind], rng.randrange(100))


def _null(definition: Definition, field: Definition, kind: str, flexible: bool) -> bytes:
    if struct_fields(definition, field) is not None and not kind.startswith("[]"):
        return b"\x00" if "tag" in field else b"\xff"
    return _length(-1, ">h" if kind == "string" else ">i", flexible)


def _length(length: int, packed: str, flexible: bool) -> bytes:
    return varint(length + 1) if flexible else struct.pack(packed, length)


def varint(value: int) -> bytes:
    """An unsigned varint of up to five bytes."""
    value &= 0xFFFFFFFF
    data = b""
    while value >= 0x80:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def signed_varint(value: int) -> bytes:
    return varint(value << 1 ^ value >> 31)


def mutations(rng: random.Random, data: bytes, count: int) -> list[bytes]:
    """`data` cut, lengthened, and with single bytes changed."""
    changed = [data[: rng.randrange(len(data) + 1)], data + rng.randbytes(rng.randrange(1, 4))]
    for _ in range(count):
        if data:
            position = rng.randrange(min(len(data), 24)) if rng.random() < 0.5 else rng.randrange(len(data))
            byte = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            changed.append(data[:position] + bytes([byte]) + data[position + 1 :])
    return changed


def batch(pairs: list[tuple[bytes | None, bytes | None]], is_control: bool = False) -> bytes:
    """One uncompressed batch of magic 2 from offset 0 on, with a right checksum."""
    records = b""
    for delta, (key, value) in enumerate(pairs):
        body = b"\x00" + signed_varint(0) + signed_varint(delta) + _optional(key) + _optional(value) + b"\x00"
        records += signed_varint(len(body)) + body
    tail = struct.pack(">hiqqqhii", 0x20 if is_control else 0, len(pairs) - 1, 5, 5, -1, -1, -1, len(pairs))
    tail += records
    head = struct.pack(">qiibI", 0, len(tail) + 9, 0, 2, crc32c(tail))
    return head + tail


def _optional(data: bytes | None) -> bytes:
    return signed_varint(-1) if data is None else signed_varint(len(data)) + data


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
