"""What an append costs before anything is written: the kernels alone, and whole checks of batches by their size."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.floors import reading
from benchmarks.library_floors import decompressing
from benchmarks.measured import Measured
from logstore.columns.batch_table import ByteArray, scan
from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import RecordColumns
from logstore.folds.producer_update import AppendOrigin
from logstore.kernels.decode import records as decode
from logstore.layout.batch import HEADER_SIZE
from logstore.log.append.analyze import analyze
from logstore.log.append.rules import ValidationRules
from logstore.log.append.validate import SkippedRecords, validate
from logstore.log.config import parse_config
from logstore.model import Codec

NOW = 1_700_000_000_000
COUNTS = [1, 10, 100, 1000]
RULES = ValidationRules.of(parse_config({}), "t-0")


def batch_of(count: int, codec: Codec = Codec.NONE) -> ByteArray:
    """A batch of records of 100 bytes, as an idempotent producer sends it."""
    columns = RecordColumns.from_records((None, b"%0100d" % index, NOW, []) for index in range(count))
    return build_batch(columns, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0)


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


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD], ids=["none", "lz4", "zstd"])
@pytest.mark.parametrize("count", COUNTS)
def test_append_is_checked(measured: Measured, count: int, codec: Codec) -> None:
    """By the slow path; the fast one checks as it appends."""
    data = batch_of(count, codec)

    def check() -> int:
        analyzed = analyze(data, origin=AppendOrigin.CLIENT, leader_epoch=0, rules=RULES)
        call = {"origin": AppendOrigin.CLIENT, "base_offset": 100, "leader_epoch": 0, "now_ms": NOW, "rules": RULES}
        return validate(data, analyzed, **call).last_offset

    title = f"check of an append of {count:,} records, {codec.kafka_name}"
    floor = reading(data) if codec is Codec.NONE else decompressing(codec, [data[HEADER_SIZE:].tobytes()])
    assert measured(check, title=title, size=data.size, count=count, floor=floor) == 99 + count
