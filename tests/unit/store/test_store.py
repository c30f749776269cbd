"""A data directory as one object: made, opened again, its topics changed, its lock held."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import logstore
from logstore.client.store import Store
from logstore.disk.side_files import read_meta_properties, read_offset_checkpoint
from logstore.errors import (
    DataDirectoryError,
    InvalidConfigurationError,
    InvalidNameError,
    InvalidPartitionsError,
    InvalidTopicError,
    LogstoreError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from logstore.store.groups.coordinator import GroupCoordinator
from tests.support.clock import Clock
from tests.support.stores import values_of

TOPICS: dict[str, int] = {}


def test_topics_and_their_data_outlive_the_store(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data" / "deeper") as store:
        made = store.create_topic("orders", 2, {"retention.ms": 5000, "cleanup.policy": ["delete", "compact"]})
        store.log("orders", 1).append_records([b"a", b"b"], keys=[b"1", b"2"])
        assert store.next_producer_id() == 0
    told: list[tuple[int, int]] = []
    with logstore.open(tmp_path / "data" / "deeper", progress=lambda *counts: told.append(counts)) as again:
        assert again.topics == {"orders": made}
        assert (made.partition_count, dict(made.config)) == (
            2,
            {"retention.ms": "5000", "cleanup.policy": "delete,compact"},
        )
        assert values_of(again, "orders", 1) == [b"a", b"b"]
        assert again.log("orders", 0).config["retention.ms"] == 5000
        assert again.log("orders", 0).topic_id == made.topic_id
        assert again.next_producer_id() == 1000
        assert again.feature("transaction.version") == 2
        assert again.log("orders", 1).leader_epoch == 0
        assert told == [(2, 2)]
        (tmp_path / "crashed").mkdir()
        crashed = shutil.copytree(tmp_path / "data", tmp_path / "crashed", dirs_exist_ok=True) / "deeper"
    told.clear()
    with logstore.open(crashed, progress=lambda *counts: told.append(counts)) as again:
        assert told == [(1, 2), (2, 2)]
        assert values_of(again, "orders", 1) == [b"a", b"b"]


def test_an_orderly_close_leaves_what_a_broker_leaves(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("orders")
        store.log("orders", 0).append_records([b"a", b"b"])
        assert not (root / ".kafka_cleanshutdown").exists()
        assert store.path == str(root)
    properties = read_meta_properties(str(root / "meta.properties"))
    assert (properties.version, properties.node_id) == (1, store.node_id)
    assert json.loads((root / ".kafka_cleanshutdown").read_bytes())["brokerEpoch"] > 0
    assert read_offset_checkpoint(str(root / "recovery-point-offset-checkpoint")) == {("orders", 0): 2}
    assert read_offset_checkpoint(str(root / "replication-offset-checkpoint")) == {("orders", 0): 2}
    assert read_offset_checkpoint(str(root / "log-start-offset-checkpoint")) == {}
    store.close()
    with pytest.raises(UsageError, match="closed"):
        store.create_topic("late")


def test_nothing_of_the_metadata_changes_when_a_store_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("orders")
    metadata = root / "__cluster_metadata-0"
    before = {path.name: path.read_bytes() for path in metadata.iterdir() if path.suffix in ("", ".log")}
    with logstore.open(root):
        pass
    assert {path.name: path.read_bytes() for path in metadata.iterdir() if path.suffix in ("", ".log")} == before


def test_a_directory_is_one_stores_at_a_time(store: Store) -> None:
    with store, pytest.raises(DataDirectoryError, match=r"Failed to acquire lock on file .lock in .*data"):
        logstore.open(store.path)
    with logstore.open(store.path) as again:
        assert again.topics == {}


def test_deleted_topics_go_a_delay_later(tmp_path: Path) -> None:
    clock = Clock()
    root = tmp_path / "data"
    with logstore.open(root, now_ms=clock) as store:
        store.create_topic("orders", 2)
        store.create_topic("kept")
        log = store.log("orders", 0)
        store.delete_topic("orders")
        assert set(store.topics) == {"kept"}
        with pytest.raises(UnknownTopicOrPartitionError):
            store.log("orders", 0)
        with pytest.raises(LogstoreError, match="already closed"):
            log.append_records([b"late"])
        names = [name for name in os.listdir(root) if name.startswith("orders")]
        assert len(names) == 2
        assert all(name.endswith("-delete") for name in names)
        again = store.create_topic("orders", 1)
        clock.now_ms += 59_000
        store.run_due()
        assert len([name for name in os.listdir(root) if name.endswith("-delete")]) == 2
        clock.now_ms += 2_000
        store.run_due()
        assert [name for name in os.listdir(root) if name.startswith("orders")] == ["orders-0"]
        assert store.failures == {}
    with logstore.open(root) as store:
        assert store.topics["orders"] == again


def test_configurations_hold_at_once(store: Store) -> None:
    with store:
        store.create_topic("orders", 1, {"retention.ms": 1})
        assert store.alter_config("orders", {"max.message.bytes": 100, "retention.ms": None}).config == {
            "max.message.bytes": "100"
        }
        config = store.log("orders", 0).config
        assert (config["max.message.bytes"], config["retention.ms"]) == (100, 604_800_000)
        with pytest.raises(LogstoreError, match="exceeds the maximum configured value of 100"):
            store.log("orders", 0).append_records([bytes(200)])
        assert store.alter_config("orders", {"max.message.bytes": "100"}).config == {"max.message.bytes": "100"}


def test_the_stores_configuration_gives_topics_their_defaults(tmp_path: Path) -> None:
    config = {"log.retention.minutes": 2, "num.partitions": "3", "log.cleanup.policy": ["compact"]}
    with logstore.open(tmp_path, config=config) as store:
        assert store.create_topic("orders").partition_count == 3
        topic_config = store.log("orders", 2).config
        assert (topic_config["retention.ms"], topic_config["cleanup.policy"]) == (120_000, ["compact"])
    with logstore.open(tmp_path, config={"log.retention.ms": -5}) as store:
        assert store.log("orders", 0).config["retention.ms"] == -1


@pytest.mark.parametrize(
    ("name", "partitions", "config", "error", "text"),
    [
        ("", 1, {}, InvalidTopicError, "Topic name is invalid: the empty string is not allowed"),
        ("..", 1, {}, InvalidTopicError, "Topic name is invalid: '..' is not allowed"),
        ("x" * 250, 1, {}, InvalidTopicError, "is longer than the max allowed length 249"),
        ("a/b", 1, {}, InvalidTopicError, "contains one or more characters other than ASCII alphanumerics"),
        ("here.it_is", 1, {}, InvalidTopicError, "Topic 'here.it_is' collides with existing topic: here.it.is"),
        ("here.it.is", 1, {}, TopicExistsError, "Topic 'here.it.is' already exists."),
        ("t", 0, {}, InvalidPartitionsError, "Number of partitions was set to an invalid non-positive value."),
        ("t", 10_001, {}, PolicyViolationError, "Excessively large number of partitions per request."),
        ("t", 1, {"retention": 1}, InvalidConfigurationError, "Unknown topic config name: retention"),
        ("t", 1, {"retention.ms": "x"}, InvalidConfigurationError, "Not a number of type LONG"),
        ("t", 1, {"retention.ms": None}, InvalidConfigurationError, "Null value not supported for topic configs"),
    ],
)
def test_bad_topics_are_refused_as_kafka_does(
    store: Store, name: str, partitions: int, config: dict[str, object], error: type[LogstoreError], text: str
) -> None:
    with store:
        store.create_topic("here.it.is")
        names = os.listdir(store.path)
        with pytest.raises(error, match=text.replace(".", r"\.").replace("(", r"\(")):
            store.create_topic(name, partitions, config)
        assert os.listdir(store.path) == names


def test_bad_changes_are_refused_as_kafka_does(store: Store) -> None:
    with store:
        store.create_topic("t", 2)
        with pytest.raises(InvalidPartitionsError, match=r"Topic already has 2 partition\(s\)."):
            store.add_partitions("t", 2)
        with pytest.raises(InvalidPartitionsError, match=r"currently has 2 partition.*; 1 would not be an increase"):
            store.add_partitions("t", 1)
        for change in (store.delete_topic, store.describe_topic, lambda name: store.alter_config(name, {})):
            with pytest.raises(UnknownTopicOrPartitionError, match="does not host this topic-partition"):
                change("u")
        with pytest.raises(InvalidConfigurationError, match=r"conflict topic config setting min.compaction.lag.ms"):
            store.alter_config("t", {"min.compaction.lag.ms": 10, "max.compaction.lag.ms": 5})
        assert store.topics["t"].config == {}
        assert store.add_partitions("t", 4).partition_count == 4
        assert store.log("t", 3).log_end_offset == 0


def test_foreign_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    with pytest.raises(InvalidNameError, match=r"(?s)'lost.found' is not in the form.*no broker starts beside it"):
        logstore.open(tmp_path)
    (tmp_path / "lost+found").rmdir()
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(DataDirectoryError, match="nobody knows whose they are"):
        logstore.open(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["orders-0"]


def test_a_partition_that_is_a_link_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("t", partitions=1)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data" / "u-0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataDirectoryError) as told:
        logstore.open(tmp_path / "data")
    assert told.value.path == str(tmp_path / "data" / "u-0")


def test_a_store_is_made_only_where_nothing_else_is(tmp_path: Path) -> None:
    foreign = tmp_path / "home"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("dear")
    with pytest.raises(DataDirectoryError, match=r"not a Kafka data directory.*found .*letter\.txt"):
        logstore.open(foreign)
    assert os.listdir(foreign) == ["letter.txt"]
    with pytest.raises(DataDirectoryError, match="File exists"):
        logstore.open(foreign / "letter.txt")
    logstore.open(tmp_path / "a" / "b").close()
    (tmp_path / "a" / "b" / "meta.properties").unlink()
    before = sorted((tmp_path / "a").rglob("*"))
    with pytest.raises(DataDirectoryError, match="nobody knows whose they are"):
        logstore.open(tmp_path / "a" / "b")  # its metadata log has another cluster's records
    assert sorted((tmp_path / "a").rglob("*")) == before


def test_a_stray_directory_is_not_read_for_the_live_one(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t")
        store.log("t", 0).append_records([b"a"])
    file = tmp_path / "t-0" / "partition.metadata"
    file.write_text("version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ")
    with logstore.open(tmp_path, read_only=True) as reading, pytest.raises(UnknownTopicOrPartitionError, match="t-0"):
        reading.log("t", 0)
    with logstore.open(tmp_path) as store:
        assert store.log("t", 0).log_end_offset == 0


def test_directories_of_unknown_partitions_are_left_alone(store: Store) -> None:
    stray = Path(store.path) / "orders-0"
    store.close()
    stray.mkdir()
    (stray / "partition.metadata").write_text("version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ")
    (Path(store.path) / "orders-1.0f2a-stray").mkdir()
    (Path(store.path) / "orders-1.0f2a-future").mkdir()
    with logstore.open(store.path) as again:
        assert again.stray_directories == (str(stray),)
        again.create_topic("orders")
        assert again.log("orders", 0).topic_id == again.topics["orders"].topic_id
        assert again.stray_directories == ()
    names = [name for name in os.listdir(store.path) if name.startswith("orders")]
    assert len([name for name in names if name.endswith("-stray")]) == 2
    assert "orders-1.0f2a-future" in names


def test_a_store_is_read_beside_the_one_that_is_written(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("orders", 2, {"retention.ms": 1000})
        store.create_topic("gone")
        store.log("orders", 1).append_records([b"a"])
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")}
        with logstore.open(tmp_path / "data", read_only=True) as reading:
            assert reading.topics == store.topics
            assert reading.feature("transaction.version") == 2
            assert reading.properties.cluster_id == store.cluster_id
            log = reading.log("orders", 1)
            assert log.bounds.log_end_offset == 1
            assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")} == before
            store.create_topic("later")
            store.delete_topic("gone")
            store.log("orders", 1).append_records([b"b"])
            reading.refresh()
            log.refresh()
            assert reading.topics == store.topics
            assert reading.log("orders", 1) is log
            assert log.bounds.log_end_offset == 2
            for topic, partition in (("gone", 0), ("orders", 2)):
                with pytest.raises(UnknownTopicOrPartitionError):
                    reading.log(topic, partition)
            store.delete_topic("orders")
            store.create_topic("orders")
            reading.refresh()
            assert reading.log("orders", 0).bounds.log_end_offset == 0


def test_partitions_without_metadata_are_read_by_their_directories(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data") as store:
        topic = store.create_topic("orders", 2)
        store.log("orders", 1).append_records([b"a"])
    (tmp_path / "copy").mkdir()
    for name in ("orders-0", "orders-1"):
        shutil.copytree(tmp_path / "data" / name, tmp_path / "copy" / name)
    with logstore.open(tmp_path / "copy", read_only=True) as reading:
        assert reading.topics == {"orders": topic}
        assert reading.properties is None
        assert reading.log("orders", 1).bounds.log_end_offset == 1
    with pytest.raises(DataDirectoryError):
        logstore.open(tmp_path / "nowhere", read_only=True)


def test_a_store_may_be_closed_when_the_process_ends(tmp_path: Path) -> None:
    script = (
        "import atexit, sys, logstore\n"
        "store = logstore.open(sys.argv[1])\n"
        "store.create_topic('orders', 3)\n"
        "atexit.register(store.close)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_after_an_orderly_close_a_log_is_opened_when_it_is_asked_for(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        for name in ("a", "b", "c", "d"):
            store.create_topic(name)
            store.log(name, 0).append_records([b"1", b"2"])
        store.log("b", 0).delete_records(1)
    snapshot = root / "c-0" / f"{2:020d}.snapshot"
    before = {name: (root / f"{name}-offset-checkpoint").read_bytes() for name in ("recovery-point", "replication")}
    with logstore.open(root) as store:
        assert store.log("a", 0) is store.log("a", 0)
        assert store.alter_config("b", {"retention.ms": 7}).config == {"retention.ms": "7"}
        store.delete_topic("d")
        with pytest.raises(UnknownTopicOrPartitionError):
            store.log("d", 0)
        crashed = shutil.copytree(root, tmp_path / "crashed")
    for name, content in before.items():
        offsets = read_offset_checkpoint(str(root / f"{name}-offset-checkpoint"))
        assert offsets == {("a", 0): 2, ("b", 0): 2, ("c", 0): 2}, content
    assert read_offset_checkpoint(str(root / "log-start-offset-checkpoint")) == {("b", 0): 1}
    for place in (root, crashed):
        with logstore.open(place) as store:
            assert values_of(store, "b") == [b"2"]
            assert store.log("b", 0).config["retention.ms"] == 7
            assert values_of(store, "c") == [b"1", b"2"]
    snapshot.with_name("x.log").write_bytes(b"")
    with logstore.open(root) as store:
        with pytest.raises(LogstoreError) as raised:
            store.log("c", 0)
        assert "of partition c-0" in raised.value.__notes__[0]
        assert values_of(store, "a") == [b"1", b"2"]


def open_below(root: Path) -> set[str]:
    """The files below `root` that the process has open, or mapped: a mapping has a descriptor of its own."""
    names = set[str]()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # another thread's, or the listing's own, which it has closed
            names.add(os.readlink(f"/proc/self/fd/{number}"))
    return {name for name in names if name.startswith(str(root))}


def test_a_closed_store_leaves_no_descriptor_open(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("orders", 3, {})
    store = logstore.open(root)
    for number in range(3):
        store.log("orders", number).append_records([b"v"])
        store.log("orders", number).roll()
    log = store.log("orders", 0)
    assert [chunk.to_records()[0].value for chunk in log.records().chunks()] == [b"v"]
    assert open_below(root)
    store.close()
    assert open_below(root) == set()
    for ask in (lambda: log.append_records([b"late"]), log.flush, log.roll):
        with pytest.raises(LogstoreError, match="closed"):
            ask()
    assert open_below(root) == set()


def test_a_store_that_cannot_be_opened_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("orders", 2, {})

    def fail(coordinator: GroupCoordinator, *, was_clean: bool) -> None:
        assert open_below(root)
        raise DataDirectoryError("Input/output error")

    monkeypatch.setattr(GroupCoordinator, "start", fail)
    with pytest.raises(DataDirectoryError, match="Input/output error"):
        logstore.open(root)
    assert open_below(root) == set()
