"""read_committed: which partitions are followed batch by batch, and what damage does to what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import CorruptRecordError
from spark_dumps import committed
from tests.spark.planned import Planned
from tests.spark.segment_files import batch, data, marker, write_partition, write_segment

COMMITTED = {"isolation_level": "read_committed"}
OPENED = batch(0) + data(10, 7) + batch(2)


def test_a_partition_without_transactions_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "PartitionReader", None)
    write_partition(tmp_path, segments=[20])
    assert Planned(tmp_path, **COMMITTED).offsets() == list(range(200))


def test_a_transaction_of_an_older_segment_stays_open(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, OPENED)
    write_segment(tmp_path / "orders-0", 30, batch(3))
    assert Planned(tmp_path, **COMMITTED).offsets() == list(range(10))


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_of_an_older_segment_is_decided_in_the_last(is_commit: bool, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, OPENED)
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
    assert Planned(tmp_path, mode="PERMISSIVE", **COMMITTED).offsets() == [0]
    assert Planned(tmp_path, mode="PERMISSIVE").offsets() == [0, *range(20, 30)]
