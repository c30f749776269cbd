"""Reading messages by their schema: values, and what Kafka's generated readers say of broken bytes."""

from __future__ import annotations

import pytest

from logstore.config.kafka_version import V4_3
from logstore.errors import SchemaError
from logstore.messages.cursor import Cursor
from logstore.messages.reader import read
from logstore.messages.schema import parse_table
from logstore.messages.writer import unsigned_varint

TABLE = """
Old: versions 0-2
  name: string
  note: string?, versions 1+, default null
  numbers: []int32, versions 0+
  blob: bytes?, versions 2

Compact: versions 0-1, flexible 0+
  name: string
  texts: []string
  blob: bytes
  part: Part?
    port: uint16
  flag: bool, versions 1+, tag 0
  inner: Inner?, tag 1
    rate: float64
  list: []int8?, tag 2, default null

Typed: versions 0
  a: int8
  b: int16
  c: int32
  d: int64
  e: uint16
  f: bool
  g: float64
  h: uuid
"""
MESSAGES = parse_table(TABLE)

RUNTIME = "java.lang.RuntimeException"
UNDERFLOW = "java.nio.BufferUnderflowException"
ILLEGAL = "java.lang.IllegalArgumentException"
NEGATIVE_SIZE = "java.lang.NegativeArraySizeException"
UNSUPPORTED = "org.apache.kafka.common.errors.UnsupportedVersionException"

OLD = "0001 61"
COMPACT = "02 61 01 01 ff"


def _read(name: str, version: int, data: str) -> dict[str, object]:
    return read(MESSAGES[name], version, bytes.fromhex(data))


def test_every_fixed_size_type() -> None:
    data = "ff fffe fffffffd fffffffffffffffc fffb 02 3ff8000000000000 00112233445566778899aabbccddeeff"
    assert _read("Typed", 0, data) == {
        "a": -1,
        "b": -2,
        "c": -3,
        "d": -4,
        "e": 65531,
        "f": True,
        "g": 1.5,
        "h": "ABEiM0RVZneImaq7zN3u_w",
    }


def test_fields_of_other_versions_have_their_defaults() -> None:
    assert _read("Old", 0, OLD + "00000001 00000007") == {"name": "a", "note": None, "numbers": [7], "blob": b""}
    assert _read("Old", 2, OLD + "ffff 00000000 00000002 beef") == {
        "name": "a",
        "note": None,
        "numbers": [],
        "blob": b"\xbe\xef",
    }


def test_defaults_are_fresh_every_time() -> None:
    first = _read("Compact", 0, COMPACT + "00")
    first["inner"]["rate"] = 5.0  # type: ignore[index]
    assert _read("Compact", 0, COMPACT + "00")["inner"] == {"rate": 0.0}


def test_versions_beyond_the_ends_are_read_as_the_nearest() -> None:
    assert _read("Old", 99, OLD + "ffff 00000000 ffffffff") == _read("Old", 2, OLD + "ffff 00000000 ffffffff")
    assert _read("Old", -7, OLD + "00000000") == _read("Old", 0, OLD + "00000000")


def test_bytes_behind_the_end_do_not_matter() -> None:
    assert _read("Old", 0, OLD + "00000000 abcd")["name"] == "a"


def test_tagged_fields_come_in_any_order_and_again() -> None:
    tags = "04  02 00 02 05  01 00 01 4000000000000000 00  00 00 01  02 00 02 09"
    value = _read("Compact", 1, COMPACT + tags)
    assert (value["flag"], value["list"], value["inner"]) == (True, [9], {"rate": 2.0})


def test_null_structs_and_unknown_tagged_fields() -> None:
    value = _read("Compact", 0, COMPACT + "02  01 00 00  63 03 aabbcc")
    assert (value["part"], value["inner"]) == (None, None)
    assert value["_unknownTaggedFields"] == [(99, b"\xaa\xbb\xcc")]
    assert "_unknownTaggedFields" not in _read("Compact", 0, COMPACT + "00")


