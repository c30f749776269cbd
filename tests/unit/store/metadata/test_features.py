"""Levels of features: those of new stores, and how they are raised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.config.kafka_version import NEWEST, V4_3, default_levels
from logstore.disk.side_files import read_quorum_state
from logstore.errors import InvalidConfigurationError, InvalidUpdateVersionError, UsageError
from logstore.replay.metadata_image import BROKER_RESOURCE, BrokerImage
from logstore.replay.metadata_state import MetadataState, read_metadata
from logstore.topics.cluster_metadata import encode_value
from tests.support.formatted import formatted, level
from tests.support.stores import append_metadata, open_store

OF_4_4 = "max.decompressed.message.bytes"


def state_of(root: Path) -> MetadataState:
    return read_metadata(str(root / "__cluster_metadata-0"))


def broker_of(root: Path) -> BrokerImage:
    return state_of(root).image.brokers[1]


def supported(broker: BrokerImage) -> dict[str, int]:
    return {feature["name"]: feature["maxSupportedVersion"] for feature in broker.registration["features"]}


@pytest.mark.parametrize(
    ("version", "metadata_version"), [(None, 30), ("4.3", 30), ("4.3.1", 30), ("4.4", 33), ("4.4.0", 33)]
)
def test_a_new_store_gets_the_levels_of_a_version(tmp_path: Path, version: str | None, metadata_version: int) -> None:
    logstore.open(tmp_path, kafka_version=version).close()
    assert state_of(tmp_path).levels == default_levels(metadata_version)
    known = supported(broker_of(tmp_path))
    assert (known["metadata.version"], known["share.version"]) == (metadata_version, 1 + (metadata_version == 33))


def test_a_store_keeps_its_levels(tmp_path: Path) -> None:
    logstore.open(tmp_path / "old").close()
    with logstore.open(tmp_path / "old", kafka_version="4.4") as store:
        assert store.feature("metadata.version") == 30
        store.create_topic("t", config={OF_4_4: "100"})  # which a broker of 4.4 has at any level
    logstore.open(tmp_path / "new", kafka_version="4.4").close()
    for version in ("4.3", None):
        with logstore.open(tmp_path / "new", kafka_version=version) as store:
            assert (store.feature("metadata.version"), store.feature("share.version")) == (33, 2)
            assert store.feature("kraft.version") == 1


def test_a_wrong_version_is_told_before_anything_is_made(tmp_path: Path) -> None:
    for version in ("4.5", "", "4.4-IV2"):
        with pytest.raises(UsageError, match=r"Unknown version of Kafka; expected 4\.3 or 4\.4, found"):
            logstore.open(tmp_path / "data", kafka_version=version)
    with pytest.raises(UsageError, match=r"differ; expected 4\.4, found 4\.3"):
        logstore.open(tmp_path / "data", kafka_version="4.4", config={"logstore.kafka.version": "4.3"})
    with pytest.raises(UsageError, match="takes the path and now_ms alone"):
        logstore.open(tmp_path / "data", kafka_version="4.4", read_only=True)  # type: ignore[call-overload]
    assert not (tmp_path / "data").exists()


def test_raised_levels_hold_at_once_and_for_ever(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.create_topic("t")
        with pytest.raises(InvalidConfigurationError, match="Unknown topic config name"):
            store.alter_config("t", {OF_4_4: "100"})
        before = broker_of(tmp_path)
        planned = store.update_features(default_levels(33), dry_run=True)
        assert planned == {"metadata.version": 33, "share.version": 2}
        assert state_of(tmp_path).levels == default_levels(30)
        assert store.update_features(default_levels(33)) == planned
        assert store.update_features(default_levels(33)) == {}
        store.alter_config("t", {OF_4_4: "100"})
        store.next_producer_id()
    after = broker_of(tmp_path)
    assert (supported(before)["metadata.version"], supported(after)["metadata.version"]) == (30, 33)
    assert after.broker_epoch > before.broker_epoch
    assert after.directories == before.directories
    assert after.registration["incarnationId"] != before.registration["incarnationId"]
    mark = (tmp_path / ".kafka_cleanshutdown").read_text()
    assert f'"brokerEpoch":{after.broker_epoch}' in mark  # a broker takes the mark only with its own epoch
    assert audit_directory(str(tmp_path), 0).findings == ()
    with open_store(tmp_path) as store:
        assert store.describe_topic("t").config == {OF_4_4: "100"}
        assert store.feature("share.version") == 2


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"metadata.version": 34}, "34 for feature metadata.version. Local controller 1 only supports versions 7-33"),
        ({"metadata.version": 29}, "29 for feature metadata.version. Can't downgrade the version of this feature"),
        ({"metadata.version": 33, "share.version": 0}, "0 for feature share.version. Can't downgrade the version"),
        ({"no.such": 1}, "1 for feature no.such. Local controller 1 does not support this feature."),
        ({"share.version": -1}, "-1 for feature share.version. A feature version cannot be less than 0."),
        ({"kraft.version": 2}, "2 for feature kraft.version. Local controller 1 only supports versions 0-1"),
    ],
    ids=["newer", "lower", "one of two", "unknown", "negative", "quorum"],
)
def test_levels_that_cannot_be_are_refused_in_kafkas_words(
    tmp_path: Path, wanted: Mapping[str, int], problem: str
) -> None:
    with open_store(tmp_path) as store:
        with pytest.raises(InvalidUpdateVersionError) as caught:
            store.update_features(wanted)
        assert str(caught.value).startswith(f"Invalid update version {problem}")
        for level_of_no_kind in ("33", 33.0, True):
            with pytest.raises(UsageError, match="a whole number"):
                store.update_features({"metadata.version": level_of_no_kind})  # type: ignore[dict-item]
    assert state_of(tmp_path).levels == default_levels(30)


def test_a_level_that_needs_another_waits_for_it(tmp_path: Path) -> None:
    root, elr = formatted(tmp_path / "data", level("metadata.version", 22)), "eligible.leader.replicas.version"
    with open_store(root) as store:
        with pytest.raises(InvalidUpdateVersionError, match="could not be set to 1 because it depends on metadata"):
            store.update_features({elr: 1})
        assert store.update_features({elr: 1, "metadata.version": 23}) == {"metadata.version": 23, elr: 1}


@pytest.mark.parametrize("start", [7, 12, 17, 21, 30])
def test_every_level_rises_to_the_newest(tmp_path: Path, start: int) -> None:
    root = formatted(tmp_path / "data", level("metadata.version", start))
    with open_store(root, config={"min.insync.replicas": "2"}) as store:
        store.create_topic("before")
        settings = [encode_value("ConfigRecord", _min_isr("1", "3"))]
        append = store.directory._metadata.append
        append(settings)
        store.update_features(default_levels(NEWEST.highest_level))
        store.create_topic("after")
    state = state_of(root)
    assert state.levels == default_levels(NEWEST.highest_level)
    assert [voter["voterId"] for voter in state.voters] == [1]
    assert state.image.configs[BROKER_RESOURCE, ""]["min.insync.replicas"] == "2"  # what the store had before
    assert "min.insync.replicas" not in state.image.configs[BROKER_RESOURCE, "1"]
    assert broker_of(root).directories == (state.voters[0]["voterDirectoryId"],)
    assert audit_directory(str(root), 0).findings == ()
    with open_store(root) as store:
        assert list(store.topics) == ["before", "after"]
        store.create_topic("next")
    assert read_quorum_state(str(root / "__cluster_metadata-0" / "quorum-state")).data_version == 1


def test_what_a_broker_registered_stays(tmp_path: Path) -> None:
    logstore.open(tmp_path).close()
    known = {**broker_of(tmp_path).registration, "rack": "r7", "brokerEpoch": 99}
    known["endPoints"] = [{"name": "EXTERNAL", "host": "h", "port": 9, "securityProtocol": 3}]
    append_metadata(tmp_path, encode_value("RegisterBrokerRecord", known))
    with open_store(tmp_path) as store:
        store.update_features({"metadata.version": 31})
    broker = broker_of(tmp_path)
    assert broker.registration["rack"] == "r7"
    assert broker.listeners == [("EXTERNAL", 3)]
    assert V4_3.knows_levels(state_of(tmp_path).levels) is False


def _min_isr(broker: str, value: str) -> dict[str, object]:
    return {
        "resourceType": BROKER_RESOURCE,
        "resourceName": broker,
        "name": "min.insync.replicas",
        "value": value,
    }
