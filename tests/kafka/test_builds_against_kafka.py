"""Batches built by Kafka's own builder, filter and readers against ours: the bytes, the refusals, the splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from logstore.codec import decompress
from logstore.columns.batch_rebuilding import AS_IT_WAS, empty_batch, rebuild_batches
from logstore.columns.batch_table import ByteArray, scan
from logstore.columns.record_building import build_batch, build_batches, build_marker
from logstore.columns.record_columns import RecordColumns
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.errors import LogstoreError
from logstore.layout.batch import HEADER_SIZE
from logstore.model import Codec, ControlRecordType, TimestampType
from tests.kafka.judge import Asked
from tests.naive.building import Row
from tests.support.dice import Dice
from tests.support.encoder import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, SOME_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.judges import told
from tests.support.sampling import case_count

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=100, whole=400)
CRC_AT, CRC_END = 17, 21
LENGTH_AT, LENGTH_END = 8, 12
LEVELS = {Codec.GZIP: (1, 9, -1), Codec.LZ4: (1, 2, 8, 9, 17), Codec.ZSTD: (-131072, -5, 1, 5)}


@dataclass(frozen=True)
class AskedBatch:
    """A batch to build: rows with their offset deltas, and the header."""

    rows: list[Row]
    header: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        header = self.header
        horizon = header["delete_horizon_ms"]
        return {
            "ask": "build",
            "codec": header["codec"].kafka_name,
            "level": header["level"],
            "type": header["timestamp_type"].kafka_name,
            "base": header["base_offset"],
            "appendTime": header["log_append_time"],
            "producer": header["producer_id"],
            "epoch": header["producer_epoch"],
            "sequence": header["base_sequence"],
            "transactional": header["is_transactional"],
            "control": header["is_control"],
            "leaderEpoch": header["partition_leader_epoch"],
            "horizon": -1 if horizon is None else horizon,
            "last": None,
            "records": [record_json(row, header["base_offset"]) for row in self.rows],
        }

    def build(self) -> ByteArray:
        deltas = np.array([row.offset_delta for row in self.rows], np.int64)
        columns = RecordColumns.from_records(python_records(self.rows))
        built = build_batch(columns, offset_deltas=deltas, **self.header)
        if deltas.tolist() == list(range(len(deltas))):
            assert build_batch(columns, **self.header).tobytes() == built.tobytes()
        return built


def python_records(rows: Sequence[Row]) -> list[Any]:
    return [(row.key, row.value, row.timestamp, row.headers) for row in rows]


def record_json(row: Row, base_offset: int = 0) -> dict[str, Any]:
    return {
        "key": None if row.key is None else row.key.hex(),
        "value": None if row.value is None else row.value.hex(),
        "time": row.timestamp,
        "offset": base_offset + (row.offset_delta or 0),
        "headers": [[key.decode(), None if value is None else value.hex()] for key, value in row.headers],
    }


def some_bytes(dice: Dice) -> bytes | None:
    match dice.below(8):
        case 0:
            return None
        case 1:
            return b""
        case 2:
            return b"long " * dice.choose((12, 13, 25, 26, 1638, 1639))
        case _:
            return dice.take(dice.between(1, 20))


def some_headers(dice: Dice) -> list[tuple[bytes, bytes | None]]:
    names = ("", "h", "Grüße 世界", "long name " * 20)
    return [
        (dice.choose(names).encode(), some_bytes(dice))
        for _ in range(dice.choose((0, 0, 0, 1, 3) if dice.chance(98) else (70,)))
    ]


def some_rows(dice: Dice, *, count: int | None = None) -> list[Row]:
    rows, delta = [], dice.choose((0, 0, 0, 2))
    start = dice.choose((SOME_TIME, SOME_TIME, 0, -1))
    for _ in range(dice.choose((1, 1, 2, 5, 40, 130)) if count is None else count):
        time = max(start + dice.choose((0, 0, 1, -1, 100, -5000, 2**40)), -1)
        rows.append(Row(some_bytes(dice), some_bytes(dice), time, some_headers(dice), delta))
        delta += dice.choose((1, 1, 1, 1, 2, 300))
    if dice.chance(10):
        rows[0] = rows[0]._replace(value=dice.take(500) * 300)
    if dice.chance(60):
        return [row._replace(offset_delta=index) for index, row in enumerate(rows)]
    return rows


def some_header(dice: Dice, codec: Codec) -> dict[str, Any]:
    has_producer = dice.chance(60)
    is_append_time = dice.chance(20)
    return {
        "base_offset": dice.choose((0, 0, 7, 2**31, 2**62)),
        "codec": codec,
        "level": dice.choose((None, *LEVELS.get(codec, ()))),
        "timestamp_type": TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME,
        "log_append_time": SOME_TIME + 77 if is_append_time else -1,
        "producer_id": dice.choose((0, 7, 2**62)) if has_producer else -1,
        "producer_epoch": dice.choose((0, 3, 32767)) if has_producer else -1,
        "base_sequence": dice.choose((0, 10, 2**31 - 1)) if has_producer else -1,
        "partition_leader_epoch": dice.choose((-1, 0, 5, 2**31 - 1)),
        "is_transactional": has_producer and dice.chance(50),
        "is_control": False,
        "delete_horizon_ms": dice.choose((None, None, None, 0, SOME_TIME + 10**9)),
    }


def some_batch(number: int, codec: Codec) -> AskedBatch:
    dice = Dice(f"build/{codec.name}/{number}")
    rows = some_rows(dice)
    return AskedBatch(rows, some_header(dice, codec))


@pytest.fixture
def kafka(asked: Callable[..., Asked]) -> Asked:
    return asked("Builds")


def ask(kafka: Asked, questions: list[dict[str, Any]]) -> list[Any]:
    """The answers; an answer that is an error is its text."""
    answers = [kafka.ask(question) for question in questions]
    return [next(iter(answer.values())) for answer in answers]


def records_of(data: ByteArray) -> list[dict[str, Any]]:
    """All records of a batch as the real reader tells them."""
    table = scan(data, check_crc=True)
    assert table.is_valid.tolist() == [1]
    found = []
    for chunk in BatchRecords(data, table, 0).chunks():
        for index in range(len(chunk)):
            row = Row(chunk.key(index), chunk.value(index), int(chunk.timestamp[index]), chunk.headers(index))
            found.append(record_json(row) | {"offset": int(chunk.offset[index])})
    return found


def test_plain_batches_are_kafkas_to_the_byte(kafka: Asked) -> None:
    asked = [some_batch(number, Codec.NONE) for number in range(CASE_COUNT)]
    answers = ask(kafka, [each.to_json() | {"level": None} for each in asked])
    for each, answer in zip(asked, answers, strict=True):
        assert each.build().tobytes().hex() == answer, each.header


@pytest.mark.parametrize("codec", list(Codec)[1:], ids=lambda codec: codec.kafka_name)
def test_compressed_batches_say_the_same_as_kafkas(kafka: Asked, codec: Codec) -> None:
    asked = [some_batch(number, codec) for number in range(CASE_COUNT // 4)]
    real = ask(kafka, [each.to_json() for each in asked])
    built = [each.build() for each in asked]
    read = ask(kafka, [{"ask": "read", "batch": data.tobytes().hex()} for data in built])
    same_count = 0
    for each, answer, ours, records in zip(asked, real, built, read, strict=True):
        theirs = np.frombuffer(bytes.fromhex(answer), np.uint8)
        same_count += ours.tobytes() == theirs.tobytes()
        assert without_size_and_crc(ours) == without_size_and_crc(theirs)
        assert content(codec, ours) == content(codec, theirs)
        assert records == records_of(theirs), each.header
    assert same_count > 0


def without_size_and_crc(data: ByteArray) -> bytes:
    header = data[:HEADER_SIZE].tobytes()
    return header[:LENGTH_AT] + header[LENGTH_END:CRC_AT] + header[CRC_END:]


def content(codec: Codec, data: ByteArray) -> bytes:
    stream = decompress(codec, data[HEADER_SIZE:].data, 2, 1 << 30)
    assert stream.error is None
    return stream.data.tobytes()


def test_batches_hold_as_many_records_as_a_producers(kafka: Asked) -> None:
    dice = Dice("split")
    asked = [(some_rows(dice, count=40), dice.choose((1, 100, 300, 1000, 16384))) for _ in range(CASE_COUNT // 2)]
    questions = [{"ask": "split", "size": size, "records": [record_json(row) for row in rows]} for rows, size in asked]
    for (rows, size), counts in zip(asked, ask(kafka, questions), strict=True):
        built = build_batches(RecordColumns.from_records(python_records(rows)), batch_size=size)
        assert built.table.record_count.tolist() == counts


def test_markers_are_kafkas_to_the_byte(kafka: Asked) -> None:
    keys = "base", "time", "leaderEpoch", "producer", "epoch", "coordinatorEpoch"
    values = [(6, 1_700_000_000_020, 3, 7, 1, 4), (0, 0, -1, 2**62, 32767, 2**31 - 1), (2**40, SOME_TIME, 0, 0, 0, -1)]
    types = [ControlRecordType.COMMIT, ControlRecordType.ABORT]
    questions = [
        dict(zip(keys, each, strict=True)) | {"ask": "marker", "control": kind.name}
        for each in values
        for kind in types
    ]
    answers = ask(kafka, questions)
    for question, answer in zip(questions, answers, strict=True):
        marker = build_marker(
            ControlRecordType[str(question["control"])],
            producer_id=int(question["producer"]),
            producer_epoch=int(question["epoch"]),
            coordinator_epoch=int(question["coordinatorEpoch"]),
            timestamp_ms=int(question["time"]),
            base_offset=int(question["base"]),
            partition_leader_epoch=int(question["leaderEpoch"]),
        )
        assert (marker.size, marker.tobytes().hex()) == (78, answer)


@dataclass(frozen=True)
class Filtered:
    """A batch to be cleaned, and which of its records are kept."""

    data: ByteArray
    keep: list[bool]
    horizon_ms: int

    def to_json(self) -> dict[str, Any]:
        is_set = self.horizon_ms != AS_IT_WAS
        batch = self.data.tobytes().hex()
        return {"ask": "filter", "batch": batch, "keep": self.keep, "isHorizonSet": is_set, "horizon": self.horizon_ms}

    def rebuild(self) -> ByteArray:
        table = scan(self.data)
        records = whole_table(self.data)
        if not any(self.keep):
            return empty_batch(table, 0)
        first, end = np.array([0]), np.array([len(records)])
        return rebuild_batches(records, table, first, end, np.array(self.keep), np.array([self.horizon_ms])).data


def whole_table(data: ByteArray) -> RecordTable:
    table = scan(data)
    matrix = np.zeros((9, int(table.record_count[0])), np.int64)
    (records,) = BatchRecords(data, table, 0).chunks(matrix)
    return records


def some_filtered(number: int) -> Filtered:
    """A batch that a cleaner may meet: attributes of records, broken UTF-8 in header keys, a horizon of its own."""
    dice = Dice(f"filter/{number}")
    is_control = dice.chance(15)
    rows = [row for row in some_rows(dice) if row.value is not None or dice.chance(50)] or [Row(b"k", b"v", 5)]
    keys = (b"h", b"\xff\xfe", "ü".encode(), b"\xed\xa0\x80", b"")
    base = SOME_TIME if dice.chance(30) else 0
    records = [
        Rec(
            row.key,
            row.value,
            [(dice.choose(keys), value) for _, value in row.headers],
            row.offset_delta or 0,
            max(row.timestamp - base, -1),
            dice.choose((0, 0, 255)),
        )
        for row in rows
    ]
    has_producer = dice.chance(50)
    flags = (LOG_APPEND_TIME, has_producer and TRANSACTIONAL, dice.chance(30) and DELETE_HORIZON)
    batch = Batch(
        base_offset=dice.choose((0, 5, 2**40)),
        records=records,
        last_offset_delta=records[-1].offset_delta + dice.choose((0, 3)),
        codec=dice.choose((0, 0, 0, 1, 2, 3, 4)) if not is_control else 0,
        flags=sum(int(flag) for flag in flags if dice.chance(50)) | (CONTROL if is_control else 0),
        base_timestamp=base,
        max_timestamp=SOME_TIME + 9,
        producer_id=7 if has_producer else -1,
        producer_epoch=3 if has_producer else -1,
        base_sequence=10 if has_producer and not is_control else -1,
        leader_epoch=dice.choose((0, 4)),
    )
    data = np.frombuffer(batch.to_bytes(), np.uint8)
    share = dice.choose((0, 30, 60, 90))
    keep = [dice.chance(share) for _ in records]
    # a tombstone that is kept has its horizon set by the filter itself
    needs_horizon = any(kept and record.value is None for kept, record in zip(keep, records, strict=True))
    has_horizon = bool(batch.flags & DELETE_HORIZON)
    is_set = (needs_horizon or dice.chance(30)) and not has_horizon
    return Filtered(data, keep, SOME_TIME + 10**6 if is_set else AS_IT_WAS)


def test_cleaned_batches_are_kafkas(kafka: Asked) -> None:
    asked = [each for each in map(some_filtered, range(CASE_COUNT)) if not all(each.keep) or each.horizon_ms >= 0]
    answers = ask(kafka, [each.to_json() for each in asked])
    empty_count = 0
    for each, answer in zip(asked, answers, strict=True):
        theirs = np.frombuffer(bytes.fromhex(answer), np.uint8)
        ours = each.rebuild()
        codec = Codec(int(scan(ours).attributes[0]) & 7)
        empty_count += ours.size == HEADER_SIZE
        if codec is Codec.NONE:
            assert ours.tobytes() == theirs.tobytes()
        else:
            assert without_size_and_crc(ours) == without_size_and_crc(theirs)
            assert content(codec, ours) == content(codec, theirs)
    assert 0 < empty_count < len(asked)


REFUSALS: list[Callable[[AskedBatch], AskedBatch]] = [
    lambda asked: changed(asked, is_transactional=True),
    lambda asked: changed(asked, producer_id=5),
    lambda asked: changed(asked, producer_id=5, producer_epoch=0),
    lambda asked: changed(asked, timestamp_type=TimestampType.NO_TIMESTAMP_TYPE),
    lambda asked: changed(asked, codec=Codec.GZIP, level=10),
    lambda asked: changed(asked, codec=Codec.GZIP, level=0),
    lambda asked: changed(asked, codec=Codec.LZ4, level=18),
    lambda asked: changed(asked, codec=Codec.ZSTD, level=23),
    lambda asked: changed(asked, codec=Codec.SNAPPY, level=1),
    lambda asked: AskedBatch([asked.rows[0]._replace(timestamp=-2)], asked.header),
]


def changed(asked: AskedBatch, **header: Any) -> AskedBatch:
    return AskedBatch(asked.rows, asked.header | header)


def test_batches_that_kafka_refuses_are_refused_in_its_words(kafka: Asked) -> None:
    plain = some_header(Dice("plain"), Codec.NONE) | dict.fromkeys(
        ("producer_id", "producer_epoch", "base_sequence"), -1
    )
    good = AskedBatch([Row(b"k", b"v", 5, (), 0)], plain | {"is_transactional": False, "level": None})
    asked = [refusal(good) for refusal in REFUSALS]
    answers = ask(kafka, [each.to_json() for each in asked])
    for each, answer in zip(asked, answers, strict=True):
        with pytest.raises(LogstoreError) as refused:
            each.build()
        assert told(refused.value) == answer
    falling = AskedBatch([good.rows[0]._replace(offset_delta=delta) for delta in (5, 3)], good.header)
    (answer,) = ask(kafka, [falling.to_json()])
    assert "(Offsets must increase monotonically)" in answer
    with pytest.raises(LogstoreError, match="Offsets must increase monotonically"):
        falling.build()
