"""What a write leaves in the store, without a JVM: placement, atomicity, staging, and every way to fail."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logstore
from logstore import clock
from logstore.client.producer.queues import partition_for_key
from logstore.columns.batch_table import scan
from logstore.coordinator.transactions.transitions import COMPLETE_ABORT, ONGOING
from logstore.disk.lock import DataDirectoryLock
from logstore.errors import (
    DataDirectoryError,
    InvalidTopicError,
    LogstoreError,
    ProducerFencedError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from logstore.layout.batch import CODEC_MASK
from logstore.model import Codec, FetchIsolation
from spark_dumps import writing
from spark_dumps.sink import staged_schema
from spark_dumps.write_options import ID_PREFIX
from tests.spark.written import ALL, Job, left_beside, make_topics, records, values

SOME_TIME = datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)
SOME_MS = 1_700_000_000_123


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_topics(tmp_path / "data", orders=3, payments=1)


def keyed(*numbers: int) -> list[dict[str, bytes]]:
    return [{"key": b"k%d" % number, "value": b"v%d" % number} for number in numbers]


def test_rows_of_all_tasks_are_records_of_one_transaction(store: Path) -> None:
    Job(store, topic="orders").task(keyed(*range(50)), keyed(*range(50, 90))).task(keyed(*range(90, 200))).commit()
    found = records(store)
    for isolation in FetchIsolation:
        assert records(store, isolation=isolation) == found
    assert sum(map(len, found.values())) == 200
    for partition, of_partition in found.items():
        numbers = [int(record.value[1:]) for record in of_partition if record.value is not None]
        assert numbers == sorted(numbers)  # the order of the tasks
        assert [record.offset for record in of_partition] == list(range(len(numbers)))
        assert {partition_for_key(record.key or b"", 3) for record in of_partition} == {partition}
    with logstore.open(store) as opened:
        (transaction,) = opened.transactions
        assert transaction.state.name == "COMPLETE_COMMIT"
        assert transaction.transactional_id.startswith(ID_PREFIX)
        assert [opened.log("orders", one).log_end_offset for one in range(3)] == [len(found[one]) + 1 for one in found]
    assert left_beside(store) == []


def test_every_column_comes_through(store: Path) -> None:
    row = {"topic": "payments", "key": b"k", "value": b"v", "partition": 0, "timestamp": SOME_TIME}
    headers = [{"key": "a", "value": b"1"}, {"key": "", "value": None}, {"key": "é", "value": b""}]
    bare = {"topic": "orders", "partition": 2}
    begin_ms = clock.now_ms()
    Job(store, ALL).task([{**row, "headers": headers}, bare, {**row, "key": b"", "headers": []}]).commit()
    first, second = records(store, "payments")[0]
    assert (first.key, first.value, first.timestamp) == (b"k", b"v", SOME_MS)
    assert first.headers == [("a", b"1"), ("", None), ("é", b"")]
    assert (second.key, second.headers) == (b"", [])
    (record,) = records(store)[2]
    assert (record.key, record.value, record.headers) == (None, None, [])
    assert begin_ms <= record.timestamp <= clock.now_ms()


SCHEMA = staged_schema({"key": 0, "value": 1})
COMBINATIONS = [
    *itertools.product([None, "string", "binary"], ["string", "binary"], [""]),
    *itertools.product([None, "binary"], ["string"], [", partition int", ", headers headers"]),
    ("string", "binary", ", timestamp timestamp, offset long"),
]


@pytest.mark.slow
def test_columns_in_every_combination(store: Path) -> None:
    texts: dict[str | None, Callable[[str], Any]] = {"string": str, "binary": str.encode, None: lambda _: None}
    row = {"partition": 1, "timestamp": SOME_TIME, "offset": 7, "headers": [{"key": "h", "value": b"x"}]}
    for number, (key, value, others) in enumerate(COMBINATIONS):
        schema = ("" if key is None else f"key {key}, ") + f"value {value}{others}"
        job = Job(store, schema, topic=f"t{number}", partitions=3)
        job.task([{**row, "key": texts[key]("k1"), "value": texts[value]("ü")}]).commit()
    for number, (key, _, others) in enumerate(COMBINATIONS):
        ((partition, record),) = [(at, one) for at, of in records(store, f"t{number}").items() for one in of]
        assert (record.key, record.value) == (None if key is None else b"k1", "ü".encode())
        assert record.headers == ([("h", b"x")] if "headers" in others else [])
        assert ("timestamp" in others) is (record.timestamp == SOME_MS)
        if "partition" in others:
            assert partition == 1
        elif key is not None:
            assert partition == partition_for_key(b"k1", 3)


def test_an_option_topic_is_stronger_than_the_column(store: Path) -> None:
    Job(store, "topic string, value string", topic=" orders ").task([{"topic": "payments", "value": "a"}]).commit()
    assert sum(map(len, records(store).values())) == 1
    assert records(store, "payments") == {0: []}


def test_rows_without_a_key_change_the_partition_after_a_batch(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "COLUMNS_BATCH_SIZE", 1000)
    job = Job(store, "key string, value binary", topic="orders")
    job.task(*[[{"value": b"%4d" % (10 * number + at) + b"." * 96} for at in range(10)] for number in range(100)])
    job.commit()
    found = values(store)
    assert sum(map(len, found.values())) == 1000
    assert min(map(len, found.values())) > 100
    for of_partition in found.values():
        numbers = [int(value[:4]) for value in of_partition if value is not None]
        assert numbers == sorted(numbers)
        assert all(start % 10 == 0 for start in numbers[::10])  # ten rows of 100 bytes stay together


def test_keys_may_be_ignored(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "COLUMNS_BATCH_SIZE", 1)
    Job(store, topic="orders", kafka_partitioner_ignore_keys="true").task(keyed(*[1] * 200)).commit()
    assert min(map(len, values(store).values())) > 20


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_batches_are_compressed(codec: Codec, store: Path) -> None:
    Job(store, topic="payments", kafka_compression_type=codec.name.lower()).task(keyed(*range(3000))).commit()
    assert values(store, "payments")[0] == [b"v%d" % number for number in range(3000)]
    (log,) = (store / "payments-0").glob("*.log")
    assert int(scan(np.fromfile(log, np.uint8)).attributes[0]) & CODEC_MASK == codec.value


def test_big_rows_many_chunks_and_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK_SIZE", 1 << 20)
    monkeypatch.setattr("spark_dumps.sink.PIECE_SIZE", 1 << 16)
    store = make_topics(tmp_path / "data", config={"max.message.bytes": 8 << 20}, orders=2, payments=1)
    rows = [
        {
            "topic": ("orders", "payments")[number % 2],
            "value": bytes([number % 256]) * (5 << 20 if number == 7 else 9000),
        }
        for number in range(400)
    ]
    Job(store, "topic string, value binary").task(rows[:390]).task(rows[390:]).commit()
    assert values(store, "payments")[0] == [row["value"] for row in rows if row["topic"] == "payments"]
    assert sum(map(len, values(store).values())) == 200


def test_no_rows_leave_the_store_alone(store: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    Job(store, topic="orders").task().task([], []).commit()
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before
    assert left_beside(store) == []


def test_attempts_that_do_not_count_leave_nothing(store: Path) -> None:
    job = Job(store, topic="orders")
    job.stage(keyed(1, 2, 3))
    job.task(keyed(1, 2, 3))
    job.stage(keyed(1, 2, 3))
    job.commit()
    assert sum(map(len, values(store).values())) == 3
    assert left_beside(store) == []
    with pytest.raises(DataDirectoryError, match="staging directory cannot be written"):
        job.stage(keyed(4))
    with pytest.raises(ProducerFencedError):
        job.commit()
    assert sum(map(len, values(store).values())) == 3
    assert left_beside(store) == []


def test_an_aborted_job_leaves_nothing(store: Path) -> None:
    job = Job(store, topic="orders").task(keyed(1))
    assert len(left_beside(store)) == 1
    job.abort()
    job.abort()
    assert left_beside(store) == []
    assert values(store, isolation=FetchIsolation.LOG_END) == {0: [], 1: [], 2: []}


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ({"topic": None, "value": b"v"}, UsageError, "contains a null topic"),
        ({"topic": "orders", "partition": -1}, UsageError, "Invalid partition: -1. Partition number should always"),
        ({"topic": "orders", "timestamp": datetime.fromtimestamp(-1, UTC)}, UsageError, "Invalid timestamp: -1000. "),
        ({"topic": "orders", "headers": [{"key": None, "value": b"v"}]}, UsageError, "Invalid null header key"),
        ({"topic": "__consumer_offsets", "value": b"v"}, InvalidTopicError, "Cannot append to internal topic"),
    ],
)
def test_a_row_that_kafkas_producer_refuses_fails_its_task(
    row: dict[str, Any], error: type[LogstoreError], words: str, store: Path
) -> None:
    job = Job(store, ALL).task([{"topic": "orders", "value": b"good"}])
    with pytest.raises(error, match=words):
        job.task([{"topic": "orders", "value": b"good"}], [row])
    (staging,) = left_beside(store)
    assert len(os.listdir(store.parent / staging)) == 1  # the file of the good task
    job.abort()
    assert left_beside(store) == []
    assert values(store, isolation=FetchIsolation.LOG_END) == {0: [], 1: [], 2: []}


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ({"topic": "orders", "partition": 3}, UnknownTopicOrPartitionError, "Partition 3 of topic orders with"),
        ({"topic": "orders", "value": bytes(2_000_000)}, RecordTooLargeError, "exceeds the maximum"),
        ({"topic": "nowhere", "value": b"v"}, UnknownTopicOrPartitionError, "or set option partitions"),
    ],
)
def test_a_row_that_the_store_refuses_fails_the_whole_job(
    row: dict[str, Any], error: type[LogstoreError], words: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "CHUNK_SIZE", 1)  # so that there is something to be aborted
    good = {"topic": "payments", "value": b"good"}
    job = Job(store, ALL).task([good]).task([row]).task([good])
    with pytest.raises(error, match=words):
        job.commit()
    assert values(store, "payments") == {0: []}
    assert left_beside(store) == []
    Job(store, topic="payments").task([{"value": b"later"}]).commit()
    assert values(store, "payments") == {0: [b"later"]}
    with logstore.open(store) as opened:
        log = opened.log("payments", 0)
        assert log.last_stable_offset == log.log_end_offset


def test_topics_are_made_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    with pytest.raises(DataDirectoryError, match="no data directory"):
        Job(path, topic="orders")
    Job(path, "topic string, value string", partitions=2).task([{"topic": "a", "value": "1"}]).commit()
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic b not present in metadata"):
        Job(path, topic="b")
    Job(path, "topic string, value string", partitions=5).task(
        [{"topic": "a", "value": "2"}, {"topic": "b", "value": "3"}]
    ).commit()
    with logstore.open(path, read_only=True) as store:
        assert {name: topic.partition_count for name, topic in store.topics.items() if name[0] != "_"} == {
            "a": 2,
            "b": 5,
        }
    assert sorted(value for of in values(path, "a").values() for value in of if value) == [b"1", b"2"]


def test_jobs_side_by_side_are_two_transactions(store: Path) -> None:
    one, other = Job(store, topic="orders").task(keyed(1)), Job(store, topic="orders").task(keyed(2))
    other.commit()
    assert [value for of in values(store).values() for value in of] == [b"v2"]
    one.commit()
    assert {value for of in values(store).values() for value in of} == {b"v1", b"v2"}
    assert left_beside(store) == []


def test_a_newer_job_with_the_same_id_shuts_out_the_older(store: Path) -> None:
    older = Job(store, topic="orders", transactionalId="nightly/é").task(keyed(1))
    other = Job(store, topic="orders", transactionalId="hourly").task(keyed(3))
    newer = Job(store, topic="orders", transactionalId="nightly/é").task(keyed(2))
    with pytest.raises(DataDirectoryError, match="unless the job has ended"):
        older.stage(keyed(1))
    with pytest.raises(ProducerFencedError, match="newer job with the same transactionalId"):
        older.commit()
    newer.commit()
    other.commit()
    assert {value for of in values(store).values() for value in of} == {b"v2", b"v3"}
    assert left_beside(store) == []


def test_staging_directories_of_dead_jobs_are_removed(store: Path) -> None:
    dead, alive = Job(store, topic="orders").task(keyed(1)), Job(store, topic="orders").task(keyed(2))
    half_removed = store.parent / f"data.kafka_segments-{'0' * 16}-{'1' * 32}-delete"
    half_removed.mkdir()
    (half_removed / "x.arrow").touch()
    a_day_ago = clock.now_ms() / 1000 - timedelta(days=1, minutes=1).total_seconds()
    staging = dead.staging
    for path in (staging, *staging.iterdir()):
        os.utime(path, (a_day_ago, a_day_ago))
    mine = store.parent / "data.kafka_segments"
    mine.mkdir()
    Job(store, topic="orders").task(keyed(3)).commit()
    assert left_beside(store) == sorted([alive.staging.name, mine.name])
    with pytest.raises(ProducerFencedError, match="after a day without a write"):
        dead.commit()
    alive.commit()
    assert {value for of in values(store).values() for value in of} == {b"v2", b"v3"}


def test_a_staging_directory_that_stays_is_told_and_one_that_cannot_be_made_fails(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(store, topic="orders").task(keyed(1))
    (job.staging / "directory").mkdir()
    job.commit()
    assert sum(map(len, values(store).values())) == 1
    Job(store, topic="orders").task(keyed(2)).commit()
    (kept,) = left_beside(store)
    assert caplog.text.count("of a finished job cannot be removed") == 2
    assert kept in caplog.text
    for place in (store / "meta.properties", store / "meta.properties" / "deeper"):
        with pytest.raises(DataDirectoryError, match="set stagingPath to a directory that driver and executors share"):
            Job(store, topic="orders", stagingPath=place)


def test_a_driver_that_is_killed_before_its_commit_shows_nothing(store: Path) -> None:
    dying = """
