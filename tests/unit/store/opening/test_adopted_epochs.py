"""Partitions that are adopted: the next coordinator must not be behind the one that wrote their last markers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.coordinator.transactions.transitions import COMPLETE_COMMIT
from logstore.disk.seam import SEAM
from logstore.errors import LogstoreError
from logstore.layout.file_names import PRODUCER_SNAPSHOT_SUFFIX
from logstore.topics.transaction_state import TransactionMetadata, TransactionState, encode_key, encode_value
from logstore_tools.takeover.adoption import adopt
from logstore_tools.takeover.highest_in_logs import HighestInLogs
from tests.golden.archive import unpack
from tests.support.built import build_batch_from_records
from tests.support.golden import AFTER_GOLDEN_MS
from tests.support.small_store import START_MS, TransactionalClient, commit_of_another_coordinator

EPOCH = 7  # of the coordinator; the metadata that says so is lost
CONFIG = {"transaction.state.log.num.partitions": 2}


def of_a_later_coordinator(root: Path) -> int:
    """A directory that nobody owns; the producer id in it."""
    with logstore.open(root, config=CONFIG) as store:
        store.create_topic("t", partitions=1)
        client = TransactionalClient(store, "billing")
        client.send("t", b"committed")
        client.end(is_commit=True)
        commit_of_another_coordinator(client, "t", coordinator_epoch=EPOCH)
    (root / "meta.properties").unlink()
    shutil.rmtree(root / "__cluster_metadata-0")
    return client.identity[0]


def assert_usable(root: Path, producer_id: int) -> None:
    adopt(str(root), seam=SEAM, now_ms=lambda: START_MS)
    with logstore.open(root) as store:
        assert {store.log("__transaction_state", one).leader_epoch for one in range(2)} == {EPOCH + 1}
        assert store.log("t", 0).leader_epoch == 1
        client = TransactionalClient(store, "billing")
        assert client.identity[0] == producer_id
        client.send("t", b"next")
        client.end(is_commit=True)
        assert store.transactions.describe("billing").state is COMPLETE_COMMIT
        log = store.log("t", 0)
        assert log.last_stable_offset == log.log_end_offset
        assert store.next_producer_id() > producer_id


def test_markers_of_an_adopted_directory_go_on_behind_those_that_are_there(tmp_path: Path) -> None:
    producer_id = of_a_later_coordinator(tmp_path)
    for snapshot in tmp_path.glob(f"t-0/*{PRODUCER_SNAPSHOT_SUFFIX}"):
        snapshot.unlink()
    assert_usable(tmp_path, producer_id)


def test_markers_go_on_behind_those_that_only_a_producer_snapshot_has(tmp_path: Path) -> None:
    producer_id = of_a_later_coordinator(tmp_path)
    (end,) = (path.stem for path in tmp_path.glob(f"t-0/*{PRODUCER_SNAPSHOT_SUFFIX}"))
    for path in tmp_path.glob(f"t-0/{0:020d}.*"):  # retention has removed the segment
        path.unlink()
    (tmp_path / "t-0" / f"{end}.log").write_bytes(b"")
    assert_usable(tmp_path, producer_id)


def test_a_damaged_producer_snapshot_is_passed_over(tmp_path: Path) -> None:
    producer_id = of_a_later_coordinator(tmp_path)
    (snapshot,) = tmp_path.glob(f"t-0/*{PRODUCER_SNAPSHOT_SUFFIX}")
    snapshot.write_bytes(b"damaged")
    assert_usable(tmp_path, producer_id)


def test_a_marker_of_an_odd_form_counts_as_well(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    marker = [(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x07", START_MS, ((b"odd", b""),))]
    batch = build_batch_from_records(marker, producer_id=3, producer_epoch=0, is_transactional=True, is_control=True)
    (partition / f"{0:020d}.log").write_bytes(batch.tobytes())
    found = HighestInLogs.of("t", 1, {0: str(partition)})
    assert (found.coordinator_epoch, found.producer_id, found.leader_epochs) == (EPOCH, 3, {0: 0})


def test_a_producer_id_that_a_transaction_goes_on_with_counts_as_well(tmp_path: Path) -> None:
    """Its epochs are used up, so that the next one is given out, and in no batch yet."""
    path = tmp_path / "__transaction_state-0" / f"{0:020d}.log"
    path.parent.mkdir()
    state = TransactionMetadata(3, 32767, TransactionState.PREPARE_COMMIT, 1000, (("t", 0),), 1, 1, -1, 9, 0, 2)
    path.write_bytes(build_batch_from_records([(encode_key("x"), encode_value(state), START_MS, ())]).tobytes())
    assert HighestInLogs.of("__transaction_state", 1, {0: str(path.parent)}).producer_id == 9


def test_leader_epochs_go_on_behind_those_that_only_a_commit_has(tmp_path: Path) -> None:
    with logstore.open(tmp_path, config={"offsets.topic.num.partitions": 1}) as store:
        store.create_topic("t")
        with store.consumer(group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign([("t", 0)])
            consumer.commit({("t", 0): OffsetAndMetadata(5, leader_epoch=EPOCH)})
    (tmp_path / "meta.properties").unlink()
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    adopt(str(tmp_path), seam=SEAM, now_ms=lambda: START_MS)
    with logstore.open(tmp_path) as store:
        assert (store.log("t", 0).leader_epoch, store.log("__consumer_offsets", 0).leader_epoch) == (EPOCH + 1, 1)


CUT_MARKER = {"producer_id": 3, "producer_epoch": 0, "is_transactional": True, "is_control": True}
CUT = [
    pytest.param("t", (b"\x00\x00\x00\x01", b"\x00"), CUT_MARKER, id="marker"),
    pytest.param("__transaction_state", (b"\x00\x00\x00\x01a", b"\x00\x00\x00"), {}, id="transactional-id"),
]


@pytest.mark.parametrize(("topic", "record", "fields"), CUT)
def test_a_record_that_does_not_parse_is_told_with_its_file(
    topic: str, record: tuple[bytes, bytes], fields: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / f"{topic}-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(build_batch_from_records([(*record, START_MS, ())], **fields).tobytes())
    with pytest.raises(LogstoreError) as told:
        HighestInLogs.of(topic, 1, {0: str(path.parent)})
    assert told.value.path == str(path)


@pytest.mark.parametrize("name", ["transactions", "transactions-v1", "killed"])
@pytest.mark.parametrize("is_adopted", [False, True], ids=["opened", "adopted"])
def test_the_coordinator_of_a_brokers_directory_is_not_behind_its_markers(
    name: str, is_adopted: bool, tmp_path: Path
) -> None:
    root = unpack(name, tmp_path)
    if is_adopted:
        (root / "meta.properties").unlink()
        shutil.rmtree(root / "__cluster_metadata-0")
        adopt(str(root), seam=SEAM, now_ms=lambda: AFTER_GOLDEN_MS)
    with logstore.open(root, now_ms=lambda: AFTER_GOLDEN_MS) as store:
        known = store.topics["__transaction_state"].partition_count
        least = min(store.log("__transaction_state", number).leader_epoch for number in range(known))
        found = [HighestInLogs.of(topic, 1, {0: str(root / f"{topic}-0")}).coordinator_epoch for topic in store.topics]
        assert least >= max(found) >= 0
