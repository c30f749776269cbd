"""The hash of keys against its slow twin, in both forms; both against what Java gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.client.producer.queues import murmur2 as of_one_key
from logstore.columns.record_columns import BytesColumn
from logstore.errors import UsageError
from logstore.kernels.table.key_hashes import murmur2_key, murmur2_keys
from tests.naive.murmur2 import murmur2
from tests.support.kernel_forms import run_both

UNTOUCHED = -77
JAVA = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}

keys = st.none() | st.binary(max_size=30) | st.integers(0, 4).map(lambda count: b"\xff" * (100 + count))


@given(st.lists(keys, max_size=8))
def test_keys_are_hashed_as_one_by_one(of: list[bytes | None]) -> None:
    column = BytesColumn.of_values(of)
    hashes = np.full(len(of) + 1, UNTOUCHED, np.int64)
    key_count = run_both(murmur2_keys, column.data, column.starts, column.ends, len(of), hashes)
    assert key_count == sum(key is not None for key in of)
    assert hashes.tolist() == [0 if key is None else murmur2(key) for key in of] + [UNTOUCHED]
    for key in filter(None, of):
        assert run_both(murmur2_key, np.frombuffer(key, np.uint8), len(key)) == murmur2(key)


def test_a_column_is_hashed_as_java_hashes() -> None:
    assert BytesColumn.of_values(list(JAVA)).murmur2_hashes().tolist() == list(JAVA.values())
    assert list(map(of_one_key, JAVA)) == list(JAVA.values())
    assert of_one_key(b"") == murmur2(b"")


def test_ranges_that_are_not_there_are_not_read() -> None:
    column = BytesColumn(np.zeros(4, np.uint8), np.zeros(1, np.int64), np.array([5], np.int64))
    with pytest.raises(UsageError, match="not within its bytes"):
        column.murmur2_hashes()
