"""Records of a stream that is not changed: what of them is read, against a slow twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords
from logstore.kernels.decode import records as decode
from tests.naive.record import Context
from tests.naive.skipped_record import Skipped, skip_stream
from tests.properties.kernel_inputs import ints, longs, record_streams
from tests.support.encoder import ZSTD, Batch
from tests.support.kernel_decode import DecodedBatch, good_ones
from tests.support.sampling import examples

size_limits = st.sampled_from([0, 0, 1, 9, 20, (1 << 20) - 1, 1 << 20, 2**31 - 9])
contexts = st.builds(Context, longs, longs, ints, st.none() | longs, size_limits)
noise = st.lists(st.sampled_from([0, 1, 2, 3, 4, 10, 127, 128, 255]), max_size=40).map(bytes)


def words_of(status: int, state: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str | None:
    """What a read that ended so says."""
    batch = Batch(0, [], codec=ZSTD)
    data = np.frombuffer(batch.to_bytes(), np.uint8)
    records = BatchRecords(data, scan(data), 0, skips=True)
    records.state = state
    return records.decode_error(status).message


def found(
    data: bytes, start: int, end: int, count: int, context: Context, capacity: int
) -> tuple[list[Skipped], str | None]:
    """All good records that both forms of the kernel find, and the message of what ended them."""
    batch = DecodedBatch(data, start, end, count, context, decode.SKIPPED_STREAM)
    records: list[Skipped] = []
    for table in batch.windows(capacity):
        columns = (table.offset, table.timestamp, table.key_size, table.value_size)
        records += [Skipped(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return records, None if batch.status == decode.OK else words_of(batch.status, batch.state)


def expected(data: bytes, count: int, context: Context) -> tuple[list[Skipped], str | None]:
    records, problem = good_ones(skip_stream(data, count, context))
    # any size below 0 is that of null
    return [
        record._replace(key_size=max(record.key_size, -1), value_size=max(record.value_size, -1)) for record in records
    ], problem


@given(record_streams(), contexts, st.sampled_from([b"", b"before"]), st.sampled_from([b"", b"\xff" * 20]))
def test_a_read_finds_what_the_twin_finds(
    stream: tuple[bytes, int], context: Context, before: bytes, after: bytes
) -> None:
    data, count = stream
    start, end = len(before), len(before + data)
    assert found(before + data + after, start, end, count, context, 50) == expected(data, count, context)


@settings(max_examples=examples(40))
@given(record_streams(), contexts, st.integers(1, 3))
def test_a_read_in_chunks_finds_the_same(stream: tuple[bytes, int], context: Context, capacity: int) -> None:
    data, count = stream
    assert found(data, 0, len(data), count, context, capacity) == expected(data, count, context)


@settings(max_examples=examples(60))
@given(noise, st.integers(1, 40))
def test_a_read_of_noise_finds_what_the_twin_finds(data: bytes, count: int) -> None:
    assert found(data, 0, len(data), count, Context(), 50) == expected(data, count, Context())
