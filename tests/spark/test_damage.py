"""A damaged segment is an error, or the rest of it, as `mode` says; what a writer has not finished is neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.errors import CorruptRecordError, DataDirectoryError, DecompressionError, LogstoreError, UsageError
from logstore.topics import consumer_offsets, transaction_state
from logstore.topics.consumer_offsets import CommittedOffset, OffsetKey
from logstore.topics.transaction_state import TransactionMetadata, TransactionState
from spark_dumps.source import KafkaSegments
from tests.spark.planned import Planned
from tests.spark.segment_files import batch, write_partition, write_segment
from tests.support.encoder import GZIP, SOME_TIME, Batch, Rec

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
    with pytest.raises(DecompressionError, match="gzip"):
        Planned(tmp_path).rows()
    assert Planned(tmp_path, mode="PERMISSIVE").offsets() == without(1, count=3)


@pytest.mark.slow
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


@pytest.mark.parametrize("table", ["records", "batches", "transactions", "topics", "group_offsets"])
def test_permissive_shows_a_column_for_damage(table: str, tmp_path: Path) -> None:
    path = write_partition(tmp_path, "__consumer_offsets-0" if table == "group_offsets" else "orders-0", [3])[0]
    flip(path, BATCH_SIZE + 100)
    source = KafkaSegments({"path": str(tmp_path), "table": table, "mode": "PERMISSIVE"})
    assert source.schema().names[-1] == "_corrupt_record"
    rows = Planned(tmp_path, table=table, mode="PERMISSIVE").rows()
    if table in ("records", "transactions", "group_offsets"):
        (error, *_) = [row["_corrupt_record"] for row in rows if row["_corrupt_record"] is not None]
        assert f"byte {BATCH_SIZE}, offset 10" in error
    for mode in ("FAILFAST", "DROPMALFORMED"):
        other = KafkaSegments({"path": str(tmp_path), "table": table, "mode": mode})
        assert other.schema().names == source.schema().names[:-1]


def test_a_stream_shows_a_column_for_damage(tmp_path: Path) -> None:
    source = KafkaSegments({"path": str(tmp_path), "mode": "PERMISSIVE"})
    assert source.schema().names[-1] == "_corrupt_record"
    assert source.streamReader(source.schema()) is not None


def commit_of(group: str, offset: int) -> Rec:
    key = consumer_offsets.encode_key(OffsetKey(group, "orders", 0))
    return Rec(key, consumer_offsets.encode_value(CommittedOffset(offset, -1, "", SOME_TIME, -1, None)))


def state_of(transactional_id: str, producer_id: int) -> Rec:
    state = TransactionMetadata(producer_id, 0, TransactionState.EMPTY, 60_000, (), -1, SOME_TIME, -1, -1, -1, 0)
    return Rec(transaction_state.encode_key(transactional_id), transaction_state.encode_value(state))


@pytest.mark.parametrize(
    ("table", "topic", "make", "column"),
    [
        ("group_offsets", "__consumer_offsets", commit_of, "group_id"),
        ("transaction_state", "__transaction_state", state_of, "transactional_id"),
    ],
)
@pytest.mark.parametrize("kind", ["key of nobody", "value of nobody", "no key", "checksum"])
def test_one_bad_record_does_not_hide_a_coordinators_partition(
    kind: str, table: str, topic: str, make: Callable[[str, int], Rec], column: str, tmp_path: Path
) -> None:
    good = make("bad", 0)
    bad = {
        "key of nobody": Rec(b"\x7f\xff", good.value),
        "value of nobody": Rec(good.key, b"\x7f\xff"),
        "no key": Rec(None, good.value),
    }.get(kind, good)
    batches = [Batch(number, [one]).to_bytes() for number, one in enumerate([make("a", 1), bad, make("b", 2)])]
    path = write_segment(tmp_path / f"{topic}-0", 0, b"".join(batches))
    if kind == "checksum":
        flip(path, len(batches[0]) + 70)
    with pytest.raises(LogstoreError):
        Planned(tmp_path, table=table).rows()
    rows = Planned(tmp_path, table=table, mode="PERMISSIVE").rows()
    assert [row[column] for row in rows if row["_corrupt_record"] is None] == ["a", "b"]
    (error,) = [row["_corrupt_record"] for row in rows if row["_corrupt_record"] is not None]
    assert "offset 1" in error
    assert [row[column] for row in Planned(tmp_path, table=table, mode="DROPMALFORMED").rows()] == ["a", "b"]


def test_the_last_batch_is_damaged_and_not_being_written(tmp_path: Path) -> None:
    path = write_partition(tmp_path, segments=[3])[0]
    flip(path, 2 * BATCH_SIZE + 100)
    rows = Planned(tmp_path, table="transactions", mode="PERMISSIVE").rows()
    assert [row["offset"] for row in rows if "offset" in row] == []
    (error,) = [row["_corrupt_record"] for row in rows]
    assert f"byte {2 * BATCH_SIZE}" in error


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
