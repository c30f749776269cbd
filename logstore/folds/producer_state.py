"""Producers of a partition: what identifies a duplicate batch, a sequence gap or an old epoch (KIP-98, KIP-890).

    state = ProducerState("orders-0")
    state.load(snapshot, offset, now_ms)          # the newest usable `.snapshot`, or state.start_at(log_start_offset)
    …                                             # steps: see `producer_update`
    state.map_end_offset                          # the state covers the log up to here; names the snapshot
    state.to_snapshot_bytes()                     # what Kafka would write, sorted by producer id
    state.transactions                            # undecided ones, and the last stable offset: see `open_transactions`
    state.verification                            # see `verification`

For each producer: its epoch, the coordinator epoch of its last marker, the time of its last batch or marker, the first
offset of its open transaction, and its last five batches (`ProducerStateManager`, `ProducerStateEntry`). A snapshot has
only the last of the five. A step costs the same however many producers there are.

>>> state = ProducerState("orders-0")
>>> state.start_at(5)
>>> state.map_end_offset, len(state), state.to_snapshot_bytes().hex()
(5, 0, '000148674bc700000000')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..errors import InvalidProducerEpochError
from ..kernels.fold import producer_entries as fields
from ..kernels.rules import decrement_sequence
from ..kernels.scan.crc32c import crc32c_range
from ..layout import producer_snapshot
from ..layout.batch import TRANSACTIONAL_FLAG
from ..layout.producer_snapshot import ProducerSnapshot
from .open_transactions import OpenTransactions
from .producer_buffers import ProducerBuffers
from .verification import VerificationGuard, VerificationState, VerificationStates

PRODUCER_ID_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """One of the last batches of a producer; timestamp in ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """The state of one producer (`ProducerStateEntry`); -1 for what is unknown, batches oldest first."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    current_txn_first_offset: int | None
    batches: tuple[BatchMetadata, ...]


class ProducerState:
    """All producers of the partition; errors name it by `topic_partition`.

    Attributes:
        expiration_ms: how long after its last batch a producer without open transaction is forgotten.
        requires_verification: `transaction.partition.verification.enable`.
        verification: producers whose next transaction is being verified.
        buffers: the arrays, for the steps of `producer_update`.
    """

    __slots__ = ("buffers", "expiration_ms", "requires_verification", "topic_partition", "verification")

    def __init__(
        self,
        topic_partition: str,
        *,
        expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        requires_verification: bool = True,
    ) -> None:
        self.topic_partition = topic_partition
        self.expiration_ms = expiration_ms
        self.requires_verification = requires_verification
        self.verification = VerificationStates()
        self.buffers = ProducerBuffers()

    def __len__(self) -> int:
        return len(self.buffers.entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        """Iterate in insertion order."""
        return map(_entry_of, self.buffers.entries.tolist())

    @property
    def transactions(self) -> OpenTransactions:
        """The undecided transactions."""
        return self.buffers.transactions

    @property
    def map_end_offset(self) -> int:
        """The state covers everything below this offset (`mapEndOffset`)."""
        return self.buffers.struct.map_end_offset

    @map_end_offset.setter
    def map_end_offset(self, offset: int) -> None:
        """Note that everything below `offset` is covered (`updateMapEndOffset`)."""
        self.buffers.struct.map_end_offset = offset

    @property
    def has_expiring(self) -> bool:
        """True if `drop_expired` has anything to look at."""
        return bool(self.buffers.struct.entry_count or len(self.verification))

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Return the state of a producer; None if it is unknown."""
        row = self.buffers.find(producer_id)
        return None if row is None else _entry_of(self.buffers.entries[row].tolist())

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int, since_offset: int = 0) -> bool:
        """Return whether an open transaction of this epoch began at or above an offset (`hasOngoingTransaction`)."""
        row = self.buffers.find(producer_id)
        if row is None:
            return False
        entry = self.buffers.entries[row]
        first_offset, epoch = entry[fields.TXN_FIRST_OFFSET], entry[fields.PRODUCER_EPOCH]
        return bool(first_offset != fields.NONE and first_offset >= since_offset and epoch == producer_epoch)

    def begin_verification(
        self, producer_id: int, *, sequence: int, producer_epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Return a guard for a transactional batch, None if one is open (`maybeStartTransactionVerification`).

        Raises InvalidProducerEpochError if a newer epoch is known.
        """
        entry = self.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"Epoch of producer {producer_id} is {producer_epoch}, which is smaller than the last seen epoch "
                f"{entry.producer_epoch}"
            )
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return None
        return self.verification.begin(
            producer_id,
            sequence=sequence,
            epoch=producer_epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
            end_offset=self.map_end_offset,
        )

    def verification_of(self, producer_id: int) -> VerificationState | None:
        """Return the verification of a producer's next transaction; None if none is under way.

        A verification that began before the open transaction was used up by its first batch, though an interrupt kept
        that from being noted. A transaction that a truncation reopened is older than the verification.
        """
        state = self.verification.get(producer_id)
        if state is None or not self.has_ongoing_transaction(producer_id, state.epoch, state.end_offset):
            return state
        self.verification.accepted(producer_id, state.epoch, TRANSACTIONAL_FLAG)
        return None

    def clear(self) -> None:
        """Forget producers and transactions (`truncateAndReload`, before it loads)."""
        self.buffers.keep(np.zeros(len(self), np.bool_))
        self.transactions.clear()

    def start_at(self, offset: int) -> None:
        """Forget everything; the state covers the log up to `offset` (`truncateFullyAndStartAt`)."""
        self.clear()
        self.map_end_offset = offset

    def load(self, snapshot: ProducerSnapshot, offset: int, now_ms: int | None) -> None:
        """Replace all producers by the entries of the snapshot at `offset` (`loadFromSnapshot`).

        Args:
            now_ms: producers expired by then are left out, unless they have an open transaction; None keeps all.
        """
        self.clear()
        self.map_end_offset = offset
        if not snapshot.producer_ids.size:
            return
        is_open = snapshot.current_txn_first_offsets >= 0
        is_wanted = np.ones_like(is_open)
        if now_ms is not None:
            is_wanted = is_open | ~self._is_expired(snapshot.timestamps, now_ms)
        rows = _rows_of(snapshot, is_wanted)
        self.buffers.put(rows)
        self.transactions.load(snapshot.current_txn_first_offsets[is_open], snapshot.producer_ids[is_open])

    def drop_expired(self, now_ms: int) -> None:
        """Forget producers that expired by `now_ms` and have no open transaction (`removeExpiredProducers`)."""
        entries = self.buffers.entries
        is_open = entries[:, fields.TXN_FIRST_OFFSET] != fields.NONE
        self.buffers.keep(is_open | ~self._is_expired(entries[:, fields.LAST_TIMESTAMP], now_ms))
        self.verification.drop_expired(now_ms, self.expiration_ms)

    def raise_log_start_offset(self, log_start_offset: int) -> None:
        """Note the later log start; the producers stay (`onLogStartOffsetIncremented`)."""
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    def to_snapshot_bytes(self) -> bytes:
        """Return the bytes of the `.snapshot` at `map_end_offset`, sorted by producer id (`writeSnapshot`)."""
        return _snapshot_bytes(self.buffers.entries)

    def _is_expired(self, timestamps: Int64Array, now_ms: int) -> npt.NDArray[np.bool_]:
        return np.int64(now_ms) - timestamps >= self.expiration_ms


def _entry_of(row: list[int]) -> ProducerEntry:
    start, count = row[fields.BATCH_START], row[fields.BATCH_COUNT]
    places = [fields.BATCHES + (start + age) % fields.BATCH_COUNT_MAX * fields.BATCH_WIDTH for age in range(count)]
    first_offset = row[fields.TXN_FIRST_OFFSET]
    return ProducerEntry(
        producer_id=row[fields.PRODUCER_ID],
        producer_epoch=row[fields.PRODUCER_EPOCH],
        coordinator_epoch=row[fields.COORDINATOR_EPOCH],
        last_timestamp=row[fields.LAST_TIMESTAMP],
        current_txn_first_offset=None if first_offset == fields.NONE else first_offset,
        batches=tuple(BatchMetadata(*row[place : place + fields.BATCH_WIDTH]) for place in places),
    )


def _rows_of(snapshot: ProducerSnapshot, is_wanted: npt.NDArray[np.bool_]) -> Int64Array:
    """Return int64[n, ENTRY_WIDTH]: the wanted entries, sorted by producer id; the last one of an id counts."""
    wanted = np.flatnonzero(is_wanted)[::-1]
    _, last = np.unique(snapshot.producer_ids[wanted], return_index=True)
    wanted = wanted[last]
    rows = np.zeros((wanted.size, fields.ENTRY_WIDTH), np.int64)
    first_offsets = snapshot.current_txn_first_offsets[wanted]
    rows[:, fields.PRODUCER_ID] = snapshot.producer_ids[wanted]
    rows[:, fields.PRODUCER_EPOCH] = snapshot.producer_epochs[wanted]
    rows[:, fields.COORDINATOR_EPOCH] = snapshot.coordinator_epochs[wanted]
    rows[:, fields.LAST_TIMESTAMP] = snapshot.timestamps[wanted]
    rows[:, fields.TXN_FIRST_OFFSET] = np.where(first_offsets >= 0, first_offsets, fields.NONE)
    rows[:, fields.BATCH_COUNT] = snapshot.last_offsets[wanted] >= 0
    rows[:, fields.BATCHES + fields.LAST_SEQUENCE] = snapshot.last_sequences[wanted]
    rows[:, fields.BATCHES + fields.LAST_OFFSET] = snapshot.last_offsets[wanted]
    rows[:, fields.BATCHES + fields.OFFSET_DELTA] = snapshot.offset_deltas[wanted]
    rows[:, fields.BATCHES + fields.TIMESTAMP] = snapshot.timestamps[wanted]
    return rows


def newest_batches(rows: Int64Array) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return the last batch of each entry, int64[n, BATCH_WIDTH], and whether there is one, bool[n]."""
    batches = rows[:, fields.BATCHES :].reshape(len(rows), fields.BATCH_COUNT_MAX, fields.BATCH_WIDTH)
    newest = (rows[:, fields.BATCH_START] + rows[:, fields.BATCH_COUNT] - 1) % fields.BATCH_COUNT_MAX
    return batches[np.arange(len(rows)), newest], rows[:, fields.BATCH_COUNT] > 0


def _snapshot_bytes(rows: Int64Array) -> bytes:
    """Return the file with these entries, int64[n, ENTRY_WIDTH], sorted by producer id."""
    producer_ids = rows[:, fields.PRODUCER_ID]
    if (producer_ids[1:] < producer_ids[:-1]).any():
        rows = rows[np.argsort(producer_ids)]
    # filled in place: with many producers the pages of each further copy cost more than the rest
    content = np.empty(producer_snapshot.HEADER_SIZE + len(rows) * producer_snapshot.ENTRY_SIZE, np.uint8)
    stored = content[producer_snapshot.HEADER_SIZE :].view(producer_snapshot.ENTRY_DTYPE)
    batch, has_batch = newest_batches(rows)
    first_offsets = rows[:, fields.TXN_FIRST_OFFSET]
    stored["producer_id"] = rows[:, fields.PRODUCER_ID]
    stored["producer_epoch"] = rows[:, fields.PRODUCER_EPOCH]
    stored["last_sequence"] = np.where(has_batch, batch[:, fields.LAST_SEQUENCE], -1)
    stored["last_offset"] = np.where(has_batch, batch[:, fields.LAST_OFFSET], -1)
    stored["offset_delta"] = np.where(has_batch, batch[:, fields.OFFSET_DELTA], 0)
    stored["timestamp"] = rows[:, fields.LAST_TIMESTAMP]
    stored["coordinator_epoch"] = rows[:, fields.COORDINATOR_EPOCH]
    stored["current_txn_first_offset"] = np.where(first_offsets == fields.NONE, -1, first_offsets)
    content[: producer_snapshot.CRC_POSITION].view(">i2")[0] = producer_snapshot.VERSION
    content[producer_snapshot.ENTRY_COUNT_POSITION : producer_snapshot.HEADER_SIZE].view(">i4")[0] = len(rows)
    crc = crc32c_range(content, producer_snapshot.CRC_START_POSITION, content.size)
    content[producer_snapshot.CRC_POSITION : producer_snapshot.ENTRY_COUNT_POSITION].view(">u4")[0] = crc
    return content.tobytes()
