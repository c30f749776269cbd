"""`<offset>.snapshot`: state of a partition's producers before the offset in its name.

Source: `ProducerStateManager.readSnapshot` and the message schema `ProducerSnapshot`. Big-endian, not a flexible
version:

    int16  version    1; Kafka reads no other
    uint32 crc        CRC-32C of everything behind it, from byte 6 to the end of the file
    int32  count
    count entries of 46 bytes:
      int64 producer_id
      int16 producer_epoch
      int32 last_sequence              -1 without a batch
      int64 last_offset                -1 without a batch
      int32 offset_delta               last offset minus first offset of that batch
      int64 timestamp                  of the producer's last batch or marker
      int32 coordinator_epoch          of its last marker; -1 without one
      int64 current_txn_first_offset   -1 without an open transaction

Of the five batches that a broker keeps in memory the file has only the last. Any `last_offset` < 0 means no batch, and
any `current_txn_first_offset` < 0 no open transaction. The order of entries has no meaning: ours
are sorted by producer id, a broker's are in the order of Java's HashMap. The checksum covers bytes behind the entries,
which are ignored otherwise. The reader in `logstore.disk` verifies it.

>>> snapshot = parse_producer_snapshot(bytes.fromhex(
...     "0001 c4077e0b 00000003"
...     "0000000000000007 0001 00000002 0000000000000007 00000000 0000018bcfe56828 00000004 ffffffffffffffff"
...     "0000000000000008 0000 00000005 0000000000000005 00000000 0000018bcfe5680c ffffffff ffffffffffffffff"
...     "0000000000000009 0000 00000000 0000000000000008 00000000 0000018bcfe56829 00000005 ffffffffffffffff"
... ))
>>> snapshot.producer_ids.tolist(), snapshot.last_sequences.tolist(), int(snapshot.timestamps[0])
([7, 8, 9], [2, 5, 0], 1700000000040)
>>> snapshot.check_crc(0xC4077E0B)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptSnapshotError

VERSION = 1
VERSION_POSITION = 0
CRC_POSITION = 2
ENTRY_COUNT_POSITION = 6
CRC_START_POSITION = ENTRY_COUNT_POSITION
HEADER_SIZE = 10
ENTRY_SIZE = 46
ENTRY_DTYPE = np.dtype(
    [
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("current_txn_first_offset", ">i8"),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class ProducerSnapshot:
    """Entries of one `.snapshot`, in file order: int64 columns of equal length, in the order of ENTRY_DTYPE."""

    stored_crc: int
    producer_ids: NDArray[np.int64]
    producer_epochs: NDArray[np.int64]
    last_sequences: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    offset_deltas: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    coordinator_epochs: NDArray[np.int64]
    current_txn_first_offsets: NDArray[np.int64]

    @property
    def entry_count(self) -> int:
        """Number of producers."""
        return self.producer_ids.size

    def check_crc(self, computed_crc: int) -> None:
        """Raise CorruptSnapshotError unless the CRC of the bytes from `CRC_START_POSITION` is the stored one."""
        if computed_crc != self.stored_crc:
            raise CorruptSnapshotError(
                f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {self.stored_crc}. "
                f"Computed crc: {computed_crc}",
                expected=self.stored_crc,
                found=computed_crc,
            )


def parse_producer_snapshot(data: bytes) -> ProducerSnapshot:
    """Return the entries in `data`, the whole file; `ProducerSnapshot.check_crc` verifies the checksum.

    Raises:
        CorruptSnapshotError: unknown version, too short, or an impossible count; Kafka's messages, in Kafka's order.
    """
    version = _unpack(data, VERSION_POSITION, 2, signed=True)
    if version != VERSION:
        raise _schema_error(f"Snapshot contained an unknown file version {version}")
    stored_crc = _unpack(data, CRC_POSITION, 4, signed=False)
    entry_count = _unpack(data, ENTRY_COUNT_POSITION, 4, signed=True)
    if entry_count < 0:
        raise _schema_error("non-nullable field producerEntries was serialized as null")
    remaining = len(data) - HEADER_SIZE
    if entry_count > remaining:
        raise _schema_error(
            f"Tried to allocate a collection of size {entry_count}, but there are only {remaining} bytes remaining."
        )
    if entry_count * ENTRY_SIZE > remaining:
        raise _buffer_underflow()
    entries = np.frombuffer(data, dtype=ENTRY_DTYPE, count=entry_count, offset=HEADER_SIZE)
    return ProducerSnapshot(stored_crc, *(entries[name].astype(np.int64) for name in ENTRY_DTYPE.fields or ()))


def _unpack(data: bytes, position: int, size: int, *, signed: bool) -> int:
    if position + size > len(data):
        raise _buffer_underflow()
    return int.from_bytes(data[position : position + size], "big", signed=signed)


def _buffer_underflow() -> CorruptSnapshotError:
    """Return the error with Kafka's message, which ends in "null": BufferUnderflowException has no message."""
    return _schema_error("null")


def _schema_error(text: str) -> CorruptSnapshotError:
    return CorruptSnapshotError(f"Snapshot failed schema validation: {text}")