@pytest.mark.parametrize(
    ("name", "version", "data", "message", "java_class"),
    [
        ("Old", 0, "", None, UNDERFLOW),
        ("Old", 0, "00", None, UNDERFLOW),
        ("Old", 0, "ffff", "non-nullable field name was serialized as null", RUNTIME),
        ("Old", 0, "0005 61", "Error reading byte array of 5 byte(s): only 1 byte(s) available", RUNTIME),
        ("Old", 0, OLD + "ffffffff", "non-nullable field numbers was serialized as null", RUNTIME),
        (
            "Old",
            0,
            OLD + "00000005 00000000",
            "Tried to allocate a collection of size 5, but there are only 4 bytes remaining.",
            RUNTIME,
        ),
        ("Old", 0, OLD + "00000002 00000000", None, UNDERFLOW),
        ("Compact", 0, "00", "non-nullable field name was serialized as null", RUNTIME),
        ("Compact", 0, "818002", "string field name had invalid length 32768", RUNTIME),
        ("Compact", 0, "8080808008", "string field name had invalid length 2147483647", RUNTIME),
        ("Compact", 0, "01 02 00", "non-nullable field texts element was serialized as null", RUNTIME),
        ("Compact", 0, "01 02 818002", "string field texts element had invalid length 32768", RUNTIME),
        ("Compact", 0, "01 01 00", "non-nullable field blob was serialized as null", RUNTIME),
        ("Compact", 0, "01 01 03 00", "Error reading byte array of 2 byte(s): only 1 byte(s) available", RUNTIME),
        ("Compact", 2, "01 01 01 01", "Can't read version 2 of Part", UNSUPPORTED),
        ("Compact", 0, COMPACT + "01 00 00 01", "Tag 0 is not valid for version 0", RUNTIME),
        ("Compact", -3, COMPACT + "01 00 00 01", "Tag 0 is not valid for version -3", RUNTIME),
        ("Compact", 0, COMPACT + "01 63 ffffffff0f", "-1", NEGATIVE_SIZE),
        (
            "Compact",
            0,
            COMPACT + "01 63 04 00",
            "Error reading byte array of 4 byte(s): only 1 byte(s) available",
            RUNTIME,
        ),
        (
            "Compact",
            0,
            "ffffffffff",
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: ffffffff",
            ILLEGAL,
        ),
        ("Compact", 0, "ffff", None, UNDERFLOW),
        ("Typed", 0, "00" * 26 + "00" * 15, None, UNDERFLOW),
    ],
)
def test_broken_bytes_fail_with_kafka_s_words(
    name: str, version: int, data: str, message: str | None, java_class: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        _read(name, version, data)
    assert (caught.value.message, caught.value.java_class) == (message, java_class)


@pytest.mark.parametrize(
    ("data", "value"),
    [("00", 0), ("7f", 127), ("8001", 128), ("ffff7f", 0x1FFFFF), ("ffffffff07", 0x7FFFFFFF), ("ffffffff7f", -1)],
)
def test_varints_are_java_ints(data: str, value: int) -> None:
    cursor = Cursor(bytes.fromhex(data) + b"\x01")
    assert cursor.unsigned_varint() == value
    assert cursor.remaining_bytes == 1


def test_a_negative_count_of_tagged_fields_was_none_at_all() -> None:
    older = parse_table(TABLE, V4_3)["Compact"]
    assert read(older, 0, bytes.fromhex(COMPACT + "ffffffff0f"))["name"] == "a"


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ("ffffffff0f", "Invalid negative number of tagged fields -1"),
        ("03", "Tried to read 3 tagged fields, but there are only 2 bytes remaining."),
    ],
)
def test_a_count_of_tagged_fields_is_bounded(count: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        _read("Compact", 0, COMPACT + count + "0000")


def test_an_array_and_tagged_fields_are_bounded_by_number() -> None:
    table = parse_table("Many: versions 0, flexible 0+\n  items: []int8")["Many"]
    with pytest.raises(SchemaError, match="collection of size 1000001, which exceeds the maximum allowed size"):
        read(table, 0, unsigned_varint(1_000_002) + bytes(1_000_002))
    with pytest.raises(SchemaError, match="read 10001 tagged fields, which exceeds the maximum allowed count of 10000"):
        read(table, 0, b"\x01" + unsigned_varint(10_001) + bytes(20_002))
