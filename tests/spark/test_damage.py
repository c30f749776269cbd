"""A damaged segment is an error, or the rest of it, as `mode` says; what a writer has not finished is neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import CorruptRecordError, DataDirectoryError, DecompressionError, LogstoreError, UsageError
from tests.spark.planned import Planned
from tests.spark.segment_files import batch, write_partition, write_segment
from tests.support.encoder import GZIP, Batch, Rec

BATCH_SIZE = len(batch(0))
CORRUPT = "offset long, topic string, partition int, _corrupt_record string"


def flip(path: Path, position: int, mask: int = 0x40) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def without(*numbers: int, count: int = 60) -> list[int]:
    """The offsets of all batches but some."""
    return [10 * number + delta for number in range(count) if number not in numbers for delta in range(10)]


WAYS = {"checksum": (100, 1), "length too small": (8, 0x80), "length too large": (9, 0x40), "magic": (16, 2)}


@pytest.mark.parametrize("way", WAYS)
def test_one_bad_batch(way: str, tmp_path: Path) -> None:
    path = write_partition(tmp_path)[1]
    position, mask = WAYS[way]
    flip(path, 7 * BATCH_SIZE + position, mask)
    with pytest.raises(LogstoreError, match=path.name):
        Planned(tmp_path).rows()
    assert Planned(tmp_path, mode="DROPMALFORMED").offsets() == without(27)
    assert Planned(tmp_path, mode="permissive").offsets() == without(27)
    rows = Planned(tmp_path, CORRUPT, mode="PERMISSIVE").rows()
    (bad,) = [row for row in rows if row["_corrupt_record"] is not None]
    assert sorted(row["offset"] for row in rows if row is not bad) == without(27)
    assert (bad["topic"], bad["partition"]) == ("orders", 0)
    assert f"byte {7 * BATCH_SIZE}" in bad["_corrupt_record"]


def test_the_column_for_damage_may_have_another_name(tmp_path: Path) -> None:
    flip(write_partition(tmp_path, segments=[3])[0], BATCH_SIZE + 100)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "wrong"}
    rows = Planned(tmp_path, "wrong string, offset long", **options).rows()
    assert [row["offset"] for row in rows if row["wrong"]] == [10]
    assert len(rows) == 21


@pytest.mark.parametrize("count", [1, 17, 60, BATCH_SIZE - 1])
def test_a_batch_that_is_being_written_is_not_there_yet(count: int, tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    path.write_bytes(path.read_bytes() + batch(60)[:count])
    assert Planned(tmp_path).offsets() == without()


def test_the_zeros_of_a_preallocated_segment_are_no_batches(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    path.write_bytes(path.read_bytes() + bytes(10_000))
    assert Planned(tmp_path).offsets() == without()


def test_a_segment_that_is_rolled_and_cut_short_is_damaged(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorruptRecordError, match="reaches past the end"):
        Planned(tmp_path).rows()
    assert Planned(tmp_path, mode="PERMISSIVE").offsets() == without(19)


def test_damage_in_the_active_segment_is_no_unfinished_write(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    flip(path, 5 * BATCH_SIZE + 9)
    with pytest.raises(CorruptRecordError):
        Planned(tmp_path).rows()
    assert Planned(tmp_path, mode="PERMISSIVE").offsets() == without(45)


def test_a_stream_that_cannot_be_opened(tmp_path: Path) -> None:
    broken = Batch(10, [Rec()], 9, GZIP, stream=b"no gzip at all").to_bytes()
    write_segment(tmp_path / "orders-0", 0, batch(0) + broken + batch(2))
    with pytest.raises(DecompressionError, match="GZIP"):
        Planned(tmp_path).rows()
    assert Planned(tmp_path, mode="PERMISSIVE").offsets() == without(1, count=3)


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(200)) + packer.flush()
    write_segment(tmp_path / "orders-0", 0, Batch(0, [Rec()], 9, GZIP, stream=bomb).to_bytes() + batch(1))
    with pytest.raises(DecompressionError):
        Planned(tmp_path).rows()
    assert Planned(tmp_path, mode="DROPMALFORMED").offsets() == list(range(10, 20))


def test_an_index_that_lies_leads_nowhere_else(tmp_path: Path) -> None:
    path = write_partition(tmp_path, segments=[60])[0].with_suffix(".index")
    honest = Planned(tmp_path, minPartitions=7)
    assert len(honest.tasks) >= 7
    entries = bytearray(path.read_bytes())
    for position in range(7, len(entries), 16):
        entries[position] ^= 1  # every second entry is a byte off
    path.write_bytes(entries)
    lied_to = Planned(tmp_path, minPartitions=7)
    assert 1 < len(lied_to.tasks) <= len(honest.tasks)
    assert lied_to.offsets() == honest.offsets() == without()
    path.write_bytes(bytes(len(entries)))
    assert Planned(tmp_path, minPartitions=7).offsets() == without()
    path.unlink()
    options = {"startingOffsets": '{"orders": {"0": 333}}', "endingOffsets": '{"orders": {"0": 444}}'}
    assert Planned(tmp_path, **options).offsets() == list(range(333, 444))


def test_damage_is_a_row_of_other_tables_too(tmp_path: Path) -> None:
    path = write_partition(tmp_path, segments=[3])[0]
    flip(path, BATCH_SIZE + 8, 0x80)
    with pytest.raises(LogstoreError):
        Planned(tmp_path, table="batches").rows()
    rows = Planned(tmp_path, "base_offset long, _corrupt_record string", table="batches", mode="PERMISSIVE").rows()
    assert [row["base_offset"] for row in rows] == [0, None, 20]


def test_a_table_of_another_kind_tells_damage_behind_its_rows(tmp_path: Path) -> None:
    path = write_partition(tmp_path, segments=[3])[0]
    flip(path, BATCH_SIZE + 100)
    with pytest.raises(CorruptRecordError, match=path.name):
        Planned(tmp_path, table="transactions").rows()
    assert Planned(tmp_path, table="transactions", mode="DROPMALFORMED").rows() == []
    schema = "producer_id long, _corrupt_record string"
    (row,) = Planned(tmp_path, schema, table="transactions", mode="PERMISSIVE").rows()
    assert f"byte {BATCH_SIZE}, offset 10" in row["_corrupt_record"]


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mode"):
        Planned(tmp_path, mode="IGNORE")


def test_a_segment_that_is_linked_from_elsewhere_is_no_empty_partition(tmp_path: Path) -> None:
    """A link that leads out of the data directory is not followed: that is no reason to give nothing."""
    (path,) = write_partition(tmp_path / "data", segments=[3])
    path.symlink_to(path.rename(tmp_path / path.name))
    for table in ("records", "topics", "aborted"):
        with pytest.raises(DataDirectoryError, match="not followed"):
            Planned(tmp_path / "data", table=table).rows()
    assert Planned(tmp_path / "data", mode="DROPMALFORMED").rows() == []


def test_a_partition_that_is_linked_from_elsewhere_is_told(tmp_path: Path) -> None:
    write_partition(tmp_path / "data")
    write_partition(tmp_path / "elsewhere", "payments-0")
    (tmp_path / "data" / "payments-0").symlink_to(tmp_path / "elsewhere" / "payments-0")
    with pytest.raises(DataDirectoryError, match="payments-0"):
        Planned(tmp_path / "data").rows()
    assert Planned(tmp_path / "data", subscribe="orders").offsets() == without()
