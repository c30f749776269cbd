"""Whatever bytes a record of an internal topic has, it is text or an error of the closed list."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import LogstoreError
from logstore.layout.utf8 import java_utf8
from logstore.messages.cursor import java_int
from logstore.messages.json_form import java_double, string_text
from logstore.topics import cluster_metadata, consumer_offsets, record_types, transaction_state
from logstore_tools.dump.decoders import control_record_text, parsers

COORDINATORS = {
    "offsets": "consumer_offsets",
    "transaction": "transaction_state",
    "share-group-state": "share_group_state",
}
FRAMED = {"cluster-metadata": "cluster_metadata", "remote-log-metadata": "remote_log_metadata"}

#: bytes as they are in broken records: mostly small lengths
BODIES = st.lists(st.integers(0, 3) | st.integers(0, 255), max_size=60).map(bytes)


@pytest.mark.parametrize("parser", COORDINATORS)
@given(data=st.data(), version=st.integers(-1, 5), key=BODIES, value=st.none() | BODIES)
def test_a_coordinator_record_is_always_text(
    parser: str, data: st.DataObject, version: int, key: bytes, value: bytes | None
) -> None:
    record_type = data.draw(st.sampled_from([*record_types(COORDINATORS[parser], "Key"), 99]))
    whole_key = record_type.to_bytes(2) + key
    whole_value = None if value is None else version.to_bytes(2, signed=True) + value
    key_text, payload_text = parsers()[parser](5, whole_key, whole_value)
    assert key_text is not None
    if payload_text is None:
        assert "at offset 5, skipping." in key_text
    else:
        assert json.loads(key_text)["type"] == str(record_type)
        assert payload_text == "<DELETE>" if value is None else json.loads(payload_text)["version"] == str(version)


@pytest.mark.parametrize("parser", FRAMED)
@given(data=st.data(), version=st.integers(0, 5), body=BODIES)
def test_a_framed_record_is_always_text(parser: str, data: st.DataObject, version: int, body: bytes) -> None:
    record_type = data.draw(st.sampled_from([*record_types(FRAMED[parser]), 99]))
    key_text, payload_text = parsers()[parser](5, None, bytes([1, record_type, version]) + body)
    assert key_text is None
    assert payload_text is not None
    assert payload_text.startswith(("{", "Remote", "Error at "))


@given(record_type=st.integers(-1, 8), key_version=st.integers(-1, 1), value=st.none() | BODIES)
def test_a_control_record_is_text_or_an_error(record_type: int, key_version: int, value: bytes | None) -> None:
    key = key_version.to_bytes(2, signed=True) + record_type.to_bytes(2, signed=True)
    result = _result(lambda: control_record_text(key, value))
    assert result.java_class if isinstance(result, LogstoreError) else str(result).startswith(" ")


@given(key=BODIES, value=BODIES)
def test_decoding_to_values_fails_only_with_errors_that_name_the_offset(key: bytes, value: bytes) -> None:
    def decode_offset() -> object:
        return consumer_offsets.decode_value(consumer_offsets.decode_key(key, offset=9), value, offset=9)

    for decode in (
        decode_offset,
        lambda: transaction_state.decode_key(key, offset=9),
        lambda: transaction_state.decode_value(value, offset=9),
        lambda: cluster_metadata.decode_value(value, offset=9),
    ):
        result = _result(decode)
        assert result is not None
        assert not isinstance(result, LogstoreError) or result.offset == 9


def _result(decode: Callable[[], object]) -> object:
    try:
        return decode()
    except LogstoreError as error:
        return error


@given(st.binary(max_size=40))
def test_java_text_has_no_surrogates_and_keeps_what_is_sound(data: bytes) -> None:
    text = java_utf8(data)
    assert not any("\ud800" <= letter <= "\udfff" for letter in text)
    assert java_utf8(b"a" + data + b"z") == f"a{text}z"
    assert java_utf8(text.encode()) == text


@given(st.lists(st.binary(max_size=6), max_size=5))
def test_java_text_of_parts_between_ascii_is_that_of_each_part(parts: list[bytes]) -> None:
    assert java_utf8(b"|".join(parts)) == "|".join(map(java_utf8, parts))


@given(st.text())
def test_quoted_text_is_json_and_comes_back(text: str) -> None:
    assert json.loads(string_text(text)) == text


@given(st.integers(-(2**40), 2**40))
def test_a_java_int_is_the_lower_half(value: int) -> None:
    assert -(2**31) <= java_int(value) < 2**31
    assert (java_int(value) - value) % 2**32 == 0


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63).map(float))
def test_a_double_comes_back_from_its_text(value: float) -> None:
    text = java_double(value)
    assert float(text) == value
    assert "." in text
