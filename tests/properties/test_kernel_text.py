"""Text as the dump prints it, against slow twins: broken UTF-8 as Java prints it, and decimals."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from logstore.layout.utf8 import java_utf8
from tests.naive import java_text
from tests.properties.kernel_inputs import longs, texts
from tests.support.kernel_dump import printed, printed_number, printed_text
from tests.support.sampling import examples


@settings(max_examples=examples(300))
@given(texts | st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
@example(b"")
def test_utf8_is_printed_as_java_prints_it(data: bytes) -> None:
    found = printed_text(data)
    assert found == java_text.java_utf8(data)
    assert found == java_utf8(data).encode()
    assert len(found) <= 3 * len(data)


@given(texts, texts, texts)
def test_a_character_ends_where_its_text_ends(before: bytes, data: bytes, after: bytes) -> None:
    start, end = len(before), len(before + data)
    expected = b"| payload: " + java_text.java_utf8(data) + b"\n"
    assert printed((before + data + after), [(start, end)]) == printed((before + data), [(start, end)]) == expected


@settings(max_examples=examples(300))
@given(longs | st.integers(0, 62).flatmap(lambda bits: st.integers(-(2**bits), 2**bits)))
def test_decimals_are_those_of_the_twin(value: int) -> None:
    assert printed_number(value) == java_text.decimal(value) == str(value).encode()
