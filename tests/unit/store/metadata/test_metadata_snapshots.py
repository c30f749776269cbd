"""Snapshots of the metadata log: what is left of all records, and a log that does not grow with what was removed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore.disk.directory import list_partition_directory
from logstore.disk.seam import Seam
from logstore.disk.system_errors import nio_error
from logstore.errors import CorruptRecordError, DataDirectoryError
from logstore.replay.metadata_image import MetadataImage
from logstore.replay.metadata_records import MetadataRecords
from logstore.replay.metadata_state import MetadataState, read_metadata
from logstore.store.metadata import log as metadata_log
from logstore.store.partitions import Partitions
from logstore.topics.cluster_metadata import encode_value
from logstore.view.partition_reader import PartitionReader
from logstore_tools.commands import logstore as command_line
from tests.support.golden import Golden
from tests.support.stores import FailingRenames, open_store

ID = "ABEiM0RVZneImaq7zN3u_w"
DIRECTORY = "wpbL9QuzSw6JQCrXAbQsfg"
BROKER = {"brokerId": 1, "incarnationId": ID, "brokerEpoch": 5, "endPoints": [], "features": [], "rack": None}
PARTITION = {
    "topicId": ID,
    "partitionId": 0,
    "replicas": [1, 2],
    "isr": [1, 2],
    "removingReplicas": [],
    "addingReplicas": [],
    "leader": 1,
    "leaderEpoch": 3,
    "partitionEpoch": 7,
    "directories": [DIRECTORY, DIRECTORY],
}


@pytest.fixture(autouse=True)
def small_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "_SNAPSHOT_SIZE_MIN", 3000)


def size_of(metadata: Path) -> int:
    return sum(path.stat().st_size for path in metadata.iterdir() if not path.name.endswith(".deleted"))


def test_the_log_does_not_grow_with_topics_that_are_gone(tmp_path: Path) -> None:
    metadata = tmp_path / "__cluster_metadata-0"
    with open_store(tmp_path) as store:
        store.create_topic("kept", 3, {"retention.ms": "5000"})
        kept, first_id = store.topics["kept"], store.next_producer_id()
        for number in range(60):
            store.create_topic(f"gone{number}", 2, {"retention.ms": "1000"})
            store.add_partitions(f"gone{number}", 3)
            store.delete_topic(f"gone{number}")
            assert size_of(metadata) < 12_000
            assert len(store.directory._metadata.image.removed_topic_ids) < 30
        store.create_topic("also-kept", 1)
    assert len(list(metadata.glob("*.checkpoint"))) == 1
    assert len(list(metadata.glob("*.log"))) == 1
    with logstore.open(tmp_path) as store:
        assert set(store.topics) == {"kept", "also-kept"}
        assert store.topics["kept"] == kept
        assert store.next_producer_id() > first_id
    with logstore.open(tmp_path, read_only=True) as store:
        assert store.topics["kept"] == kept


class FullForSnapshots(Seam):
    """A disk without room for a snapshot while `is_full`."""

    is_full = False

    def create(self, path: str) -> int:
        if self.is_full and ".checkpoint" in path and "__cluster" in path:
            raise nio_error(OSError(28, "No space left on device"), path)
        return super().create(path)


def test_a_snapshot_that_cannot_be_written_fails_no_change(tmp_path: Path) -> None:
    seam = FullForSnapshots()
    with open_store(tmp_path, seam=seam) as store:
        seam.is_full = True
        for number in range(30):
            store.create_topic(f"t{number}", 1)
        assert not list((tmp_path / "__cluster_metadata-0").glob("*[1-9]*-*.checkpoint"))
        seam.is_full = False
        for number in range(30, 60):
            store.create_topic(f"t{number}", 1)
        assert list((tmp_path / "__cluster_metadata-0").glob("*[1-9]*-*.checkpoint"))
    with logstore.open(tmp_path) as store:
        assert set(store.topics) == {f"t{number}" for number in range(60)}


def snapshot_always(log: metadata_log.MetadataLog, _: int) -> None:
    log._snapshot_at_size = 0


def test_a_crash_behind_the_record_of_a_deletion_leaves_no_stray_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log.MetadataLog, "_expect_snapshot", snapshot_always)
    root = tmp_path / "data"
    with open_store(root) as store:
        put_aside = Partitions.put_aside

        def copied_before(*arguments: Any) -> Any:
            shutil.copytree(root, tmp_path / f"left{len(list(tmp_path.iterdir()))}")
            return put_aside(*arguments)

        monkeypatch.setattr(Partitions, "put_aside", copied_before)
        for number in range(5):
            store.create_topic(f"t{number}", 2)
            store.delete_topic(f"t{number}")
    lefts = list(tmp_path.glob("left*"))
    assert len(lefts) == 5
    for left in lefts:
        with open_store(left) as store:
            assert store.stray_directories == ()


def test_a_block_of_producer_ids_waits_for_a_deletion_that_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log.MetadataLog, "_expect_snapshot", snapshot_always)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    root = tmp_path / "data"
    with open_store(root) as store:
        store.create_topic("first", 1)
        with monkeypatch.context() as patched:
            patched.setattr(Partitions, "put_aside", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.delete_topic("first")
        for _ in range(1001):
            store.next_producer_id()
        shutil.copytree(root, tmp_path / "left")
    with open_store(tmp_path / "left") as store:
        assert store.stray_directories == ()


def test_what_could_not_be_set_aside_goes_with_the_next_opening(tmp_path: Path) -> None:
    seam = FailingRenames()
    with open_store(tmp_path, seam=seam) as store:
        store.create_topic("first", 1)
        seam.directory = "first-0"
        with pytest.raises(DataDirectoryError):
            store.delete_topic("first")
        for number in range(60):
            store.create_topic(f"t{number}", 1)
    with open_store(tmp_path) as store:
        assert store.stray_directories == ()
        for number in range(30):
            store.delete_topic(f"t{number}")
    assert list((tmp_path / "__cluster_metadata-0").glob("*[1-9]*-*.checkpoint"))


def facts(image: MetadataImage) -> tuple[Any, ...]:
    topics = {name: (topic.topic_id, topic.partitions) for name, topic in image.topics.items()}
    configs = {key: config for key, config in image.configs.items() if config}
    brokers = {number: (one.broker_epoch, one.directories, one.listeners) for number, one in image.brokers.items()}
    rest = image.features, brokers, image.acls, image.tokens, image.credentials, image.next_producer_id
    return topics, configs, *rest


@pytest.mark.parametrize("name", ["demo", "groups", "cluster", "newest", "random", "control"])
def test_a_snapshot_says_what_the_log_of_a_broker_says(golden: Golden, name: str) -> None:
    for directory in golden(name).rglob("__cluster_metadata-0"):
        whole = read_metadata(str(directory)).image
        records, image = MetadataRecords(), MetadataImage()
        state = MetadataState(records.replay)
        state.read_snapshots(list_partition_directory(str(directory)))
        state.read_log(PartitionReader(str(directory)).view())
        for value in records.values():
            image.replay(value, 0)
        assert facts(image) == facts(whole)
        again = MetadataRecords()
        for value in records.values():
            again.replay(value, 0)
        assert list(again.values()) == list(records.values())


def left(*records: tuple[str, dict[str, Any]]) -> list[bytes]:
    fold = MetadataRecords()
    for name, fields in records:
        fold.replay(encode_value(name, fields), 0)
    assert not fold.has_open_transaction
    return list(fold.values())


TOPIC = ("TopicRecord", {"name": "t", "topicId": ID})
ACL = {"id": ID, "resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:a", "host": "*"}
ENTITY = [{"entityType": "user", "entityName": "a"}]
QUOTA = {"entity": ENTITY, "key": "producer_byte_rate", "value": 1.5, "remove": False}


def test_a_change_goes_into_the_record_that_it_changes() -> None:
    change = {"topicId": ID, "partitionId": 0, "isr": [2], "leader": 2, "eligibleLeaderReplicas": [1]}
    changed = {"isr": [2], "leader": 2, "leaderEpoch": 4, "partitionEpoch": 8, "eligibleLeaderReplicas": [1]}
    assert left(TOPIC, ("PartitionRecord", PARTITION), ("PartitionChangeRecord", change)) == [
        encode_value(*TOPIC),
        encode_value("PartitionRecord", PARTITION | changed),
    ]
    unfenced = {"brokerId": 1, "brokerEpoch": 5, "fenced": -1, "logDirs": [DIRECTORY]}
    fields = BROKER | {"fenced": False, "logDirs": [DIRECTORY]}
    records = ("RegisterBrokerRecord", BROKER), ("BrokerRegistrationChangeRecord", unfenced)
    assert left(*records) == [encode_value("RegisterBrokerRecord", fields)]


def test_what_was_removed_or_replaced_is_gone() -> None:
    config = {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": "1"}
    topic = TOPIC, ("PartitionRecord", PARTITION), ("ConfigRecord", config), ("RemoveTopicRecord", {"topicId": ID})
    assert left(*topic) == []
    assert left(("ConfigRecord", config), ("ConfigRecord", config | {"value": None})) == []
    assert left(("ClientQuotaRecord", QUOTA), ("ClientQuotaRecord", QUOTA | {"remove": True})) == []
    ids = [{"brokerId": 1, "brokerEpoch": 1, "nextProducerId": number} for number in (1000, 2000)]
    assert left(*(("ProducerIdsRecord", fields) for fields in ids)) == [encode_value("ProducerIdsRecord", ids[1])]
    levels = [{"name": "group.version", "featureLevel": level} for level in (1, 0)]
    assert left(*(("FeatureLevelRecord", fields) for fields in levels)) == []


def test_what_a_store_does_not_use_stays() -> None:
    assert left(("ClientQuotaRecord", QUOTA)) == [encode_value("ClientQuotaRecord", QUOTA)]
    records = ("BeginTransactionRecord", {"name": None}), TOPIC, ("AbortTransactionRecord", {"reason": None})
    assert left(*records) == []
    assert left(records[0], TOPIC, ("EndTransactionRecord", {})) == [encode_value(*TOPIC)]


@pytest.mark.parametrize("damage", ["changed", "cut"])
def test_a_damaged_snapshot_is_refused(tmp_path: Path, damage: str) -> None:
    """With a changed one no broker starts; here its topics had other names, and a cut one fewer."""
    with open_store(tmp_path) as store:
        for number in range(60):
            store.create_topic(f"topic{number:02}", config={"retention.ms": "5000"})
    (snapshot,) = (tmp_path / "__cluster_metadata-0").glob("*.checkpoint")
    content = snapshot.read_bytes()
    snapshot.write_bytes(content.replace(b"topic03", b"topicX3") if damage == "changed" else content[:-10])
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(CorruptRecordError) as caught:
        open_store(tmp_path)
    assert caught.value.path == str(snapshot)
    assert CliRunner().invoke(command_line, ["import", str(tmp_path), "--dry-run"]).exit_code == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files
