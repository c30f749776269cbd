"""Text kernels against slow twins: broken UTF-8 as Java prints it, and decimals."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logstore.kernels.dump_text import POOL
from logstore.kernels.text import DECIMAL_SIZE_MAX, SLACK_SIZE, text_of_decimal, text_of_utf8
from logstore.layout.utf8 import java_utf8
from tests.naive import java_text
from tests.properties.kernel_inputs import longs, texts
from tests.unit.kernel_forms import run_both


def utf8(data: bytes, start: int, size: int) -> bytes:
    out = np.zeros(3 * size + SLACK_SIZE, np.uint8)
    array = np.frombuffer(data, np.uint8)
    return out[: run_both(text_of_utf8, array, start, size, POOL, out, read_limit=start + size)].tobytes()


@settings(max_examples=300)
@given(texts | st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
@example(b"")
def test_utf8_is_printed_as_java_prints_it(data: bytes) -> None:
    found = utf8(data, 0, len(data))
    assert found == java_text.java_utf8(data)
    assert found == java_utf8(data).encode()
    assert len(found) <= 3 * len(data)


@given(texts, texts, texts)
def test_a_character_ends_where_its_text_ends(before: bytes, data: bytes, after: bytes) -> None:
    assert utf8(before + data + after, len(before), len(data)) == java_text.java_utf8(data)


@settings(max_examples=300)
@given(longs | st.integers(0, 62).flatmap(lambda bits: st.integers(-(2**bits), 2**bits)))
def test_decimals_are_those_of_the_twin(value: int) -> None:
    out = np.zeros(DECIMAL_SIZE_MAX + SLACK_SIZE, np.uint8)
    size = run_both(text_of_decimal, value, POOL, out)
    assert out[:size].tobytes() == java_text.decimal(value) == str(value).encode()
