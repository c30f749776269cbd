"""read_committed: which partitions are followed batch by batch, and what damage does to what is known of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.errors import CorruptIndexError, CorruptRecordError, InvalidTxnStateError
from logstore.folds import producer_update
from logstore.folds.producer_state import ProducerState
from spark_dumps import bounds
from tests.spark.planned import Planned
from tests.spark.segment_files import batch, data, marker, write_partition, write_segment
from tests.support.encoder import SOME_TIME, Batch, Rec

COMMITTED = {"isolation_level": "read_committed"}
OPENED = batch(0) + data(10, 7) + batch(2)
WITH_AND_WITHOUT = pytest.mark.parametrize("has_snapshot", [True, False])


def write_opened(partition: Path, *, has_snapshot: bool) -> None:
    """A segment with an open transaction, and the producer snapshot behind it."""
    write_segment(partition, 0, OPENED)
    if has_snapshot:
        content, state = np.frombuffer(OPENED, np.uint8), ProducerState("orders-0")
        producer_update.step(state, content, scan(content), 0, 3)
        (partition / f"{30:020d}.snapshot").write_bytes(state.to_snapshot_bytes())


@pytest.fixture
def nothing_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "PartitionReader", None)


@pytest.mark.usefixtures("nothing_is_followed")
def test_a_partition_without_transactions_is_not_followed(tmp_path: Path) -> None:
    write_partition(tmp_path, segments=[20])
    assert Planned(tmp_path, **COMMITTED).offsets() == list(range(200))


@pytest.mark.usefixtures("nothing_is_followed")
def test_transactions_of_a_small_segment_are_folded_at_once(tmp_path: Path) -> None:
    aborted = data(30, 7) + marker(31, 7, is_commit=False)
    write_segment(tmp_path / "orders-0", 0, batch(0) + data(10, 7) + marker(11, 7, is_commit=True))
    (tmp_path / "orders-0" / f"{12:020d}.snapshot").write_bytes(ProducerState("orders-0").to_snapshot_bytes())
    write_segment(tmp_path / "orders-0", 12, batch(2) + aborted + batch(4) + data(50, 8) + batch(6))
    assert Planned(tmp_path, **COMMITTED).offsets() == [*range(11), *range(20, 30), *range(40, 50)]


@WITH_AND_WITHOUT
def test_a_transaction_of_an_older_segment_stays_open(has_snapshot: bool, tmp_path: Path) -> None:
    write_opened(tmp_path / "orders-0", has_snapshot=has_snapshot)
    write_segment(tmp_path / "orders-0", 30, batch(3))
    assert Planned(tmp_path, **COMMITTED).offsets() == list(range(10))


@WITH_AND_WITHOUT
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_of_an_older_segment_is_decided_in_the_last(
    is_commit: bool, has_snapshot: bool, tmp_path: Path
) -> None:
    write_opened(tmp_path / "orders-0", has_snapshot=has_snapshot)
    write_segment(tmp_path / "orders-0", 30, marker(30, 7, is_commit=is_commit))
    expected = [*range(10), *([10] if is_commit else []), *range(20, 30)]
    assert Planned(tmp_path, **COMMITTED).offsets() == expected


@pytest.mark.parametrize("position", [8, 100], ids=["length", "checksum"])
def test_damage_hides_what_is_decided_behind_it(position: int, tmp_path: Path) -> None:
    begin = data(0, 7) + marker(1, 7, is_commit=True)
    path = write_segment(tmp_path / "orders-0", 0, begin + batch(1) + batch(2))
    content = bytearray(path.read_bytes())
    content[len(begin) + position] ^= 0x80
    path.write_bytes(content)
    with pytest.raises(CorruptRecordError, match="damage hides"):
        Planned(tmp_path, **COMMITTED)
    permissive = Planned(tmp_path, mode="PERMISSIVE", **COMMITTED)
    assert permissive.offsets() == [0]
    assert [row["offset"] for row in permissive.rows() if "damage hides" in (row["_corrupt_record"] or "")] == [2]
    assert Planned(tmp_path, mode="PERMISSIVE").offsets() == [0, *range(20, 30)]


def test_damage_beside_one_log_hides_no_other(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        write_segment(tmp_path / name, 0, batch(0))
    (tmp_path / "orders-0" / f"{0:020d}.txnindex").write_bytes(b"\0\x09" + bytes(32))  # of an unknown version
    write_segment(tmp_path / "orders-0", 10, batch(1))
    with pytest.raises(CorruptIndexError, match="version 9"):
        Planned(tmp_path, **COMMITTED)
    rows = Planned(tmp_path, mode="PERMISSIVE", **COMMITTED).rows()
    assert [row["partition"] for row in rows] == [1] * 10 + [0]
    assert "version 9" in rows[-1]["_corrupt_record"]


@pytest.mark.usefixtures("nothing_is_followed")
def test_a_segment_that_cannot_be_followed_names_its_file(tmp_path: Path) -> None:
    plain = Batch(1, [Rec()], producer_id=9, producer_epoch=0, base_sequence=0).to_bytes()
    path = write_segment(tmp_path / "orders-0", 0, data(0, 9) + plain)
    with pytest.raises(InvalidTxnStateError) as told:
        Planned(tmp_path, **COMMITTED)
    assert (told.value.path, told.value.position, told.value.offset) == (str(path), len(data(0, 9)), 1)


@pytest.mark.parametrize("is_closed", [True, False])
def test_files_beside_a_log_are_relied_on_up_to_the_recovery_point_of_a_crash(is_closed: bool, tmp_path: Path) -> None:
    """The `.txnindex` and the end of the `.timeindex` of the first segment were lost."""
    aborted = data(10, 7) + marker(11, 7, is_commit=False)
    path = write_segment(tmp_path / "orders-0", 0, batch(0) + aborted + batch(2) + batch(3))
    write_segment(tmp_path / "orders-0", 40, batch(4))
    (tmp_path / "orders-0" / f"{40:020d}.snapshot").write_bytes(ProducerState("orders-0").to_snapshot_bytes())
    path.with_suffix(".timeindex").write_bytes(path.with_suffix(".timeindex").read_bytes()[:12])
    (tmp_path / "meta.properties").write_text("")
    if is_closed:
        (tmp_path / ".kafka_cleanshutdown").touch()
    offsets = Planned(tmp_path, **COMMITTED).offsets()
    assert offsets == [*range(10), *([10] if is_closed else []), *range(20, 50)]
    from_time = Planned(tmp_path, startingTimestamp=SOME_TIME + 35).offsets()
    assert from_time == list(range(40 if is_closed else 35, 50))
