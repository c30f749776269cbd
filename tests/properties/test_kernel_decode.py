"""The decode of records against a slow twin: good batches, and bytes that lie in every way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.kernels.decode import records as decode
from tests.naive.record import Context, as_long, read_plain, read_stream
from tests.properties.kernel_inputs import batch_values, ints, longs, record_streams
from tests.support.encoder import Batch, record_bytes
from tests.support.kernel_decode import DecodedBatch, good_ones
from tests.support.sampling import examples

CAPACITY = 50

contexts = st.builds(Context, longs, longs, ints, st.none() | longs)
around = st.sampled_from([b"", b"before", b"\xff" * 20])


TWINS = {decode.PLAIN: read_plain, decode.STREAM: read_stream}
of_sources = pytest.mark.parametrize("source", TWINS, ids=["plain", "stream"])


@settings(max_examples=examples(60))
@given(batch_values())
def test_records_come_out_as_they_were_written(batch: Batch) -> None:
    data = b"".join(map(record_bytes, batch.records))
    context = Context(batch.base_offset, batch.base_timestamp, batch.base_sequence)
    found, error = DecodedBatch(data, 0, len(data), len(batch.records), context).records(CAPACITY)
    assert error is None
    for record, written in zip(found, batch.records, strict=True):
        assert record.offset == as_long(batch.base_offset + written.offset_delta)
        assert record.timestamp == as_long(batch.base_timestamp + written.timestamp_delta)
        assert (record.key, record.value, record.headers) == (written.key, written.value, list(written.headers))


@of_sources
@given(record_streams(), contexts, around, around)
def test_a_decode_finds_what_the_twin_finds(
    source: int, stream: tuple[bytes, int], context: Context, before: bytes, after: bytes
) -> None:
    data, count = stream
    decoded = DecodedBatch(before + data + after, len(before), len(before + data), count, context, source)
    assert decoded.records(CAPACITY) == good_ones(TWINS[source](data, count, context))


@of_sources
@settings(max_examples=examples(40))
@given(record_streams(), contexts, st.integers(1, 3))
def test_a_decode_in_chunks_finds_the_same(
    source: int, stream: tuple[bytes, int], context: Context, capacity: int
) -> None:
    data, count = stream
    decoded = DecodedBatch(data, 0, len(data), count, context, source)
    assert decoded.records(capacity) == good_ones(TWINS[source](data, count, context))


@of_sources
@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 10, 127, 128, 255]), max_size=40).map(bytes), st.integers(1, 40))
def test_a_decode_of_noise_finds_what_the_twin_finds(source: int, data: bytes, count: int) -> None:
    decoded = DecodedBatch(data, 0, len(data), count, Context(), source)
    assert decoded.records(CAPACITY) == good_ones(TWINS[source](data, count, Context()))
