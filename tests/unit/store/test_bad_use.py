"""Bad use of a store: each time an error with a name that says what to do, and nothing of what was there is lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import logstore
from logstore.client.store import Store
from logstore.config.broker import DURABLE_COMMITS
from logstore.disk.seam import Writable
from logstore.disk.system_errors import io_error
from logstore.errors import (
    DataDirectoryError,
    InvalidConfigurationError,
    LogstoreError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from tests.recovery.comparison import UnsyncedSeam
from tests.support.clock import Clock
from tests.support.stores import FEW_PARTITIONS, begun, contents, open_store

CLUSTER_ID = "bG9nc3RvcmUtZ29sZGVuLQ"


def filled(root: Path) -> dict[str, bytes]:
    """A store that was closed with a committed record; its files."""
    with logstore.open(root, cluster_id=CLUSTER_ID) as store:
        store.create_topic("orders", partitions=2)
        with begun(store) as producer:
            producer.send("orders", b"paid", partition=0)
            producer.commit_transaction()
    return files(root)


files = partial(contents, but=".lock")  # a look into it would let go of the lock


def committed(root: Path, topic: str = "orders") -> list[bytes | None]:
    with logstore.open(root) as store:
        consumer = store.consumer(topic, isolation_level="read_committed", auto_offset_reset="earliest")
        return [record.value for records in consumer.poll(0, max_records=1 << 20).values() for record in records]


def test_a_second_process_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    script = "import logstore, sys; logstore.open(sys.argv[1])"
    with logstore.open(tmp_path) as store:
        store.create_topic("orders")
        before = files(tmp_path)
        done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        words = (
            f"logstore.errors.DataDirectoryError: Failed to acquire lock on file .lock in {tmp_path}. A Kafka instance"
        )
        assert words in done.stderr
        assert "stop that process first; or open the directory read_only" in done.stderr
        assert files(tmp_path) == before
        with store.producer() as producer:
            producer.send("orders", b"paid")
    assert committed(tmp_path) == [b"paid"]


class FullDisk(UnsyncedSeam):
    """A disk with room for so many bytes."""

    def __init__(self, free_size: int) -> None:
        self.free_size = free_size

    def write(self, descriptor: int, data: Writable) -> None:
        super().write(descriptor, bytes(data[: self.free_size]))
        if len(data) > self.free_size:
            self.free_size = 0
            raise io_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        self.free_size -= len(data)


@pytest.mark.parametrize("free_size", [6000, 6100, 7000, 7050, 9000, 12_345])
def test_a_full_disk_takes_back_nothing_that_was_answered(free_size: int, tmp_path: Path) -> None:
    done: list[bytes] = []
    config = {**FEW_PARTITIONS, DURABLE_COMMITS: True}
    store = open_store(tmp_path, config=config, now_ms=Clock(), seam=FullDisk(free_size))
    store.create_topic("orders", partitions=2)
    with pytest.raises(LogstoreError) as raised:
        write_until_full(store, done)
    causes = [raised.value]
    while isinstance(causes[-1].__cause__, LogstoreError):
        causes.append(causes[-1].__cause__)
    assert any("No space left on device" in str(one) for one in causes), raised.value
    with suppress(LogstoreError):
        store.close()
    found = committed(tmp_path)
    assert sorted(value for value in found if value is not None) in (all_of(len(done)), all_of(len(done) + 1))


def all_of(count: int) -> list[bytes]:
    """What both partitions have of so many transactions."""
    return sorted([b"%04d" % number for number in range(count)] * 2)


def write_until_full(store: Store, done: list[bytes]) -> None:
    """A record in each partition a transaction."""
    times = {
        "max_block_ms": 300,
        "request_timeout_ms": 300,
        "delivery_timeout_ms": 300,
    }  # it is not tried for two minutes
    producer = store.producer(transactional_id="x", linger_ms=0, **times)
    producer.init_transactions()
    while True:
        value = b"%04d" % len(done)
        producer.begin_transaction()
        for partition in range(2):
            producer.send("orders", value, partition=partition)
        producer.commit_transaction()
        done.append(value)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_topic_that_is_deleted_in_a_transaction_is_missed_and_the_others_are_whole(
    is_commit: bool, tmp_path: Path
) -> None:
    with logstore.open(tmp_path) as store:
        for name in ("orders", "gone"):
            store.create_topic(name)
        producer = begun(store, linger_ms=0)
        for name in ("orders", "gone"):
            producer.send(name, b"paid").get()
        store.delete_topic("gone")
        if is_commit:
            producer.commit_transaction()
        else:
            late = producer.send("gone", b"late", partition=0)
            assert isinstance(late.exception, UnknownTopicOrPartitionError)
            with pytest.raises(LogstoreError) as raised:
                producer.commit_transaction()
            assert raised.value.recovery is not None
            producer.abort_transaction()
        producer.begin_transaction()
        producer.send("orders", b"again")
        producer.commit_transaction()
        log = store.log("orders", 0)
        assert log.last_stable_offset == log.log_end_offset
    assert committed(tmp_path) == ([b"paid", b"again"] if is_commit else [b"again"])


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (lambda store: store.alter_config("orders", {"retention.houses": 1}), "Unknown topic config name"),
        (lambda store: store.alter_config("orders", {"segment.bytes": 1}), "Value must be at least 1048576"),
        (lambda store: store.alter_config("orders", {"cleanup.policy": "shred"}), "String must be one of"),
        (lambda store: store.create_topic("new", 1, {"compression.type": "rar"}), "String must be one of"),
        (lambda store: store.create_topic("new", 1, {"cleanup.policy": "\u00a0compact"}), "String must be one of"),
        (lambda store: store.create_topic("new", 1, {"retention.ms": "5\u00a0"}), "Not a number of type LONG"),
        (lambda store: store.create_topic("new", 1, {"min.cleanable.dirty.ratio": "nan"}), "of type DOUBLE"),
    ],
)
def test_a_configuration_that_kafka_would_refuse_changes_nothing(
    refused: Callable[[Store], object], text: str, tmp_path: Path
) -> None:
    filled(tmp_path)
    with logstore.open(tmp_path) as store:
        before = files(tmp_path)
        with pytest.raises(InvalidConfigurationError, match=text):
            refused(store)
        assert files(tmp_path) == before
        assert set(store.topics) == {"orders", "__transaction_state"}
    assert committed(tmp_path) == [b"paid"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"log.retention.houses": 1}, r"Unknown broker config name: log\.retention\.houses"),
        ({"num.partitions": -1}, r"Invalid value -1 for configuration num\.partitions"),
        ({"log.segment.bytes": 1}, r"Invalid value 1 for configuration log\.segment\.bytes"),
        ({"log.roll.hours": 1 << 31}, r"configuration log\.roll\.hours: Not a number of type INT"),
        ({"log.retention.hours": 0}, r"log\.retention\.ms must be unlimited \(-1\) or, greater than or equal to 1"),
        ({"log.cleaner.dedupe.buffer.size": 1 << 20}, "must be at least 1MB per cleaner thread"),
    ],
)
def test_a_store_configuration_that_kafka_would_refuse_opens_nothing(
    config: dict[str, int], text: str, tmp_path: Path
) -> None:
    before = filled(tmp_path)
    with pytest.raises(UsageError, match=text):
        logstore.open(tmp_path, config=config)
    assert files(tmp_path) == before


def test_a_directory_of_a_broker_before_kraft_is_left_as_it_is(tmp_path: Path) -> None:
    filled(tmp_path)
    properties = tmp_path / "meta.properties"
    right = properties.read_bytes()
    properties.write_bytes(right.replace(b"directory.id", b"directory.ids"))
    before = files(tmp_path)
    with pytest.raises(DataDirectoryError, match=r"broker before KRaft.*let a Kafka 3\.9 broker migrate it first"):
        logstore.open(tmp_path)
    assert files(tmp_path) == before
    properties.write_bytes(right)
    assert committed(tmp_path) == [b"paid"]


def test_a_broker_that_was_migrated_from_zookeeper_keeps_its_file_of_version_0(tmp_path: Path) -> None:
    """Brokers of 3.9 leave it so beside the metadata log, and those of 4.3 start on it."""
    filled(tmp_path)
    properties = tmp_path / "meta.properties"
    old = properties.read_bytes().replace(b"version=1", b"version=0").replace(b"node.id", b"broker.id")
    properties.write_bytes(old)
    assert committed(tmp_path) == [b"paid"]
    assert properties.read_bytes() == old
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    with pytest.raises(DataDirectoryError, match=r"of a broker before KRaft.*let a Kafka 3\.9 broker migrate it first"):
        logstore.open(tmp_path)


@pytest.mark.parametrize("name", ["orders", "orders-7", "orders-0/orders", "../~/data", "../:memory:"])
def test_no_store_is_made_in_a_data_directory_or_in_a_directory_of_another_meaning(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = filled(tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data" if name[0] != "." else tmp_path)
    with pytest.raises(UsageError, match=r"no broker starts beside|expanduser|tempfile"):
        logstore.open(name.removeprefix("../"))
    assert files(tmp_path / "data") == before
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert committed(tmp_path / "data") == [b"paid"]


@pytest.mark.parametrize("read_only", [False, True])
def test_the_directory_around_data_directories_is_refused_with_their_names(read_only: bool, tmp_path: Path) -> None:
    for name in ("broker", "kafka-1"):
        filled(tmp_path / name)
    with pytest.raises(DataDirectoryError, match=r"did you mean .*/broker or .*/kafka-1\?"):
        logstore.open(tmp_path, read_only=read_only)


def test_a_directory_of_another_cluster_is_left_as_it_is(tmp_path: Path) -> None:
    before = filled(tmp_path)
    words = f"Invalid cluster.id in: {tmp_path}/meta.properties. Expected other, but read {CLUSTER_ID}"
    with pytest.raises(DataDirectoryError, match="leave cluster_id out") as raised:
        logstore.open(tmp_path, cluster_id="other")
    assert (raised.value.message, raised.value.java_class) == (words, "java.lang.RuntimeException")
    assert files(tmp_path) == before
    with logstore.open(tmp_path, cluster_id=CLUSTER_ID) as store:
        assert store.cluster_id == CLUSTER_ID
    assert committed(tmp_path) == [b"paid"]
    with pytest.raises(UsageError, match="takes the path and now_ms alone"):
        logstore.open(tmp_path, read_only=True, cluster_id=CLUSTER_ID)  # type: ignore[call-overload]