import os, sys
from pathlib import Path
from logstore.client.producer import Producer
from tests.spark.written import Job

Producer.commit_transaction = lambda self: os._exit(7)
Job(Path(sys.argv[1]), topic="payments").task([{"value": b"v"}] * 1000).commit()
"""
    done = subprocess.run([sys.executable, "-c", dying, str(store)], check=False)
    assert done.returncode == 7
    assert len(left_beside(store)) == 1
    assert len(values(store, "payments", isolation=FetchIsolation.LOG_END)[0]) == 1000
    assert values(store, "payments") == {0: []}
    Job(store, topic="payments").task([{"value": b"later"}]).commit()
    assert values(store, "payments") == {0: [b"later"]}


def test_a_transaction_of_a_driver_that_died_is_aborted_by_the_next_job(store: Path) -> None:
    name = f"{ID_PREFIX}dead"
    with logstore.open(store) as opened:
        identity = opened.transactions.init_producer_id(name, 900_000)
        guard = opened.transactions.begin_append(name, identity, ("payments", 0), sequence=0)
        opened.log("payments", 0).append_records(
            [b"half"],
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=0,
            is_transactional=True,
            guard=guard,
        )
    Job(store, topic="payments").task([{"value": b"v"}]).commit()
    assert values(store, "payments") == {0: [b"v"]}
    with logstore.open(store) as opened:
        assert opened.transactions.describe(name).state is COMPLETE_ABORT


def test_a_dead_job_with_an_id_of_its_own_holds_back_nobody(store: Path) -> None:
    dying = """
