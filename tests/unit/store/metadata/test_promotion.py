"""Directories that change hands: what is said of them, what is done, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import logstore
from logstore.disk.seam import SEAM, Seam
from logstore.errors import DataDirectoryError, InconsistentTopicIdError
from logstore.layout.java_properties import parse_properties
from logstore.model import FetchIsolation
from logstore.store.metadata.batches import dynamic_quorum, snapshot_bytes, voter_fields
from logstore.topics.cluster_metadata import encode_value
from logstore_tools.commands import logstore as command_line
from logstore_tools.takeover.adoption import adopt
from logstore_tools.takeover.inspection import inspect
from tests.golden.archive import unpack
from tests.support.golden import AFTER_GOLDEN_MS
from tests.support.stores import append_metadata, contents


def call(*args: str) -> Result:
    return CliRunner().invoke(command_line, list(args))


def as_told(*args: str) -> dict[str, Any]:
    result = call(*args, "--format", "jsonl")
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(result.output)
    return told


def test_a_closed_store_is_promoted_by_doing_nothing(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("orders", 2)
    before = contents(root)
    told = as_told("promote", str(root))
    assert contents(root) == before
    assert (told["steps"], told["strays"], told["topics"]) == ([], [], {"orders": 2})
    assert (told["clusterId"], told["nodeId"], told["wasClean"]) == (store.cluster_id, 1, True)
    assert f"log.dirs={root}\n" in told["brokerConfig"]
    assert "controller.quorum.bootstrap.servers=localhost:9093\n" in told["brokerConfig"]
    text = call("promote", str(root)).output
    assert "steps: 0\n" in text
    assert "features: metadata.version: 30, eligible.leader.replicas.version: 1, group.version: 1, " in text
    assert "A broker starts here with\n\nprocess.roles=broker,controller\n" in text


def test_a_copy_of_an_open_store_is_recovered_by_promotion(tmp_path: Path) -> None:
    root, copy = tmp_path / "data", tmp_path / "copy"
    with logstore.open(root) as store:
        store.create_topic("orders", 2)
        store.log("orders", 0).append_records([b"a"])
        shutil.copytree(root, copy)
    shutil.rmtree(copy / "orders-1")
    before = contents(copy)
    told = as_told("promote", "--dry-run", str(copy))
    assert told["steps"] == [
        "recover all partitions, because the directory was not closed in order",
        "make the directory of orders-1",
    ]
    assert contents(copy) == before
    assert as_told("promote", str(copy))["steps"] == []
    with logstore.open(copy) as store:
        assert [store.log("orders", one).log_end_offset for one in (0, 1)] == [1, 0]


@pytest.mark.parametrize("name", ["transactions", "transactions-v1", "cluster", "groups", "killed", "newest"])
def test_directories_of_real_brokers_are_imported(name: str, tmp_path: Path) -> None:
    root = unpack(name, tmp_path)
    with logstore.open(root, read_only=True) as reading:
        topics = dict(reading.topics)
        logs = {(one.name, p): reading.log(one.name, p) for one in topics.values() for p in range(one.partition_count)}
        bounds = {key: log.bounds for key, log in logs.items()}
    told = as_told("import", "--dry-run", str(root))
    assert told["topics"] == {one.name: one.partition_count for one in topics.values()}
    assert told["wasClean"] is (name != "killed")
    metadata = (root / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    with logstore.open(root, now_ms=lambda: AFTER_GOLDEN_MS) as store:
        assert store.topics == topics
        assert store.failures == {}
        for key, before in bounds.items():
            log = store.log(*key)
            found = (log.log_start_offset, log.log_end_offset, log.last_stable_offset)
            assert found == (before.log_start_offset, before.log_end_offset, before.last_stable_offset), key
        assert store.next_producer_id() == told["nextProducerId"]
    assert (root / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes().startswith(metadata)
    assert as_told("import", str(root))["steps"] == []


def test_partitions_that_are_nobodys_are_adopted(tmp_path: Path) -> None:
    root = unpack("transactions", tmp_path)
    with logstore.open(root, read_only=True) as reading:
        topics = dict(reading.topics)
        next_producer_id = inspect(str(root)).next_producer_id
    for path in root.iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(root / "__cluster_metadata-0")
    before = contents(root)
    assert "make topic __transaction_state of 2 partitions with id" in call("promote", "--dry-run", str(root)).output
    assert contents(root) == before
    assert "promote" in call("import", str(root)).output
    told = as_told("promote", str(root))
    assert told["steps"] == []
    assert told["topics"] == {one.name: one.partition_count for one in topics.values()}
    assert told["nextProducerId"] == next_producer_id
    with logstore.open(root, now_ms=lambda: AFTER_GOLDEN_MS) as store:
        assert {name: one.topic_id for name, one in store.topics.items()} == {
            name: one.topic_id for name, one in topics.items()
        }
        assert store.topics["__transaction_state"].config["cleanup.policy"] == "compact"
        for name, one in topics.items():
            for number in range(one.partition_count):
                epochs = store.log(name, number).state.epochs.entries
                assert store.log(name, number).leader_epoch >= (epochs[-1][0] if epochs else 0)
        records = store.log("orders", 0).records(isolation=FetchIsolation.READ_COMMITTED)
        assert sum(len(chunk) for chunk in records.chunks()) > 0


def test_an_adoption_never_makes_a_cluster_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "t-0.0f2a-stray").mkdir()
    with pytest.raises(DataDirectoryError, match="There is no partition to adopt"):
        adopt(str(tmp_path), seam=SEAM, now_ms=lambda: AFTER_GOLDEN_MS)
    assert os.listdir(tmp_path) == ["t-0.0f2a-stray"]


class _Stops(Seam):
    """Stops at the given call."""

    def __init__(self, call: int) -> None:
        self.left = call

    def sync_directory(self, path: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        super().sync_directory(path)


def test_an_adoption_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with logstore.open(source) as store:
        ids = {name: store.create_topic(name).topic_id for name in ("a", "b", "c")}
    for call_number in range(1, 30):
        root = tmp_path / str(call_number)
        root.mkdir()
        for name in ids:
            shutil.copytree(source / f"{name}-0", root / f"{name}-0")
        try:
            adopt(str(root), seam=_Stops(call_number), now_ms=lambda: AFTER_GOLDEN_MS)
        except KeyboardInterrupt:
            if not (root / "meta.properties").exists():
                adopt(str(root), seam=SEAM, now_ms=lambda: AFTER_GOLDEN_MS)
        else:
            break
        with logstore.open(root) as store:
            assert {name: one.topic_id for name, one in store.topics.items()} == ids
    assert call_number > 5


def test_partitions_of_different_topics_are_not_taken_for_one(tmp_path: Path) -> None:
    for number, topic_id in enumerate(("dqEnd-x7SkKckvU0_kJgLQ", "wpbL9QuzSw6JQCrXAbQsfg")):
        (tmp_path / f"orders-{number}").mkdir()
        (tmp_path / f"orders-{number}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    with pytest.raises(InconsistentTopicIdError, match="of different topics"):
        inspect(str(tmp_path))
    result = call("promote", str(tmp_path))
    assert (result.exit_code, sorted(os.listdir(tmp_path))) == (1, ["orders-0", "orders-1"])


PARTITION = {"topicId": "dqEnd-x7SkKckvU0_kJgLQ", "partitionId": 0, "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            [
                encode_value("TopicRecord", {"name": "t", "topicId": "dqEnd-x7SkKckvU0_kJgLQ"}),
                encode_value("PartitionRecord", {**PARTITION, "replicas": [1, 2], "isr": [1, 2]}),
            ],
            r"has replicas in other directories or on other nodes.*found t-0 on \(1, 2\)",
        ),
        (
            [
                encode_value("TopicRecord", {"name": "t", "topicId": "dqEnd-x7SkKckvU0_kJgLQ"}),
                encode_value(
                    "PartitionRecord", {**PARTITION, "replicas": [1], "directories": ["wpbL9QuzSw6JQCrXAbQsfg"]}
                ),
            ],
            r"has replicas in other directories or on other nodes.*kafka-reassign-partitions\.sh --execute.* log_dirs",
        ),
        (
            [
                encode_value("TopicRecord", {"name": "t", "topicId": "dqEnd-x7SkKckvU0_kJgLQ"}),
                encode_value("UnregisterBrokerRecord", {"brokerId": 1, "brokerEpoch": 12}),
                encode_value(
                    "PartitionRecord", {**PARTITION, "replicas": [3], "directories": ["wpbL9QuzSw6JQCrXAbQsfg"]}
                ),
            ],
            r"has replicas in other directories or on other nodes.*a metadata\.log\.dir, is in no broker's log\.dirs",
        ),
    ],
)
def test_directories_for_more_than_one_node_are_refused(values: list[bytes], text: str, tmp_path: Path) -> None:
    logstore.open(tmp_path).close()
    append_metadata(tmp_path, *values)
    for opened in (inspect, logstore.open):
        with pytest.raises(DataDirectoryError, match=text):
            opened(str(tmp_path))
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert logstore.open(tmp_path, read_only=True).feature("metadata.version") >= 30


@pytest.mark.parametrize(("is_voter", "advice"), [(False, "put back the meta"), (True, "remove-controller")])
def test_a_quorum_of_other_nodes_is_refused(is_voter: bool, advice: str, tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        own = [voter_fields(store.node_id, store.directory_id)] if is_voter else []
    for file in (tmp_path / "__cluster_metadata-0").iterdir():
        file.unlink()
    version, (kind, fields) = dynamic_quorum(voter_fields(7, "wpbL9QuzSw6JQCrXAbQsfg"))
    quorum = [version, (kind, {**fields, "voters": [*own, *fields["voters"]]})]
    snapshot = tmp_path / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    snapshot.write_bytes(snapshot_bytes(quorum, [], 0, 0))
    with pytest.raises(DataDirectoryError, match=rf"a quorum of other nodes.*found voters .*7 in .*{advice}"):
        logstore.open(tmp_path)


@pytest.mark.parametrize("name", ["promote", "import"])
def test_readable_batches_are_removed_only_with_yes(name: str, tmp_path: Path) -> None:
    root = unpack("killed", tmp_path)
    (root / "recovery-point-offset-checkpoint").unlink()
    log = next(path for path in sorted(root.glob("*/*.log")) if path.parent.name[0] != "_" and path.stat().st_size)
    content = bytearray(log.read_bytes())
    content[70] ^= 1  # in the first batch, so that all behind it goes
    log.write_bytes(content)
    before = contents(root)
    dry = call(name, "--dry-run", str(root))
    assert (dry.exit_code, f"from offset 2 on, in {log.parent}: cut 2896 bytes at byte 0" in dry.output) == (1, True)
    refused = call(name, str(root))
    assert (refused.exit_code, refused.stdout, str(log.parent) in refused.stderr) == (1, "", True)
    assert "would remove" in refused.stderr
    assert "--yes" in refused.stderr
    assert contents(root) == before
    assert call(name, "--yes", str(root)).exit_code == 0
    assert log.stat().st_size in (0, 78)  # nothing, or the marker of a transaction that was open


def test_the_configuration_names_any_directory_and_goes_into_a_new_file(tmp_path: Path) -> None:
    root, out = tmp_path / "dä ta\\n#=1", tmp_path / "server.properties"
    logstore.open(root).close()
    told = as_told("promote", str(root), "--out", str(out))
    assert out.read_text("ascii") == told["brokerConfig"]
    assert parse_properties(out.read_bytes())["log.dirs"] == str(root)
    assert told["startCommand"] == f"kafka-server-start.sh {out}"
    before = contents(tmp_path)
    for refused in (out, tmp_path / "nowhere" / "file", f"{tmp_path}/nowhere/", ""):
        result = call("promote", str(root), "--out", str(refused))
        assert (result.exit_code, "to a new file only" in result.stderr or not refused) == (2, True)
    assert as_told("promote", str(root), "--dry-run", "--out", str(tmp_path / "other")).get("brokerConfig") is None
    assert contents(tmp_path) == before
    new = tmp_path / "new one"
    text = call("promote", str(root), "--out", str(new)).output
    assert f"which is in {new}, by\n\nkafka-server-start.sh '{new}'\n" in text


@pytest.mark.parametrize("name", ["a,b", "a "])
def test_a_directory_that_log_dirs_cannot_name_is_promoted_by_a_link(name: str, tmp_path: Path) -> None:
    root = tmp_path / name
    with logstore.open(root) as store:
        store.create_topic("t")
    (root / ".kafka_cleanshutdown").unlink()
    before = contents(root)
    result = call("promote", str(root))
    assert (result.exit_code, contents(root)) == (2, before)
    assert "log.dirs of a broker cannot name this directory" in result.stderr
    link = tmp_path / "link"
    link.symlink_to(root)
    assert f"log.dirs={link}\n" in as_told("promote", str(link))["brokerConfig"]


def test_what_the_configuration_leaves_out_is_said(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("old")
    assert as_told("promote", str(tmp_path))["warnings"] == []
    uuid = "dqEnd-x7SkKckvU0_kJgLQ"
    acl = {"resourceType": 2, "resourceName": "old", "patternType": 3, "principal": "User:a", "host": "*"}
    token = {"owner": "a", "requester": "a", "renewers": [], "tokenId": "1"}
    token |= dict.fromkeys(("issueTimestamp", "maxTimestamp", "expirationTimestamp"), 0)
    secret = {"salt": b"s", "storedKey": b"k", "serverKey": b"k", "iterations": 4096}
    listeners = [
        {"name": name, "host": "h", "port": 9092 + number, "securityProtocol": number}
        for number, name in enumerate(("PLAINTEXT", "SSL"))
    ]
    broker = {"brokerId": 1, "incarnationId": uuid, "brokerEpoch": 99, "endPoints": listeners, "features": []}
    append_metadata(
        tmp_path,
        encode_value("AccessControlEntryRecord", {"id": uuid, **acl, "operation": 3, "permissionType": 3}),
        encode_value("UserScramCredentialRecord", {"name": "a", "mechanism": 1, **secret}),
        encode_value("DelegationTokenRecord", token),
        encode_value(
            "ConfigRecord",
            {"resourceType": 2, "resourceName": "old", "name": "remote.storage.enable", "value": "true"},
        ),
        encode_value("RegisterBrokerRecord", broker),
    )
    told = " | ".join(as_told("promote", str(tmp_path))["warnings"])
    for text in (
        "1 ACLs are not enforced",
        "1 SCRAM credentials are not asked for",
        "1 delegation tokens are not valid",
        "older records of old are remote",
        "the broker had the listeners PLAINTEXT, SSL",
    ):
        assert text in told
    assert "kraft.version" not in told
    append_metadata(
        tmp_path,
        encode_value("RemoveAccessControlEntryRecord", {"id": uuid}),
        encode_value("RemoveUserScramCredentialRecord", {"name": "a", "mechanism": 1}),
        encode_value("RemoveDelegationTokenRecord", {"tokenId": "1"}),
    )
    assert len(as_told("promote", str(tmp_path))["warnings"]) == 2


def test_what_recovery_did_is_said(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t")
        store.log("t", 0).append_records([b"a"])
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with (tmp_path / "t-0" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn")
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(b"0\n0\n")
    assert as_told("promote", str(tmp_path))["done"] == [
        "recover all partitions, because the directory was not closed in order",
        f"remove 4 bytes, in {tmp_path / 't-0'}: cut 4 bytes at byte 69: the last batch is cut off",
    ]
    assert as_told("promote", str(tmp_path))["done"] == []
