"""A producer snapshot beside the producers that a log had at its offset.

What a broker may leave out: producers that expired. One whose last write is newer in time and in the log than that of
a producer that is still there cannot have. After an expiry a producer that comes again has no coordinator epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..folds.producer_state import ProducerEntry, ProducerState
from ..layout.producer_snapshot import ProducerSnapshot

_NONE = -1


class Row(NamedTuple):
    """What a snapshot keeps of a producer, in its order; timestamp in ms, -1 where there is nothing."""

    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def differences(
    state: ProducerState, snapshot: ProducerSnapshot, offset: int, known_from: int
) -> Iterator[tuple[str, str]]:
    """(expected, found) of each producer that `snapshot` has not as the log had it.

    Args:
        state: as of `offset`.
        known_from: what was written below this offset is not known.
    """
    stored = _stored(snapshot)
    live = {entry.producer_id: _row(entry) for entry in state}
    survivors = [row for row in stored.values() if row.current_txn_first_offset == _NONE]
    for producer_id, row in live.items():
        found = stored.get(producer_id)
        if found is None:
            if not _may_have_expired(row, survivors) and row.last_offset >= known_from:
                yield _text(producer_id, row), "none"
        elif not _agrees(row, found, known_from) and row.last_offset >= known_from:
            yield _text(producer_id, row), _text(producer_id, found)
    for producer_id, found in stored.items():
        if found.last_offset >= offset:
            yield f"last offsets below {offset}", _text(producer_id, found)
        elif producer_id not in live and found.last_offset >= known_from:
            yield f"no producer {producer_id}", _text(producer_id, found)


def _agrees(row: Row, found: Row, known_from: int) -> bool:
    if _NONE < row.current_txn_first_offset < known_from or _NONE < found.current_txn_first_offset < known_from:
        row = row._replace(current_txn_first_offset=found.current_txn_first_offset)
    if known_from and row.coordinator_epoch < found.coordinator_epoch:  # of a marker that was cleaned away or cut off
        row = row._replace(coordinator_epoch=found.coordinator_epoch)
    if found.coordinator_epoch == _NONE:
        row = row._replace(coordinator_epoch=_NONE)
    if found.last_offset == _NONE:  # it came again with a marker after it had expired
        row = row._replace(last_sequence=_NONE, last_offset=_NONE, offset_delta=0)
    return row == found


def _may_have_expired(row: Row, survivors: list[Row]) -> bool:
    if row.current_txn_first_offset != _NONE:
        return False
    return not any(
        _NONE < other.last_offset < row.last_offset and other.timestamp <= row.timestamp for other in survivors
    )


def _stored(snapshot: ProducerSnapshot) -> dict[int, Row]:
    columns = (
        snapshot.producer_epochs,
        snapshot.last_sequences,
        snapshot.last_offsets,
        snapshot.offset_deltas,
        snapshot.timestamps,
        snapshot.coordinator_epochs,
        snapshot.current_txn_first_offsets,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {producer_id: Row(*row) for producer_id, row in zip(snapshot.producer_ids.tolist(), rows, strict=True)}


def _row(entry: ProducerEntry) -> Row:
    last = entry.batches[-1] if entry.batches else None
    first_offset = entry.current_txn_first_offset
    return Row(
        entry.producer_epoch,
        _NONE if last is None else last.last_sequence,
        _NONE if last is None else last.last_offset,
        0 if last is None else last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        _NONE if first_offset is None else first_offset,
    )


def _text(producer_id: int, row: Row) -> str:
    return f"producer {producer_id}: " + ", ".join(f"{name} {value}" for name, value in row._asdict().items())
