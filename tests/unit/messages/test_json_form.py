"""The JSON text of messages, as Jackson prints what Kafka's converters build."""

from __future__ import annotations

import math

import pytest

from logstore.messages.json_form import JsonText, string_text, text
from logstore.messages.schema import Value, parse_table

MESSAGES = parse_table("""
Sample: versions 0-1, flexible 1+
  name: string?
  flag: bool
  rate: float64
  blob: bytes
  parts: []Part?
    id: uuid
    level: int8, versions 1+
  later: int32, versions 1+
  count: int64, versions 1+, tag 0, default -1
  tagged: []int16?, versions 1+, tag 1, default null

Quota: versions 0
  value: float64
""")

SAMPLE: Value = {
    "name": "n",
    "flag": True,
    "rate": 1.0,
    "blob": b"\xff\xfe",
    "parts": [{"id": "A" * 22, "level": 3}, {"id": "B" * 22, "level": -1}],
    "later": 7,
    "count": -1,
    "tagged": None,
}


def test_fields_of_the_version_in_the_schema_s_order() -> None:
    assert text(MESSAGES["Sample"], 0, SAMPLE) == (
        f'{{"name":"n","flag":true,"rate":1.0,"blob":"//4=","parts":[{{"id":"{"A" * 22}"}},{{"id":"{"B" * 22}"}}]}}'
    )


def test_tagged_fields_are_printed_where_they_differ_from_their_default() -> None:
    nulls = SAMPLE | {"name": None, "parts": None, "flag": False}
    head = '{"name":null,"flag":false,"rate":1.0,"blob":"//4=","parts":null,"later":7'
    assert text(MESSAGES["Sample"], 1, nulls) == head + "}"
    assert text(MESSAGES["Sample"], 1, nulls | {"count": 0}) == head + ',"count":0}'
    assert text(MESSAGES["Sample"], 1, nulls | {"tagged": []}) == head + ',"tagged":[]}'
    assert text(MESSAGES["Sample"], 1, nulls | {"tagged": [1, -2]}) == head + ',"tagged":[1,-2]}'


def test_versions_beyond_the_ends_are_printed_as_the_nearest() -> None:
    assert text(MESSAGES["Sample"], 7, SAMPLE) == text(MESSAGES["Sample"], 1, SAMPLE)
    assert text(MESSAGES["Sample"], -7, SAMPLE) == text(MESSAGES["Sample"], 0, SAMPLE)


def test_json_in_the_place_of_bytes_stands_as_it_is() -> None:
    inner = SAMPLE | {"blob": JsonText('{"a":1}')}
    assert '"blob":{"a":1},' in text(MESSAGES["Sample"], 0, inner)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"\\/', '"\\"\\\\/"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\x00\x0b\x1b\x1f", '"\\u0000\\u000B\\u001B\\u001F"'),
        ("\x7f\x80é\u2028\u2029\ufeff\ufffd😀<>&'", '"\x7f\x80é\u2028\u2029\ufeff\ufffd😀<>&\'"'),
        ("", '""'),
    ],
)
def test_only_quotes_backslashes_and_control_characters_are_escaped(value: str, expected: str) -> None:
    assert string_text(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (1e7, "1.0E7")]
)
def test_numbers_that_json_does_not_have_are_quoted(value: float, expected: str) -> None:
    assert text(MESSAGES["Quota"], 0, {"value": value}) == f'{{"value":{expected}}}'
