"""What is said of directories before a real broker gets them, and what it then does with them."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.replay.metadata_image import MetadataImage
from logstore.store.metadata import log as metadata_log
from logstore.store.metadata.topics import partition_records
from logstore.topics.cluster_metadata import encode_value
from logstore_tools.commands import logstore as command
from logstore_tools.takeover.inspection import inspect
from tests.conformance.dumping import disagreement
from tests.golden.archive import unpack
from tests.support.broker import Broker
from tests.support.formatted import USER, formatted, level
from tests.support.judges import judged
from tests.support.oracle import Oracle
from tests.support.stores import append_metadata
from tests.support.take_over import ask, warnings

pytestmark = pytest.mark.kafka

UNIQUE = "0f2a0f2a0f2a0f2a0f2a0f2a0f2a0f2a"


def worked(root: Path) -> Path:
    with logstore.open(root, config={"offsets.topic.num.partitions": 1}) as store:
        store.create_topic("orders", 2)
        with store.producer() as producer:
            for number in (0, 1):
                producer.send("orders", b"paid", partition=number)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("is_dynamic", [True, False])
def test_a_broker_starts_from_a_snapshot_of_the_metadata(
    oracle: Oracle, tmp_path: Path, is_dynamic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log, "_SNAPSHOT_SIZE_MIN", 1000)
    levels = [level("metadata.version", 30), level("transaction.version", 1)]
    root = worked(formatted(tmp_path / "data", *levels, USER, is_dynamic=is_dynamic))
    with logstore.open(root) as store:
        for number in range(25):
            store.create_topic(f"gone{number}", 2, {"retention.ms": 1000})
            store.delete_topic(f"gone{number}")
        store.alter_config("orders", {"retention.ms": 5000})
        store.create_topic("kept", 3)
    before = inspect(str(root))
    metadata = root / "__cluster_metadata-0"
    (snapshot,) = metadata.glob("*.checkpoint")
    assert before.image.credentials == {("alice", 1)}
    assert int(snapshot.name.partition("-")[0]) > 100
    arguments = ["--cluster-metadata-decoder", "--files", str(snapshot.relative_to(tmp_path))]
    (dump,) = oracle.dump(tmp_path, [arguments])
    assert '"name":"orders"' in dump.stdout
    assert '"name":"gone0"' not in dump.stdout
    monkeypatch.chdir(tmp_path)
    assert not disagreement([vars(dump)])
    if not is_dynamic:
        return
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM):
        pass
    after = inspect(str(root))
    assert (after.features, after.topics) == (before.features, before.topics)
    assert after.image.configs == before.image.configs
    assert after.image.credentials == {("alice", 1)}
    assert not [line for line in warnings(broker) if " ERROR " in line or "napshot" in line]


@pytest.mark.slow
def test_a_topic_made_anew_has_nothing_of_the_configuration_before(oracle: Oracle, tmp_path: Path) -> None:
    """A broker that replays both took the old one's, and deleted the new one's records by its retention."""
    config = {"retention.ms": 1000, "min.insync.replicas": 1, "max.message.bytes": 3000}
    with logstore.open(tmp_path / "data") as store:
        for name in ("orders", "again", "later"):
            store.create_topic(name, 1, config)
        store.delete_topic("orders")
        store.create_topic("orders")
        store.producer().send("orders", b"paid").result()
        known, node = store.topics, store.directory._changes._node
    # as a broker does
    removals = [encode_value("RemoveTopicRecord", {"topicId": known[name].topic_id}) for name in ("again", "later")]
    topic_id = "ABEiM0RVZneImaq7zN3u_w"
    append_metadata(tmp_path / "data", *removals, encode_value("TopicRecord", {"name": "again", "topicId": topic_id}))
    append_metadata(tmp_path / "data", *partition_records(MetadataImage(), node, topic_id, {0: 0}))
    step = "unset max.message.bytes min.insync.replicas retention.ms of again, which a broker would take over"
    assert any(one.startswith(step) for one in inspect(str(tmp_path / "data")).steps)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("later")
        for name in ("again", "later"):
            store.producer().send(name, b"paid").result()
    assert inspect(str(tmp_path / "data")).steps == ()
    checks = {"log.initial.task.delay.ms": "1", "log.retention.check.interval.ms": "1"}
    broker = Broker(oracle, tmp_path / "data", checks, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [state] = ask(oracle, address, tmp_path, "state")
    with logstore.open(tmp_path / "data", read_only=True) as store:
        for name in ("orders", "again", "later"):
            assert state["topics"][name]["config"] == {}
            assert [record.value for record in store.read(name)] == [b"paid"]


def of_4_4() -> None:
    if not judged().knows_levels({"metadata.version": 33}):
        pytest.skip(f"Kafka {judged()} does not know the levels of 4.4")


@pytest.mark.long  # its sample is in test_versions_taken_over.py
@pytest.mark.by_release
def test_a_store_goes_to_a_broker_of_44_to_its_levels_and_back_again(oracle: Oracle, tmp_path: Path) -> None:
    of_4_4()
    root = worked(tmp_path / "data")
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [before] = ask(oracle, address, tmp_path, "work", "state")
    for words in (["features", str(root), "upgrade", "--release-version", "4.4"], ["import", str(root)]):
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, done.output
    with logstore.open(root) as store:
        assert store.feature("metadata.version") == 33
        store.create_topic("later", config={"max.decompressed.message.bytes": "5000", "remote.copy.lag.ms": "5"})
        with store.producer(transactional_id="ours") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("later", b"v")
            producer.send_offsets_to_transaction({("orders", 0): 1}, "ours")
            producer.commit_transaction()
    assert audit_directory(str(root), 0).findings == ()
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [after, finished] = ask(oracle, address, tmp_path, "state", "finish")
    assert after["topics"]["later"]["config"] == {"max.decompressed.message.bytes": "5000", "remote.copy.lag.ms": "5"}
    assert {name: after["topics"][name] for name in before["topics"]} == before["topics"]
    assert after["groups"] == before["groups"]
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)
    assert inspect(str(root)).features["metadata.version"] == 33


@pytest.mark.by_release
@pytest.mark.slow
def test_what_came_with_44_is_worked_on_and_given_back(oracle: Oracle, tmp_path: Path) -> None:
    """Share groups with dead letter queues, streams groups, an ACL of addresses, an unregistered controller."""
    of_4_4()
    root = unpack("newest", tmp_path / "data")
    before = inspect(str(root))
    with logstore.open(root) as store:
        store.create_topic("later")
        for topic in ("in", "dlq.in", "later"):
            store.producer().send(topic, b"ours").result()
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [state] = ask(oracle, address, tmp_path, "state")
    after = inspect(str(root))
    assert state["topics"]["dlq.in"]["config"] == {"errors.deadletterqueue.group.enable": "true"}
    assert (after.features, after.image.acls) == (before.features, before.image.acls)
    assert before.image.configs.items() <= after.image.configs.items()
    assert audit_directory(str(root), 0).findings == ()


@pytest.mark.long
def test_a_broker_does_with_directories_what_is_said(oracle: Oracle, tmp_path: Path) -> None:
    root = worked(tmp_path / "data")
    for name in ("orders-7", "copy-0", f"orders-0.{UNIQUE}-stray"):
        shutil.copytree(root / "orders-0", root / name)
    (root / "orders-1" / "partition.metadata").unlink()
    said = inspect(str(root))
    assert (
        "write partition.metadata of orders-1, without which a broker sets the directory aside as -stray" in said.steps
    )
    assert len(said.warnings) == 3
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM):
        pass
    log = broker.log.read_text()
    for name in ("orders-7", "orders-1"):
        assert f"Log in {root / name} marked stray" in log
    assert "copy-0 marked stray" not in log
    assert (root / "copy-0").exists()
    assert f"Loaded stray log: {root}/orders-0.{UNIQUE}-stray" in log


def beside(root: Path) -> None:
    shutil.copytree(root / "orders-0", root / f"orders-0.{UNIQUE}-future")


def unreadable(root: Path) -> None:
    (root / "orders-0" / "partition.metadata").write_bytes(b"")


def checkpoint(root: Path) -> None:
    (root / "recovery-point-offset-checkpoint").write_bytes(b"0\n9\nx\n")


def twice(root: Path) -> None:
    shutil.copytree(root / "orders-0", root / "orders-00")


def emptied(root: Path) -> None:
    (root / "meta.properties").write_bytes(b"")


def aside(root: Path) -> None:
    shutil.copytree(root / "orders-0", root / f"orders-0.{UNIQUE}-delete")
    (root / f"orders-0.{UNIQUE}-delete" / "partition.metadata").write_bytes(b"")


def start(broker: Broker) -> None:
    with broker.running(signal.SIGTERM):
        assert broker.process is not None
        broker.process.wait(60)  # it may have said that it has started, just before it ends
        raise RuntimeError("the broker did not start")


@pytest.mark.long
@pytest.mark.parametrize("lay", [beside, unreadable, checkpoint, twice, emptied, aside])
def test_no_broker_starts_where_that_is_said(oracle: Oracle, tmp_path: Path, lay: object) -> None:
    root = worked(tmp_path / "data")
    lay(root)  # type: ignore[operator]
    with pytest.raises(RuntimeError, match="the broker did not start"):
        start(Broker(oracle, root, {}, [], is_formatted=True))


@pytest.mark.long
def test_a_directory_that_was_moving_is_taken_for_the_partition_by_both(oracle: Oracle, tmp_path: Path) -> None:
    root = worked(tmp_path / "data")
    (root / "orders-0").rename(root / f"orders-0.{UNIQUE}-future")
    shutil.copytree(root, tmp_path / "ours")
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM):
        pass
    for path in (root, tmp_path / "ours"):
        with logstore.open(path) as store:
            assert store.log("orders", 0).log_end_offset == 1


@pytest.mark.long
def test_records_go_where_retention_was_told(oracle: Oracle, tmp_path: Path) -> None:
    root, old_ms = tmp_path / "data", 1_600_000_000_000
    with logstore.open(root) as store:
        store.create_topic("orders")
        store.create_topic("kept", config={"retention.ms": -1})
        for name in ("orders", "kept"):
            store.log(name, 0).append_records([b"old"], timestamps=[old_ms])
    assert [one.startswith("retention: ") and "topic orders " in one for one in inspect(str(root)).warnings] == [True]
    settings = {"log.initial.task.delay.ms": "500", "log.retention.check.interval.ms": "500"}
    broker = Broker(oracle, root, settings, [], is_formatted=True)
    with broker.running(signal.SIGTERM):
        for _ in range(600):
            if "breach" in broker.log.read_text():
                break
            signal.sigtimedwait([], 0.1)
    with logstore.open(root, read_only=True) as reading:
        assert [reading.log(name, 0).bounds.log_start_offset for name in ("orders", "kept")] == [1, 0]
