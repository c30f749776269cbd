"""Records to batches: the kernels, whole calls from columns, and small batches from Python."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.floors import copying, reading
from benchmarks.library_floors import compressing
from benchmarks.logs import values
from benchmarks.measured import Measured, Side
from benchmarks.peers.python_clients import BUILDERS
from benchmarks.peers.python_clients import built as built_by
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.sizes import scaled
from logstore.columns.batch_table import ByteArray, scan
from logstore.columns.header_columns import HeaderColumns
from logstore.columns.record_building import BuiltBatches, build_batch, build_batches
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.columns.record_encoding import RecordEncoder
from logstore.kernels.encode import batches as encode
from logstore.kernels.encode import fields as encode_fields
from logstore.kernels.encode import measure as encode_measure
from logstore.kernels.encode import structs as encode_struct
from logstore.kernels.scan import batches as fields
from logstore.kernels.table import headers as record_headers
from logstore.model import Codec

COUNT = scaled(20_000, 500_000)
HEADED_COUNT = COUNT // 4
BATCH_SIZE = 16384
RECORD_COUNT, KAFKA_BATCH_COUNT = 150, 1000
TIME = 1_700_000_000_000


def columns_of(value_size: int, *, has_keys: bool = False, count: int = COUNT) -> RecordColumns:
    """The same bytes every time: values, and keys of 8 bytes, out of one buffer of noise."""
    noise = np.random.default_rng(20261121).integers(32, 127, count * value_size + 8, np.uint8)
    values = BytesColumn.of_offsets(noise, np.arange(count + 1) * value_size)
    keys = BytesColumn(noise, values.starts, values.starts + 8) if has_keys else None
    return RecordColumns(count, keys, values, TIME + np.arange(count) // 100)


def assert_right(built: BuiltBatches, count: int) -> None:
    """What was written is what a scan finds."""
    found = scan(built.data, check_crc=True)
    assert np.array_equal(found.matrix, built.table.matrix)
    assert found.record_count.sum() == count


class Rows:
    """Columns whose batches are measured, and room for them."""

    def __init__(self, value_size: int) -> None:
        self.columns = columns_of(value_size)
        self.table = build_batches(self.columns, batch_size=BATCH_SIZE).table
        self.encoder = RecordEncoder(self.columns)
        self.matrix = self.table.matrix.copy()
        self.row_ends = np.cumsum(self.table.record_count)
        self.size = int(self.table.size.sum())


@pytest.mark.parametrize("value_size", [8, 100])
def test_measure_batches(measured: Measured, value_size: int) -> None:
    rows = Rows(value_size)
    encoding = rows.encoder.encoding
    encoding.batches, encoding.batch_capacity, encoding.row_ends = rows.matrix, len(rows.table), rows.row_ends
    encoding.batch_size_max = BATCH_SIZE

    def measure_all() -> int:
        encoding.row = encoding.batch_count = 0
        return encode_measure.measure_batches(encoding)

    assert rows.columns.timestamps is not None
    floor = reading(rows.columns.timestamps)  # values of one width need no look at their places
    assert measured(measure_all, count=COUNT, floor=floor, hashed=lambda _: rows.matrix) == encode_struct.OK
    assert np.array_equal(rows.matrix[fields.SIZE], rows.table.size)
    assert encoding.batch_count == len(rows.table)


@pytest.mark.parametrize("value_size", [8, 100])
def test_encode_batches(measured: Measured, value_size: int) -> None:
    rows = Rows(value_size)
    out = np.zeros(rows.size + encode_fields.SLACK_SIZE, np.uint8)
    rows.encoder.encode(rows.matrix, rows.row_ends, rows.size, out=out)
    encoding = rows.encoder.encoding

    def encode_all() -> int:
        encoding.row = 0
        return encode.encode_batches(encoding)

    floor, encoded = copying(rows.size), lambda _: out[: rows.size]
    assert measured(encode_all, size=rows.size, count=COUNT, floor=floor, hashed=encoded) == encode_struct.OK
    assert_right(BuiltBatches(out[: rows.size], rows.table), COUNT)


def test_write_headers(measured: Measured) -> None:
    built = build_batches(columns_of(100), batch_size=BATCH_SIZE)
    data, matrix = built.data.copy(), built.table.matrix.copy()
    count = len(built.table)
    arguments = (data, data.size, matrix, matrix.shape[1])
    written = measured(
        encode.write_headers,
        *arguments,
        size=data.size,
        count=count,
        unit="batches",
        floor=reading(data),  # for the checksums
        hashed=lambda written: (written, data),
    )
    assert written == count
    assert np.array_equal(data, built.data)


class Headed:
    """Two headers a record, as tracing adds them, and room for what they become."""

    def __init__(self) -> None:
        rows = [[("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736"), ("retry", None)]] * HEADED_COUNT
        self.columns = HeaderColumns.of_lists(rows)
        self.encoded = self.columns.encoded()
        self.state = np.zeros(record_headers.STATE_COUNT, np.int64)
        self.state[record_headers.ROW_COUNT] = HEADED_COUNT
        self.state[record_headers.HEADER_COUNT] = len(self.columns.keys)
        self.state[record_headers.KEY_DATA_SIZE] = self.columns.keys.data.size
        self.state[record_headers.VALUE_DATA_SIZE] = self.columns.values.data.size
        self.state[record_headers.OUT_CAPACITY] = self.encoded.data.size


def test_encode_headers(measured: Measured) -> None:
    headed = Headed()
    out = np.zeros(headed.encoded.data.size + encode_fields.SLACK_SIZE, np.uint8)
    ends = np.zeros(HEADED_COUNT, np.int64)
    parts = [part for c in (headed.columns.keys, headed.columns.values) for part in (c.data, c.starts, c.ends)]
    starts_and_ends = (headed.columns.starts, headed.columns.ends)
    status = measured(
        record_headers.encode_headers,
        *(headed.state, *starts_and_ends, *parts, out, ends),
        size=headed.encoded.data.size,
        count=HEADED_COUNT,
        floor=copying(headed.encoded.data.size),
        hashed=lambda status: (status, out[: ends[-1]]),
    )
    assert status == record_headers.OK
    assert np.array_equal(out[: ends[-1]], headed.encoded.data)


def test_decode_headers(measured: Measured) -> None:
    headed = Headed()
    data, count = headed.encoded.data, len(headed.columns.keys)
    matrix = np.zeros((record_headers.COLUMN_COUNT, count), np.int64)
    counts = headed.columns.ends - headed.columns.starts
    status = measured(
        record_headers.decode_headers,
        *(headed.state, data, data.size, headed.encoded.starts + 1, counts, matrix, count),
        size=data.size,
        count=HEADED_COUNT,
        floor=reading(data),
        hashed=lambda status: (status, matrix),
    )
    assert status == record_headers.OK
    assert np.array_equal(matrix[record_headers.KEY_END] - matrix[record_headers.KEY_START], headed.columns.keys.sizes)


@pytest.mark.parametrize("value_size", [8, 100])
@pytest.mark.parametrize("has_keys", [False, True], ids=["values", "keys"])
def test_build_batches(measured: Measured, value_size: int, has_keys: bool) -> None:
    columns = columns_of(value_size, has_keys=has_keys)
    size = COUNT * value_size
    built = measured(
        lambda: build_batches(columns, batch_size=BATCH_SIZE),
        title=f"encode {COUNT:,} records of {value_size} bytes{' with keys' if has_keys else ''}",
        size=size,
        count=COUNT,
        floor=copying(size),
        hashed=lambda built: built.data,
    )
    assert_right(built, COUNT)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_build_one_batch(measured: Measured, kafka: WarmKafka, codec: Codec) -> None:
    columns = RecordColumns(
        RECORD_COUNT, None, BytesColumn.of_values(values(RECORD_COUNT)), np.full(RECORD_COUNT, TIME, np.int64)
    )  # what the peer builds: a codec takes its time by what is in the values
    order = {"op": "encode", "keySize": 0, "valueSize": 100, "compression": codec.kafka_name}
    sizes, sent_count = {"records": RECORD_COUNT, "count": KAFKA_BATCH_COUNT}, RECORD_COUNT * KAFKA_BATCH_COUNT
    data = measured(
        lambda: build_batch(columns, codec=codec),
        title=f"encode a batch of {RECORD_COUNT} records, {codec.kafka_name}",
        count=RECORD_COUNT,
        size=RECORD_COUNT * 100,
        peers={
            "Kafka": lambda: kafka.seconds(**order, **sizes, call_count=KAFKA_BATCH_COUNT, expected_count=sent_count)
        },
        floor=compressing(codec, b"".join(values(RECORD_COUNT))),
    )
    assert scan(data, check_crc=True).is_valid.tolist() == [1]


def test_build_a_batch_of_values(measured: Measured) -> None:
    """From a list of values, as a program has them that sends one after the other."""
    batch = values(RECORD_COUNT)
    peers: dict[str, Side] = {name: built_by(name, batch, TIME) for name in BUILDERS}

    def build() -> ByteArray:
        times = np.full(RECORD_COUNT, TIME, np.int64)
        return build_batch(RecordColumns(RECORD_COUNT, None, BytesColumn.of_values(batch), times))

    title = f"encode a batch of {RECORD_COUNT} Python values"
    size = RECORD_COUNT * 100
    data = measured(build, title=title, count=RECORD_COUNT, size=size, peers=peers, floor=copying(size))
    assert scan(data, check_crc=True).record_count.tolist() == [RECORD_COUNT]
