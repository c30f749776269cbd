"""`<base offset>.txnindex`: aborted transactions whose marker is in the segment (`TransactionIndex`, KIP-98).

Entries of 34 bytes, big-endian, without gaps and without a header:

    int16 version              0; Kafka before 4.4 reads only the high byte, signed, and refuses one above 0
    int64 producer_id
    int64 first_offset         first offset of the transaction in this partition, perhaps in an earlier segment
    int64 last_offset          offset of the ABORT marker
    int64 last_stable_offset   the LSO as if only this transaction had just ended

`last_offset` ascends strictly. The first entry creates the file; a segment without aborts has none. Committed
transactions have no entry. Bytes behind the last whole entry are ignored.

A read of [fetch offset, upper bound) takes the entries with last_offset ≥ fetch offset and first_offset < upper bound,
up to and including the first entry with last_stable_offset ≥ upper bound: transactions of later entries began at or
behind that.

>>> data = bytes.fromhex("0000 0000000000000007 0000000000000003 0000000000000006 0000000000000007")
>>> index = parse_transaction_index(data, path="/d/0.txnindex")
>>> int(index.producer_ids[0]), int(index.first_offsets[0]), int(index.last_offsets[0])
(7, 3, 6)
>>> rows, complete = index.aborted_rows(fetch_offset=0, upper_bound_offset=7)
>>> rows.tolist(), complete
([0], True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptIndexError

CURRENT_VERSION = 0
ENTRY_SIZE = 34
ENTRY_DTYPE = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class TransactionIndex:
    """Entries of one `.txnindex`, up to the first one of an unknown version.

    Attributes:
        path: absolute path, for messages.
        version_size: bytes of each version that were looked at, 1 or 2.
        unknown_version: version of the first entry that is missing here; None if all are here.
        odd_size: bytes of the file behind the last whole entry.
        versions, producer_ids, …: int64, one per entry.
    """

    path: str
    version_size: int
    unknown_version: int | None
    odd_size: int
    versions: NDArray[np.int64]
    producer_ids: NDArray[np.int64]
    first_offsets: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    last_stable_offsets: NDArray[np.int64]

    @property
    def entry_count(self) -> int:
        """Number of aborted transactions."""
        return self.producer_ids.size

    def aborted_rows(self, *, fetch_offset: int, upper_bound_offset: int) -> tuple[NDArray[np.int64], bool]:
        """Find the rows that a read of [fetch_offset, upper_bound_offset) needs (`collectAbortedTxns`).

        Returns:
            int64 row numbers, ascending, and whether the search ends here; else it continues in the next segment.

        Raises:
            CorruptIndexError: the search reaches an entry of an unknown version.
        """
        decisive = np.flatnonzero(self.last_stable_offsets >= upper_bound_offset)
        if not decisive.size:
            self.require_all()
        end = int(decisive[0]) + 1 if decisive.size else self.entry_count
        wanted = (self.last_offsets[:end] >= fetch_offset) & (self.first_offsets[:end] < upper_bound_offset)
        return np.flatnonzero(wanted), bool(decisive.size)

    def sanity_check(self, start_offset: int) -> None:
        """Raise CorruptIndexError for the first entry whose last offset is below the base offset."""
        low = np.flatnonzero(self.last_offsets < start_offset)
        if low.size:
            raise CorruptIndexError(
                f"Last offset of aborted transaction {self._entry_text(int(low[0]))} in index {self.path} is "
                f"less than start offset {start_offset}"
            )

        self.require_all()

    def require_all(self) -> None:
        """Raise CorruptIndexError with Kafka's message, a `KafkaException` there, if an entry's version is unknown."""
        if self.unknown_version is not None:
            known = "supported version range is 0 to 0" if self.version_size == 2 else "current version is 0"
            raise CorruptIndexError(
                f"Unexpected aborted transaction version {self.unknown_version} in transaction index {self.path}, "
                f"{known}",
                java_class="org.apache.kafka.common.KafkaException",
            )

    def _entry_text(self, row: int) -> str:
        return (
            f"AbortedTxn(version={self.versions[row]}, producerId={self.producer_ids[row]}, "
            f"firstOffset={self.first_offsets[row]}, lastOffset={self.last_offsets[row]}, "
            f"lastStableOffset={self.last_stable_offsets[row]})"
        )


def parse_transaction_index(data: bytes | NDArray[np.uint8], *, path: str, version_size: int = 2) -> TransactionIndex:
    """Return the entries in `data`, the whole file; raises nothing, see `TransactionIndex.require_all`.

    Args:
        version_size: `KafkaVersion.transaction_index_version_size`.
    """
    entries = np.frombuffer(data, dtype=ENTRY_DTYPE, count=len(data) // ENTRY_SIZE)
    columns = [entries[name].astype(np.int64) for name in ENTRY_DTYPE.names or ()]
    versions = columns[0] = columns[0] if version_size == 2 else columns[0] >> 8
    unknown = np.flatnonzero(versions != CURRENT_VERSION if version_size == 2 else versions > CURRENT_VERSION)
    unknown_version = None
    if unknown.size:
        unknown_version = int(versions[unknown[0]])
        columns = [column[: unknown[0]] for column in columns]
    return TransactionIndex(path, version_size, unknown_version, len(data) % ENTRY_SIZE, *columns)
