"""Batch tables: what a file's headers become, window by window, and what is said where the file is wrong."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from logstore.columns import batch_table
from logstore.columns.batch_table import FIELD_NAMES, BatchTable, headers, scan, scan_chunk
from logstore.errors import CorruptRecordError
from logstore.kernels.scan import batches as fields
from tests.naive import batch, legacy
from tests.naive.checksum import crc32c
from tests.support.encoder import LZ4, TRANSACTIONAL, Batch, Rec

BATCH = Batch(
    base_offset=70,
    records=[Rec(b"key", b"value", offset_delta=index) for index in range(3)],
    last_offset_delta=4,
    codec=LZ4,
    flags=TRANSACTIONAL,
    base_timestamp=1000,
    max_timestamp=1005,
    producer_id=9,
    producer_epoch=2,
    base_sequence=40,
    leader_epoch=6,
)
FILE = b"".join(Batch(index, [Rec(b"k", b"v" * index)]).to_bytes() for index in range(40))
ENTRY = legacy.entry(12, legacy.message(1, b"k", b"v", timestamp=77))


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def rows_of(table: BatchTable) -> list[batch.Row]:
    return [batch.Row(*values) for values in table.matrix[:, : table.count].T.tolist()]


def test_a_row_has_the_fields_of_its_batch_by_kafkas_names() -> None:
    data = b"?" * 5 + BATCH.to_bytes()
    row = scan(array(data), 5, check_crc=True).row(0)
    assert row.pop("crc") == struct.unpack_from(">I", data, 5 + 17)[0]
    assert row == {
        "position": 5,
        "size": len(data) - 5,
        "base_offset": 70,
        "partition_leader_epoch": 6,
        "magic": 2,
        "attributes": LZ4 | TRANSACTIONAL,
        "last_offset_delta": 4,
        "base_timestamp": 1000,
        "max_timestamp": 1005,
        "producer_id": 9,
        "producer_epoch": 2,
        "base_sequence": 40,
        "record_count": 3,
        "is_valid": 1,
    }


def test_a_v1_entry_fills_what_it_has() -> None:
    table = scan(array(ENTRY), check_crc=True)
    known = {name: value for name, value in table.row(0).items() if value != -1}
    assert known.pop("crc") == struct.unpack_from(">I", ENTRY, 12)[0]
    assert known == {
        "position": 0,
        "size": len(ENTRY),
        "base_offset": 12,
        "magic": 1,
        "attributes": 0,
        "last_offset_delta": 0,
        "max_timestamp": 77,
    }


def test_columns_are_views_of_the_filled_rows() -> None:
    table = scan_chunk(array(FILE), 0, len(FILE), capacity=50)
    assert (len(table), table.count, table.capacity) == (40, 40, 50)
    for name in FIELD_NAMES:
        column = table.column(FIELD_NAMES[name])
        assert (column.shape, column.dtype) == ((40,), np.dtype(np.int64))
        assert np.shares_memory(column, table.matrix)
    assert table.base_offset.tolist() == list(range(40))
    assert sorted(FIELD_NAMES.values()) == list(range(fields.COLUMN_COUNT))


@pytest.mark.parametrize("name", sorted({*FIELD_NAMES} & {*dir(BatchTable)}))
def test_properties_are_the_columns_of_their_name(name: str) -> None:
    table = scan(array(BATCH.to_bytes() + ENTRY), check_crc=True)
    assert getattr(table, name).tolist() == [table.row(index)[name] for index in range(2)]


def test_the_last_offset_counts_records_that_the_cleaner_took() -> None:
    table = scan(array(BATCH.to_bytes() + ENTRY))
    assert table.last_offset.tolist() == [74, 12]


def test_a_file_larger_than_a_window_is_scanned_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_table, "WINDOW_SIZE", 300)
    data, position, tables = array(FILE), 0, []
    while not tables or tables[-1].status == fields.MORE:
        tables.append(scan_chunk(data, position, data.size, check_crc=True))
        assert tables[-1].position[0] == position
        assert tables[-1].position[-1] < position + 300
        position = tables[-1].next_position
    assert len(tables) > 5
    assert [row for table in tables for row in rows_of(table)] == [
        batch.checked(FILE, row) for row in batch.scan(FILE, 0, len(FILE)).rows
    ]


def test_a_scan_of_many_windows_is_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scan(array(FILE), check_crc=True)
    monkeypatch.setattr(batch_table, "WINDOW_SIZE", 300)
    pieces = scan(array(FILE), check_crc=True)
    assert rows_of(pieces) == rows_of(whole)
    assert (pieces.status, pieces.next_position) == (whole.status, whole.next_position) == (fields.END, len(FILE))


def test_a_reader_that_may_need_few_headers_gets_few_at_first() -> None:
    tables = list(headers(array(FILE), first_capacity=2, capacity=20))
    assert [len(table) for table in tables] == [2, 16, 20, 2]
    assert [row for table in tables for row in rows_of(table)] == rows_of(scan(array(FILE)))


def test_headers_end_where_no_batch_follows_and_say_why() -> None:
    content = FILE + bytes(100)
    *before, last = headers(array(content), capacity=20)
    assert [table.status for table in before] == [fields.MORE, fields.MORE]
    assert (last.status, last.next_position) == (fields.LENGTH_TOO_SMALL, len(FILE))


def test_bytes_are_loaded_before_they_are_read() -> None:
    data, loaded = np.zeros(len(FILE), np.uint8), [0]

    def load(start: int, end: int) -> None:
        assert start <= loaded[-1], "no gap"
        data[start:end] = array(FILE)[start:end]
        loaded.append(max(end, loaded[-1]))

    found = [row for table in headers(data, window_size=300, load=load) for row in rows_of(table)]
    assert found == rows_of(scan(array(FILE)))
    assert loaded[-1] == len(FILE)


def test_a_batch_larger_than_a_window_is_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_table, "WINDOW_SIZE", 1)
    table = scan(array(FILE))
    assert table.count == 40


def test_a_full_table_goes_on_at_the_next_batch() -> None:
    data = array(FILE)
    first = scan_chunk(data, 0, data.size, capacity=39)
    assert (first.count, first.status) == (39, fields.MORE)
    last = scan_chunk(data, first.next_position, data.size, capacity=39)
    assert (last.count, last.status, last.next_position) == (1, fields.END, data.size)


def test_checksums_are_only_computed_when_asked_for() -> None:
    data = bytearray(BATCH.to_bytes() + BATCH.to_bytes() + ENTRY)
    data[70] ^= 1
    assert scan(array(bytes(data))).is_valid.tolist() == [-1, -1, -1]
    assert scan(array(bytes(data)), check_crc=True).is_valid.tolist() == [0, 1, -1]


@pytest.mark.parametrize("size", range(18))
def test_a_tail_of_at_most_17_bytes_is_left_alone(size: int) -> None:
    table = scan(array(FILE + b"\xff" * size))
    assert (table.count, table.status, table.next_position) == (40, fields.END, len(FILE))
    assert table.error("a.log", table.next_position + size) is None


def test_a_batch_that_reaches_past_the_end_is_left_alone() -> None:
    data = array(FILE + BATCH.to_bytes()[:-1])
    table = scan(data)
    assert (table.count, table.status, table.next_position) == (40, fields.END, len(FILE))
    assert scan(array(FILE), end=len(FILE) - 1).count == 39


@pytest.mark.parametrize("length", [13, 0, -1, -(2**31)])
def test_a_length_that_cannot_be_is_told_in_kafkas_words(length: int) -> None:
    data = FILE + struct.pack(">qi", 40, length) + b"\xff" * 100
    table = scan(array(data))
    error = table.error("/data/t-0/a.log", len(data))
    assert table.count == 40
    assert isinstance(error, CorruptRecordError)
    assert error.message == (
        f"Found record size {length} smaller than minimum record overhead (14) in file /data/t-0/a.log."
    )
    assert (error.position, error.found) == (len(FILE), length)
    assert error.java_class == "org.apache.kafka.common.errors.CorruptRecordException"


def stub_of(size: int) -> bytearray:
    """A batch that ends within its header, and says so."""
    stub = bytearray(BATCH.to_bytes()[:size])
    stub[8:12] = struct.pack(">i", size - 12)
    return stub


@pytest.mark.parametrize("stub_size", [26, 40, 60])
def test_a_header_that_the_file_is_too_short_for_is_told_in_kafkas_words(stub_size: int) -> None:
    size = len(FILE) + stub_size
    table = scan(array(FILE + bytes(stub_of(stub_size))))
    error = table.error("/d/a.log", size)
    assert table.status == fields.HEADER_BEYOND_FILE
    assert isinstance(error, CorruptRecordError)
    assert error.message == (
        f"Failed to load record batch at position {len(FILE)} "
        f"from FileRecords(size={size}, file=/d/a.log, start=0, end={size})"
    )
    assert error.java_class == "org.apache.kafka.common.KafkaException"


def test_a_header_that_just_fits_is_a_batch() -> None:
    table = scan(array(FILE + bytes(stub_of(61))))
    assert (table.count, table.status) == (41, fields.END)


def test_a_short_batch_is_read_on_into_the_next_one_and_never_valid() -> None:
    stub = stub_of(40)
    stub[17:21] = struct.pack(">I", crc32c(bytes(stub[21:])))
    table = scan(array(bytes(stub) + FILE), check_crc=True)
    assert table.count == 41
    assert table.is_valid.tolist() == [0] + [1] * 40


def test_nothing_is_an_empty_table() -> None:
    table = scan(array(b""))
    assert (len(table), table.status, table.next_position, table.matrix.shape) == (0, fields.END, 0, (15, 0))


def test_a_read_only_mapping_can_be_scanned() -> None:
    data = array(FILE)
    assert not data.flags.writeable
    assert scan(data, check_crc=True).is_valid.all()