import os, sys
from pathlib import Path
from logstore.client.producer import Producer
from tests.spark.written import Job

Producer.commit_transaction = lambda self: os._exit(7)
Job(Path(sys.argv[1]), topic="payments", transactionalId="nightly").task([{"value": b"v"}]).commit()
"""
    done = subprocess.run([sys.executable, "-c", dying, str(store)], check=False)
    assert done.returncode == 7
    Job(store, topic="payments", transactionalId="hourly").task([{"value": b"later"}]).commit()
    assert values(store, "payments") == {0: [b"later"]}


def test_a_transaction_that_is_no_jobs_is_left_alone(store: Path) -> None:
    with logstore.open(store) as opened:
        identity = opened.transactions.init_producer_id("billing", 900_000)
        opened.transactions.begin_append("billing", identity, ("payments", 0), sequence=0)
    Job(store, topic="payments").task([{"value": b"v"}]).commit()
    with logstore.open(store) as opened:
        assert opened.transactions.describe("billing").state is ONGOING


def test_the_driver_waits_for_the_directory_but_not_for_ever(store: Path) -> None:
    job = Job(store, topic="orders", kafka_max_block_ms=300).task(keyed(1))
    lock = DataDirectoryLock(str(store))
    try:
        begin_s = clock.monotonic_s()
        with pytest.raises(DataDirectoryError, match="Failed to acquire lock"):
            job.commit()
        assert clock.monotonic_s() - begin_s >= 0.3
    finally:
        lock.release()
    assert left_beside(store) == []


def test_a_staged_file_that_is_damaged_fails_the_job(store: Path) -> None:
    job = Job(store, topic="orders").task(keyed(*range(100)), keyed(*range(100)))
    (file,) = job.staging.iterdir()
    content = file.read_bytes()
    for cut in (len(content) - 100, len(content) // 2, 10):
        file.write_bytes(content[:cut])
        with pytest.raises(DataDirectoryError, match="staged file"):
            job.writer._produce([message for message in job.messages if message is not None])  # `commit` removes them
    file.write_bytes(content)
    job.commit()
    assert sum(map(len, values(store).values())) == 200


def test_a_staging_path_of_ones_own(store: Path, tmp_path: Path) -> None:
    place = tmp_path / "shared" / "staging"
    job = Job(store, topic="orders", stagingPath=place).task(keyed(1))
    assert len(list(place.iterdir())) == 1
    job.commit()
    assert list(place.iterdir()) == []
    assert sum(map(len, values(store).values())) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "/a,/b", "topic": "t"}, "one data directory"),
        ({"path": "s3://bucket/data", "topic": "t", "partitions": "1"}, "mounted"),
        ({"topic": "t", "subscribe": "t"}, "no option 'subscribe'"),
        ({"topic": "t", "partitions": "0"}, "partitions cannot be that"),
        ({"topic": "t", "transactionalId": ""}, "transactionalId is empty"),
        ({"topic": "t", "kafka.bootstrap.servers": "x:1"}, r"no option 'kafka\.bootstrap\.servers'"),
        ({"topic": "t", "kafka.compression.type": "rar"}, "compression.type"),
        ({"topic": "t", "stagingPath": "s3://bucket"}, "mounted"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], words: str, store: Path) -> None:
    path = options.pop("path", str(store))
    with pytest.raises(UsageError, match=words):
        Job(path, **options)
    assert left_beside(store) == []


def test_other_save_modes_and_internal_topics_are_refused(store: Path) -> None:
    job = Job(store, topic="orders")
    with pytest.raises(UsageError, match="Save mode Overwrite not allowed for Kafka"):
        job.source.writer(job.schema, overwrite=True)
    with pytest.raises(InvalidTopicError, match="internal topic __transaction_state"):
        Job(store, topic="__transaction_state")


def test_the_driver_has_one_chunk_in_memory(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK_SIZE", 100_000)
    monkeypatch.setattr("spark_dumps.sink.PIECE_SIZE", 10_000)
    job = Job(store, topic="orders")
    messages = [job.stage([{"value": b"%d" % number * 1000} for _ in range(500)]) for number in range(4)]
    files = [(f"{job.staging}/{one.name}", one.row_count) for one in messages]
    sizes = [chunk.nbytes for chunk in writing._chunks(writing.StagedJob(files, 0, [], SCHEMA))]
    assert len(sizes) > 15
    assert max(sizes) < 120_000
    job.abort()
