"""Tables of the coordinators' topics: what a tombstone removes, and what damage leaves."""

from __future__ import annotations

from pathlib import Path

from logstore.topics.consumer_offsets import CommittedOffset, OffsetKey, encode_key, encode_value
from tests.spark.planned import Planned
from tests.spark.segment_files import write_segment
from tests.support.encoder import TRANSACTIONAL, Batch, Rec


def commit(offset: int, group_id: str, committed: int | None, producer_id: int = -1) -> bytes:
    """A record of a committed offset, or a tombstone of one."""
    key = encode_key(OffsetKey(group_id, "orders", 0))
    value = None if committed is None else encode_value(CommittedOffset(committed, -1, "", 0, -1, None))
    is_of_producer = producer_id >= 0
    return Batch(
        offset,
        [Rec(key, value)],
        flags=TRANSACTIONAL if is_of_producer else 0,
        producer_id=producer_id,
        producer_epoch=0 if is_of_producer else -1,
        base_sequence=0 if is_of_producer else -1,
    ).to_bytes()


def offsets(root: Path, **options: str) -> list[tuple[str, int, bool]]:
    rows = Planned(root, "group_id string, offset long, is_pending bool", table="group_offsets", **options).rows()
    return [(row["group_id"], row["offset"], row["is_pending"]) for row in rows]


def test_a_tombstone_removes_pending_offsets_too(tmp_path: Path) -> None:
    records = [commit(0, "a", 5), commit(1, "a", 6, 9), commit(2, "b", 7, 9), commit(3, "a", None)]
    write_segment(tmp_path / "__consumer_offsets-0", 0, b"".join(records))
    assert offsets(tmp_path) == [("b", 7, True)]


def test_offsets_before_damage_are_rows(tmp_path: Path) -> None:
    damaged = bytearray(commit(1, "b", 6))
    damaged[-1] ^= 1
    path = write_segment(tmp_path / "__consumer_offsets-0", 0, commit(0, "a", 5) + damaged)
    assert offsets(tmp_path, mode="DROPMALFORMED") == [("a", 5, False)]
    schema = "group_id string, _corrupt_record string"
    rows = Planned(tmp_path, schema, table="group_offsets", mode="PERMISSIVE").rows()
    assert [row["group_id"] for row in rows] == ["a", None]
    assert path.name in rows[1]["_corrupt_record"]
