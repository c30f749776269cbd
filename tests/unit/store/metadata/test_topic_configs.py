"""Configurations that only a change is refused for; what a topic has already does not keep the store shut."""

from __future__ import annotations

from pathlib import Path

import pytest

import logstore
from logstore.errors import InvalidConfigurationError, UsageError
from logstore.topics.cluster_metadata import encode_value
from tests.support.stores import append_metadata

LEADER, FOLLOWER = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
DISABLED = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"remote.storage.enable": True}, DISABLED),
        ({LEADER: "x"}, f"Invalid value [x] for configuration {LEADER}: {LEADER} must be the literal '*' or a list"),
        ({FOLLOWER: ["0:1", "*"]}, f"Invalid value [0:1, *] for configuration {FOLLOWER}"),
        ({"min.compaction.lag.ms": 6}, "conflict topic config setting min.compaction.lag.ms (6) > max.compaction"),
    ],
    ids=["remote", "leader", "follower", "the broker's"],
)
def test_topic_configurations_that_kafka_refuses_are_refused_when_set(
    tmp_path: Path, config: dict[str, object], text: str
) -> None:
    with logstore.open(tmp_path, config={"log.cleaner.max.compaction.lag.ms": 5}) as store:
        store.create_topic("here", config={LEADER: "*", FOLLOWER: "0:1,1:1"})
        with pytest.raises(InvalidConfigurationError) as creating:
            store.create_topic("t", 1, config)
        with pytest.raises(InvalidConfigurationError) as altering:
            store.alter_config("here", config)
        assert str(creating.value).startswith(text)
        assert str(altering.value).startswith(text)
        assert list(store.topics) == ["here"]
    logstore.open(tmp_path).close()


def test_a_topic_that_has_remote_storage_already_is_opened_and_not_changed(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t")
    for name, value in {"remote.storage.enable": "true", LEADER: "x"}.items():
        configured = {"resourceType": 2, "resourceName": "t", "name": name, "value": value}
        append_metadata(tmp_path, encode_value("ConfigRecord", configured))
    with logstore.open(tmp_path) as store:
        store.log("t", 0).append_records([b"a"])
        with pytest.raises(InvalidConfigurationError, match=r"Invalid value \[x\]"):
            store.alter_config("t", {"retention.ms": 5})
        with pytest.raises(InvalidConfigurationError, match="Tiered Storage functionality is disabled"):
            store.alter_config("t", {"retention.ms": 5, LEADER: None})
        with pytest.raises(InvalidConfigurationError, match="invalid to disable remote storage without deleting"):
            store.alter_config("t", {"remote.storage.enable": False, LEADER: None})
        changes = {"remote.storage.enable": False, "remote.log.delete.on.disable": True, LEADER: None}
        assert store.alter_config("t", changes).config["remote.storage.enable"] == "false"


def test_a_configuration_that_only_an_older_kafka_knew_hinders_no_change(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t")
    for name, value in {"message.format.version": "2.8", "message.downconversion.enable": "true"}.items():
        configured = {"resourceType": 2, "resourceName": "t", "name": name, "value": value}
        append_metadata(tmp_path, encode_value("ConfigRecord", configured))
    with logstore.open(tmp_path) as store:
        assert store.alter_config("t", {"retention.ms": 5}).config["retention.ms"] == "5"
        left = store.alter_config("t", {"message.format.version": None, "retention.ms": None}).config
        assert left == {"message.downconversion.enable": "true"}
        with pytest.raises(InvalidConfigurationError, match=r"Unknown topic config name: message\.format\.version"):
            store.alter_config("t", {"message.format.version": "2.8"})


def test_a_topic_with_a_configuration_that_no_broker_starts_with_is_named(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("a", config={"retention.ms": 5})
        store.create_topic("t")
    configured = {"resourceType": 2, "resourceName": "t", "name": "segment.bytes", "value": "14"}  # Kafka 3 took it
    append_metadata(tmp_path, encode_value("ConfigRecord", configured))
    with pytest.raises(UsageError, match=r"segment\.bytes: Value must be at least 1048576; found topic t; change it"):
        logstore.open(tmp_path)
