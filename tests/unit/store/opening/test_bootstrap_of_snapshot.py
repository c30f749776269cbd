"""Directories that Kafka 4.4 formatted: what a metadata log begins with stands in a snapshot of no offset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.disk.directory import list_partition_directory
from logstore.errors import DataDirectoryError, LogstoreError
from logstore.replay.internal_topic import ReplayedRecord, replayed
from logstore.replay.metadata_state import MetadataState, read_metadata
from logstore.store.metadata.batches import data_batch, snapshot_bytes
from logstore.topics.cluster_metadata import decode_value, encode_value
from logstore.view.partition_reader import PartitionReader
from logstore_tools.takeover.inspection import inspect
from tests.support.formatted import DIRECTORY_ID, USER, formatted, level
from tests.support.stores import contents, open_store


def of_log(root: Path) -> tuple[MetadataState, list[str]]:
    """The state by the metadata log alone, without its snapshot, and the kinds of its records."""
    view = PartitionReader(str(root / "__cluster_metadata-0")).view()
    state = MetadataState()
    state.read_log(view)
    records = [one for one in replayed(view) if isinstance(one, ReplayedRecord)]
    return state, [decode_value(one.value).message.name for one in records if one.value is not None]


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "standalone"])
def test_the_records_are_written_to_the_log(tmp_path: Path, is_dynamic: bool) -> None:
    levels = [level("metadata.version", 30), level("transaction.version", 1), level("group.version", 1)]
    root = formatted(tmp_path / "data", *levels, USER, is_dynamic=is_dynamic)
    assert "write the first records of the metadata log" in inspect(str(root)).steps
    with logstore.open(root, read_only=True) as reading:
        assert reading.feature("metadata.version") == 0  # as for a broker, before its controller is active
    with open_store(root) as store:
        store.create_topic("orders")
        assert (store.feature("metadata.version"), store.feature("transaction.version")) == (30, 1)
    state, kinds = of_log(root)
    assert state.image.features == {"metadata.version": 30, "transaction.version": 1, "group.version": 1}
    assert state.image.credentials == {("alice", 1)}
    assert kinds[:2] == ["BeginTransactionRecord", "FeatureLevelRecord"]
    assert "ConfigRecord" not in kinds  # as the level of eligible leader replicas is 0
    assert (read_metadata(str(root / "__cluster_metadata-0")).kraft_version == 1) is is_dynamic
    assert audit_directory(str(root), 0).findings == ()
    with open_store(root) as store:  # nothing more is written
        assert list(store.topics) == ["orders"]
    assert of_log(root)[1] == kinds


def test_a_log_of_an_old_level_begins_without_a_transaction_of_metadata(tmp_path: Path) -> None:
    root = formatted(tmp_path / "data", level("metadata.version", 12))
    open_store(root).close()
    state, kinds = of_log(root)
    assert kinds == ["FeatureLevelRecord", "RegisterBrokerRecord"]
    assert state.image.features == {"metadata.version": 12}


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([level("metadata.version", 34)], "newer Kafka .level 34.*found 34"),
        ([level("metadata.version", 30), level("share.version", 3)], "newer Kafka .share.version.*0 to 2, found 3"),
        (
            [level("metadata.version", 30), level("new.version", 1)],
            "newer Kafka .new.version of level 1.*a feature that is known here",
        ),
        ([USER], "metadata.version is not one.*found none"),
    ],
    ids=["newer", "newer feature", "unknown feature", "none"],
)
@pytest.mark.parametrize("is_file", [False, True], ids=["4.4", "4.3"])
def test_levels_that_are_not_known_are_refused_before_anything_changes(
    tmp_path: Path, records: list[bytes], text: str, is_file: bool
) -> None:
    root = formatted(tmp_path / "data", *([] if is_file else records))
    if is_file:
        (root / "bootstrap.checkpoint").write_bytes(snapshot_bytes([], records, 0, 0))
    before = contents(root)
    for opened in (inspect, logstore.open):
        with pytest.raises(DataDirectoryError, match=text) as caught:
            opened(str(root))
        assert "\n" not in str(caught.value)
    assert contents(root) == before


def test_a_damaged_snapshot_is_named(tmp_path: Path) -> None:
    root = formatted(tmp_path / "data", level("metadata.version", 30))
    (snapshot,) = list_partition_directory(str(root / "__cluster_metadata-0")).kraft_snapshots.values()
    content = bytearray(Path(snapshot).read_bytes())
    content[-100] ^= 1
    Path(snapshot).write_bytes(content)
    with pytest.raises(LogstoreError) as caught:
        logstore.open(root)
    assert caught.value.path == snapshot
    assert sorted(os.listdir(root)) == ["__cluster_metadata-0", "meta.properties"]


def test_a_log_that_lost_its_levels_gets_them_again(tmp_path: Path) -> None:
    root = formatted(tmp_path / "data", level("metadata.version", 30), USER)
    (root / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(
        data_batch([encode_value("TopicRecord", {"name": "t", "topicId": DIRECTORY_ID})], 0, 1, 0).tobytes()
    )
    (root / "__cluster_metadata-0" / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    rules = [one.rule for one in audit_directory(str(root), 0).findings]
    assert "metadata-version" in rules
    assert "write the first records of the metadata log" in inspect(str(root)).steps
    open_store(root).close()
    assert of_log(root)[0].image.features == {"metadata.version": 30}
    assert audit_directory(str(root), 0).findings == ()


def test_a_level_is_looked_for_where_a_broker_looks(tmp_path: Path) -> None:
    root = formatted(tmp_path / "data", USER)
    (finding,) = audit_directory(str(root), 0).findings
    assert (finding.rule, finding.expected) == ("startup-file", "a record with the level of metadata.version")
