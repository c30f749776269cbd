"""Record tables: the records of plain and of compressed batches, and what reading a wrong batch dies of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords, RecordTable, record_error
from logstore.errors import DecompressionError, InvalidRecordError, LogstoreError
from logstore.kernels.decode import records as fields
from logstore.kernels.scan.batches import POSITION
from tests.support.encoder import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    Batch,
    Rec,
    compressed,
    record_bytes,
    varint,
)

CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
COMPRESSED = {name: codec for name, codec in CODECS.items() if codec}
RECORDS = [Rec(b"key", b"value", [(b"h", b"x"), (b"", None)], index, 2 * index) for index in range(5)]
NO_FIELDS = b"\x00\x00\x00\x01\x01\x00"  # a record's body without key, value and headers


def records_of(content: bytes, row: int = 0) -> BatchRecords:
    data = np.frombuffer(content, np.uint8)
    return BatchRecords(data, scan(data), row)


def chunks_of(records: BatchRecords, capacity: int) -> Iterator[RecordTable]:
    return records.chunks(np.empty((fields.COLUMN_COUNT, capacity), np.int64))


def values_of(records: BatchRecords, capacity: int = 100) -> tuple[list[tuple[object, ...]], LogstoreError | None]:
    """Offset, timestamp, sequence, key and value of the records, and what came after them."""
    values: list[tuple[object, ...]] = []
    try:
        for chunk in chunks_of(records, capacity):
            columns = zip(chunk.offset.tolist(), chunk.timestamp.tolist(), chunk.sequence.tolist(), strict=True)
            values += [(*numbers, chunk.key(index), chunk.value(index)) for index, numbers in enumerate(columns)]
    except LogstoreError as error:
        return values, error
    return values, None


def batch_around(stream: bytes, count: int, codec: int = NONE) -> bytes:
    """A batch of `count` records whose record bytes, before compression, are `stream`."""
    content = bytearray(Batch(7, codec=codec, stream=compressed(codec, stream)).to_bytes())
    content[57:61] = count.to_bytes(4, "big", signed=True)
    return bytes(content)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("capacity", [1, 2, 5, 100])
def test_records_of_every_codec_come_in_chunks(codec: int, capacity: int) -> None:
    content = Batch(70, RECORDS, 4, codec, base_timestamp=1000, base_sequence=40).to_bytes()
    records = records_of(content)
    sizes = []
    for chunk in chunks_of(records, capacity):
        sizes.append(len(chunk))
        assert chunk.headers(0) == [(b"h", b"x"), (b"", None)]
        assert (set(chunk.key_size.tolist()), set(chunk.value_size.tolist())) == ({3}, {5})
    assert (sum(sizes), max(sizes)) == (5, min(capacity, 5))
    values, error = values_of(records_of(content), capacity)
    assert values == [(70 + i, 1000 + 2 * i, 40 + i, b"key", b"value") for i in range(5)]
    assert error is None


def test_a_plain_batch_is_read_where_it_is() -> None:
    data = np.frombuffer(Batch(0, RECORDS).to_bytes(), np.uint8)
    records = BatchRecords(data, scan(data), 0)
    assert records.data is data
    assert [chunk.data is data for chunk in records.chunks()] == [True]


@pytest.mark.parametrize("boundary", [1 << 31, 1 << 32, 1 << 34])
def test_positions_have_all_their_bits(tmp_path: Path, boundary: int) -> None:
    content = Batch(70, RECORDS, 4).to_bytes()
    table, start = scan(np.frombuffer(content, np.uint8)), boundary - 70
    with (tmp_path / "sparse").open("wb") as file:
        file.seek(start)
        file.write(content)
    table.matrix[POSITION, 0] = start
    values, error = values_of(BatchRecords(np.memmap(tmp_path / "sparse", np.uint8, "r"), table, 0))
    assert [value[3:] for value in values] == [(b"key", b"value")] * 5
    assert error is None


def test_the_row_says_which_batch() -> None:
    content = Batch(0, RECORDS).to_bytes() + Batch(5, RECORDS[:2], codec=ZSTD).to_bytes()
    assert [values[0] for values in values_of(records_of(content, 1))[0]] == [5, 6]


def test_null_and_empty_are_told_apart() -> None:
    content = Batch(0, [Rec(None, b""), Rec(b"", None, offset_delta=1)]).to_bytes()
    values, _ = values_of(records_of(content))
    assert [value[3:] for value in values] == [(None, b""), (b"", None)]
    (chunk,) = records_of(content).chunks()
    assert (chunk.key_size.tolist(), chunk.value_size.tolist()) == ([-1, 0], [0, -1])


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_log_append_time_is_every_records_timestamp(codec: int) -> None:
    content = Batch(0, RECORDS, codec=codec, flags=LOG_APPEND_TIME, max_timestamp=4321).to_bytes()
    assert {value[1] for value in values_of(records_of(content))[0]} == {4321}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_batch_without_records_has_no_chunk(codec: int) -> None:
    assert list(records_of(Batch(3, codec=codec, stream=b"").to_bytes()).chunks()) == []


def test_headers_of_any_size_are_read() -> None:
    headers = [(b"k" * size, b"v" * size) for size in (0, 63, 64, 8191, 8192)]
    (chunk,) = records_of(Batch(0, [Rec(headers=headers)]).to_bytes()).chunks()
    assert chunk.headers(0) == headers


@pytest.mark.parametrize("codec", COMPRESSED.values(), ids=COMPRESSED)
@pytest.mark.parametrize("capacity", [1, 2, 100])
def test_a_compressed_batch_is_checked_before_its_first_record_is_given(codec: int, capacity: int) -> None:
    stream = b"".join(map(record_bytes, RECORDS)) + varint(6) + b"\x00\x00\x00\x01\x01\x01"
    values, error = values_of(records_of(batch_around(stream, 6, codec)), capacity)
    assert values == []
    assert error.message == "Found invalid number of record headers -1"


@pytest.mark.parametrize("capacity", [1, 2, 100])
def test_a_plain_batch_gives_the_records_before_the_wrong_one(capacity: int) -> None:
    stream = b"".join(map(record_bytes, RECORDS)) + varint(6) + b"\x00\x00\x00\x01\x01\x01"
    values, error = values_of(records_of(batch_around(stream, 6)), capacity)
    assert [value[0] for value in values] == [7, 8, 9, 10, 11]
    assert error.message == "Found invalid number of record headers -1"


def test_more_records_than_a_default_chunk_come_out_of_two_passes() -> None:
    records = [Rec(None, b"%d" % index, offset_delta=index) for index in range(5000)]
    tables = [len(chunk) for chunk in records_of(Batch(0, records, codec=GZIP).to_bytes()).chunks()]
    values, error = values_of(records_of(Batch(0, records, codec=GZIP).to_bytes()), 2048)
    assert tables == [2048, 2048, 904]
    assert [value[4] for value in values] == [b"%d" % index for index in range(5000)]
    assert error is None


def test_every_status_of_a_decode_has_words_of_its_own() -> None:
    state = np.zeros(fields.STATE_COUNT, np.int64)
    state[[fields.DETAIL, fields.SECOND_DETAIL, fields.NEXT_POSITION]] = 11, 22, 33
    statuses = range(fields.PREMATURE_END, fields.NEGATIVE_SIZE + 1)
    errors = [record_error(status, state) for status in statuses]
    assert len({error.message for error in errors}) == len(errors) == 11
    assert {error.position for error in errors} == {33}
    assert not any("{" in (error.message or "") for error in errors)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("count", [-1, -(2**31)])
def test_a_negative_count_is_refused(codec: int, count: int) -> None:
    content = batch_around(b"".join(map(record_bytes, RECORDS)), count, codec)
    with pytest.raises(InvalidRecordError) as caught:
        records_of(content)
    assert caught.value.message == f"Found invalid record count {count} in magic v2 batch"
    assert (caught.value.position, caught.value.offset) == (0, 7)


def test_a_batch_shorter_than_its_header_is_refused() -> None:
    stub = bytearray(Batch(0, RECORDS).to_bytes()[:40])
    stub[8:12] = (28).to_bytes(4, "big")
    with pytest.raises(InvalidRecordError) as caught:
        records_of(bytes(stub) + bytes(100))
    assert (caught.value.message, caught.value.java_class) == (None, "java.lang.IndexOutOfBoundsException")


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_what_is_no_stream_fails_before_any_record(codec: int) -> None:
    before = Batch(0, RECORDS).to_bytes()
    content = before + Batch(5, RECORDS, codec=codec, stream=b"not a header at all, by any means").to_bytes()
    values, error = values_of(records_of(content, row=1))
    assert values == []
    assert isinstance(error, DecompressionError)
    assert error.position == len(before)


@pytest.mark.parametrize(("cut", "count"), [(8, 5), (12, 4)])
def test_the_records_before_the_damage_of_a_stream_are_delivered(cut: int, count: int) -> None:
    whole = compressed(GZIP, b"".join(map(record_bytes, RECORDS)))
    intact, _ = values_of(records_of(Batch(0, RECORDS, codec=GZIP, stream=whole).to_bytes()))
    values, error = values_of(records_of(Batch(0, RECORDS, codec=GZIP, stream=whole[:-cut]).to_bytes()))
    assert values == intact[:count]
    assert isinstance(error, DecompressionError)
    assert (error.message or "").startswith("The gzip stream does not decompress beyond its byte ")


def test_a_damaged_stream_is_told_in_place_of_a_wrong_record_in_it() -> None:
    stream = record_bytes(RECORDS[0]) + varint(5) + NO_FIELDS + b"".join(map(record_bytes, RECORDS))
    cut = compressed(GZIP, stream)[:-8]
    values, error = values_of(records_of(Batch(0, RECORDS, codec=GZIP, stream=cut).to_bytes()))
    assert len(values) == 1
    assert isinstance(error, DecompressionError)
