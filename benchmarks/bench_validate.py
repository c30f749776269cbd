"""What an append costs before anything is written: the kernels alone, and whole checks of batches by their size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.floors import reading
from benchmarks.library_floors import decompressing
from benchmarks.measured import Measured
from logstore.columns.batch_table import ByteArray, scan
from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import RecordColumns
from logstore.columns.record_table import BatchRecords
from logstore.folds.producer_update import AppendOrigin
from logstore.kernels import decode
from logstore.kernels import scan as fields
from logstore.kernels import validate as quick
from logstore.layout.batch import HEADER_SIZE
from logstore.log.batch_validator import BatchValidator
from logstore.log.config import parse_config
from logstore.log.skipped_records import SkippedRecords
from logstore.log.validation_rules import ValidationRules
from logstore.model import Codec

NOW = 1_700_000_000_000
COUNTS = [1, 10, 100, 1000]
RULES = ValidationRules.of(parse_config({}), "t-0")


def batch_of(count: int, codec: Codec = Codec.NONE) -> ByteArray:
    """A batch of records of 100 bytes, as an idempotent producer sends it."""
    columns = RecordColumns.from_records((None, b"%0100d" % index, NOW, []) for index in range(count))
    return build_batch(columns, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0)


def scratch() -> npt.NDArray[np.int64]:
    """What a check of records works in."""
    return np.zeros((decode.COLUMN_COUNT, quick.ROW_COUNT), np.int64)


def test_skip_records(measured: Measured) -> None:
    data = batch_of(1000, Codec.ZSTD)
    records = SkippedRecords(data, scan(data), 0)
    start = records.state.copy()
    matrix = np.zeros((decode.COLUMN_COUNT, 1000), np.int64)

    def skip_all() -> int:
        records.state[:] = start
        return decode.decode_records(records.data, records.state, matrix, 1000)

    floor, skipped = reading(records.data), lambda status: (status, matrix)
    assert measured(skip_all, count=1000, floor=floor, hashed=skipped) == decode.OK
    assert matrix[decode.OFFSET].tolist() == list(range(1000))


def test_validate_batch(measured: Measured) -> None:
    data = batch_of(1000).copy()
    slots = np.zeros(quick.SLOT_COUNT, np.int64)
    slots[quick.SIZE : quick.NEEDS_KEYS] = [data.size, 0, 0, NOW, 1, data.size, -1, 0, 1000, 1000]
    matrix = np.zeros((fields.COLUMN_COUNT, 1), np.int64)
    kernel = quick.validate_batch.bound(data, slots, matrix, scratch())
    floor, found = reading(data), lambda status: (status, matrix)
    assert measured(kernel.run, size=data.size, count=1000, floor=floor, hashed=found) == quick.OK
    assert matrix[fields.RECORD_COUNT, 0] == 1000


def test_validate_compressed(measured: Measured) -> None:
    data = batch_of(1000, Codec.ZSTD).copy()
    slots = np.zeros(quick.SLOT_COUNT, np.int64)
    slots[quick.SIZE : quick.NEEDS_KEYS] = [data.size, 0, 0, NOW, 1, data.size, -1, 0, 1000, 1000]
    matrix = np.zeros((fields.COLUMN_COUNT, 1), np.int64)
    stream = BatchRecords(data, scan(data), 0).data
    assert quick.validate_batch(data, slots, matrix, scratch()) == quick.IS_COMPRESSED
    status = measured(
        quick.validate_compressed,
        *(data, stream, stream.size, slots, matrix, scratch()),
        size=stream.size,
        count=1000,
        floor=reading(stream),
        hashed=lambda status: (status, matrix),
    )
    assert status == quick.OK
    assert matrix[fields.BASE_OFFSET, 0] == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD], ids=["none", "lz4", "zstd"])
@pytest.mark.parametrize("count", COUNTS)
def test_append_is_checked(measured: Measured, count: int, codec: Codec) -> None:
    data, validator = batch_of(count, codec), BatchValidator(RULES)

    def check() -> int:
        result = validator.validate(data, origin=AppendOrigin.CLIENT, base_offset=100, leader_epoch=0, now_ms=NOW)
        assert result is not None
        return result.last_offset

    title = f"check of an append of {count:,} records, {codec.kafka_name}"
    floor = reading(data) if codec is Codec.NONE else decompressing(codec, [data[HEADER_SIZE:].tobytes()])
    assert measured(check, title=title, size=data.size, count=count, floor=floor) == 99 + count
