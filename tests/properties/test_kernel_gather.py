"""Fields gathered for Arrow against slow twins: those that are there, and places that lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.kernels.decode import records as decode
from logstore.kernels.table.gather import FOUND_COUNT, SLACK_SIZE, VIEW_SIZE, gather_fields, write_record_views
from tests.naive import gather
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

UNTOUCHED = -77

data = st.binary(max_size=60)
within = st.tuples(st.integers(0, 40), st.integers(-1, 30))
lies = st.tuples(
    st.sampled_from([-1, 0, 2**31 - 1, 2**63 - 1, -(2**63)]) | st.integers(0, 70),
    st.sampled_from([-1, 0, 1, 2**31, 2**63 - 1, -(2**63)]) | st.integers(0, 70),
)
places = st.lists(within, min_size=1, max_size=6) | st.lists(within | lies, min_size=1, max_size=6)


def arrays(content: bytes, of: list[gather.Place]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    return (
        np.frombuffer(content, np.uint8),
        np.array([position for position, _ in of], np.int64),
        np.array([size for _, size in of], np.int64),
    )


@settings(max_examples=examples(200))
@given(data, places, st.integers(0, 100) | st.just(1000))
def test_fields_are_gathered_as_the_twin_does(content: bytes, of: list[gather.Place], capacity: int) -> None:
    buffer, positions, sizes = arrays(content, of)
    out = np.full(capacity + SLACK_SIZE, 0x55, np.uint8)
    ends = np.full(len(of), UNTOUCHED, np.int64)
    count = run_both(gather_fields, buffer, buffer.size, positions, sizes, len(of), out, capacity, ends)
    expected = gather.gathered(content, of, capacity)
    assert count == len(expected)
    assert ends[:count].tolist() == np.cumsum([len(each) for each in expected]).tolist()
    assert out.tobytes().startswith(b"".join(expected))


@settings(max_examples=examples(200))
@given(
    data,
    st.lists(st.tuples(within | lies, within | lies, st.integers(-2, 1), st.integers(0, 1)), min_size=1, max_size=6),
)
def test_views_of_records_are_written_as_the_twin_does(
    content: bytes, rows: list[tuple[gather.Place, gather.Place, int, int]]
) -> None:
    count, capacity = len(rows), len(rows) + 1
    keys, values, times, header_counts = ([row[field] for row in rows] for field in range(4))
    records = np.full((decode.COLUMN_COUNT, capacity), UNTOUCHED, np.int64)
    for field, numbers in (
        (decode.OFFSET, range(count)),
        (decode.TIMESTAMP, times),
        (decode.KEY_POSITION, [position for position, _ in keys]),
        (decode.KEY_SIZE, [size for _, size in keys]),
        (decode.VALUE_POSITION, [position for position, _ in values]),
        (decode.VALUE_SIZE, [size for _, size in values]),
        (decode.HEADER_COUNT, header_counts),
    ):
        records[field, :count] = numbers
    offsets, timestamps = np.full(count, UNTOUCHED, np.int64), np.full(count, UNTOUCHED, np.int64)
    key_views, value_views = np.full((2, count * VIEW_SIZE), 0x55, np.uint8)
    found = np.full(FOUND_COUNT, UNTOUCHED, np.int64)
    buffer = np.frombuffer(content, np.uint8)
    out = (offsets, timestamps, key_views, value_views, found)
    row_end = run_both(write_record_views, buffer, buffer.size, records, capacity, count, *out)
    expected_keys, expected_values = gather.views(content, keys), gather.views(content, values)
    assert row_end == min(len(expected_keys), len(expected_values))
    assert key_views.tobytes().startswith(b"".join(expected_keys[:row_end]))
    assert value_views.tobytes().startswith(b"".join(expected_values[:row_end]))
    assert offsets.tolist() == [*range(row_end), *[UNTOUCHED] * (count - row_end)]
    assert timestamps[:row_end].tolist() == times[:row_end]
    nulls = [sum(size < 0 for _, size in places) for places in (keys, values)]
    counts = [*nulls, times.count(-1), sum(header_counts)]
    assert found.tolist() == (counts if row_end == count else [UNTOUCHED] * FOUND_COUNT)


@pytest.mark.parametrize(("position", "is_written"), [(2**31 - 1 - 20, 1), (2**31 - 20, 0)])
def test_a_view_does_not_reach_further_than_its_32_bits(position: int, is_written: int) -> None:
    class Far:
        """A buffer of 4 GiB that is never made."""

        def __getitem__(self, index: slice) -> bytes:
            assert index.start == position
            return bytes(8)

    records = [0] * decode.COLUMN_COUNT
    records[decode.KEY_SIZE], records[decode.VALUE_POSITION], records[decode.VALUE_SIZE] = -1, position, 20
    views = [memoryview(np.zeros(VIEW_SIZE, np.uint8)) for _ in range(2)]
    count = write_record_views.function(Far(), 1 << 32, records, 1, 1, [0], [0], *views, [0] * FOUND_COUNT)
    assert count == is_written
