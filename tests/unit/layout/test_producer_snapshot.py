"""Producer snapshots: columns, checksum, and every way in which one is corrupt."""

from __future__ import annotations

import struct

import pytest

from logstore.errors import CorruptSnapshotError
from logstore.kernels.rules import decrement_sequence
from logstore.layout.producer_snapshot import parse_producer_snapshot

ENTRY = struct.pack(">qhiqiqiq", 7, 1, 2, 9, 0, 1000, 4, -1)


def test_an_entry_becomes_a_row() -> None:
    snapshot = parse_producer_snapshot(struct.pack(">hIi", 1, 2**32 - 1, 1) + ENTRY)
    row = [
        snapshot.producer_ids,
        snapshot.producer_epochs,
        snapshot.last_sequences,
        snapshot.last_offsets,
        snapshot.offset_deltas,
        snapshot.timestamps,
        snapshot.coordinator_epochs,
        snapshot.current_txn_first_offsets,
    ]
    assert [column.tolist() for column in row] == [[7], [1], [2], [9], [0], [1000], [4], [-1]]
    assert snapshot.stored_crc == 2**32 - 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "null"),
        (b"\0", "null"),
        (b"\0\2", "Snapshot contained an unknown file version 2"),
        (b"\xff\xff", "Snapshot contained an unknown file version -1"),
        (struct.pack(">hI", 1, 0), "null"),
        (struct.pack(">hIi", 1, 0, -1), "non-nullable field producerEntries was serialized as null"),
        (
            struct.pack(">hIi", 1, 0, 47) + ENTRY,
            "Tried to allocate a collection of size 47, but there are only 46 bytes remaining.",
        ),
        (struct.pack(">hIi", 1, 0, 2) + ENTRY, "null"),
        (struct.pack(">hIi", 1, 0, 1) + ENTRY[:-1], "null"),
    ],
)
def test_a_corrupt_snapshot_is_named_as_by_kafka(data: bytes, text: str) -> None:
    with pytest.raises(CorruptSnapshotError) as caught:
        parse_producer_snapshot(data)
    assert caught.value.message == f"Snapshot failed schema validation: {text}"


def test_another_checksum_is_named_with_both() -> None:
    snapshot = parse_producer_snapshot(struct.pack(">hIi", 1, 5, 0))
    snapshot.check_crc(5)
    with pytest.raises(CorruptSnapshotError) as caught:
        snapshot.check_crc(6)
    text = "Snapshot is corrupt (CRC is no longer valid). Stored crc: 5. Computed crc: 6"
    assert caught.value.message == text


@pytest.mark.parametrize(
    ("last_sequence", "offset_delta", "expected"),
    [(5, 0, 5), (0, 1, 2**31 - 1), (-1, 0, 2**31 - 1), (2**31 - 1, -(2**31), -1), (-(2**31), 2**31 - 1, -(2**31) + 1)],
)
def test_sequences_wrap_as_java_subtracts(last_sequence: int, offset_delta: int, expected: int) -> None:
    assert decrement_sequence(last_sequence, offset_delta) == expected
