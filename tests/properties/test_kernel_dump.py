"""The dump of batches and records against a slow twin, with buffers of any size, on good and on damaged batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.record_table import RecordTable
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import lines as dump_lines
from tests.naive import batch
from tests.naive import dump_text as naive
from tests.naive.record import Context, read_stream
from tests.properties.kernel_inputs import batch_bytes, consecutive, damaged, markers, records, stub_bytes
from tests.support.encoder import ZSTD, Rec, record_bytes
from tests.support.kernel_decode import DecodedBatch
from tests.support.kernel_dump import DumpCaller, table_of
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

SMALLEST_OUT = dump_lines.BATCH_LINE_SIZE_MAX

options = st.builds(
    naive.Options,
    deep=st.sampled_from([True, True, True, False]),
    contents=st.booleans(),
    skip_metadata=st.sampled_from([False, False, True]),
)
deep_options = st.builds(naive.Options, contents=st.booleans(), skip_metadata=st.sampled_from([False, False, True]))


@st.composite
def odd_codec_bytes(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(batch_bytes()))
    content[22] |= 5
    return bytes(content)


batches = batch_bytes() | batch_bytes(codec=None) | stub_bytes()
segments = st.lists(batches, max_size=4).map(b"".join)
files = segments | segments | st.tuples(segments, odd_codec_bytes(), batches).map(b"".join) | damaged(segments)


def checked_rows(data: bytes) -> list[batch.Row]:
    rows = [batch.checked(data, row) for row in batch.scan(data, 0, len(data)).rows]
    return [row for row in rows if row.magic >= 2]


def dumped(data: bytes, caller: DumpCaller) -> naive.Dump:
    rows = checked_rows(data)
    return caller.finish(caller.batches(np.frombuffer(data, np.uint8), table_of(rows), len(rows)))


@settings(max_examples=examples(150))
@given(files, options)
def test_batches_are_printed_as_the_twin_prints_them(data: bytes, chosen: naive.Options) -> None:
    assert dumped(data, DumpCaller(chosen)) == naive.dump(data, checked_rows(data), chosen)


@settings(max_examples=examples(150))
@given(files, deep_options, st.integers(SMALLEST_OUT, 1500), st.integers(1, 2), st.integers(1, 3))
def test_small_buffers_change_nothing(
    data: bytes, chosen: naive.Options, out: int, gap_capacity: int, record_capacity: int
) -> None:
    caller = DumpCaller(chosen, out=out, gaps=gap_capacity, records=record_capacity)
    assert dumped(data, caller) == naive.dump(data, checked_rows(data), chosen)


@settings(max_examples=examples(150))
@given(consecutive(records, 6) | consecutive(markers, 6), files, deep_options, st.integers(350, 1500), st.data())
def test_decoded_records_are_printed_as_the_twin_prints_them(
    written: list[Rec], headers: bytes, chosen: naive.Options, out: int, drawn: st.DataObject
) -> None:
    data = b"".join(map(record_bytes, written))
    context = Context(base_offset=7, base_timestamp=50, base_sequence=3)
    decoded = DecodedBatch(data, 0, len(data), len(written), context, decode.STREAM)
    matrix = np.empty((decode.COLUMN_COUNT, len(written) + 1), np.int64)
    status = run_both(decode.decode_records, decoded.data, decoded.state, matrix, matrix.shape[1])
    assert status == decode.OK
    rows = checked_rows(headers)
    ends = drawn.draw(st.lists(st.integers(0, len(written)), min_size=len(rows), max_size=len(rows)).map(sorted))
    parts = [(row, drawn.draw(st.booleans()), end) for row, end in enumerate(ends)]
    own = st.none() | st.none() | st.binary(max_size=40)
    texts = drawn.draw(st.lists(own, min_size=len(written), max_size=len(written)))
    caller = DumpCaller(chosen, out=max(out, SMALLEST_OUT))
    error = caller.records(RecordTable(decoded.data, matrix, len(written)), table_of(rows), parts, texts)
    read = list(read_stream(data, len(written), context))
    assert caller.finish().text == naive.decoded(rows, parts, read, chosen, texts)
    codecs = [row.attributes & 7 for row, (_, is_headed, _) in zip(rows, parts, strict=True) if is_headed]
    assert (error is None) == (max(codecs, default=0) <= ZSTD)
