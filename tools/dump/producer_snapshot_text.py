"""The text of a `.snapshot` of producer state (`DumpLogSegments.dumpProducerIdSnapshot`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from logstore.disk.side_files import read_producer_snapshot
from logstore.errors import CorruptSnapshotError
from logstore.layout.producer_snapshot import ProducerSnapshot, first_sequence

from .findings import Findings


def dump_producer_snapshot(path: str, options: object, out: Callable[[bytes], None], findings: Findings) -> None:
    """Print one line per producer, in file order; no option says anything about this file.

    Of a damaged file only the message is printed, through `findings.immediate`, and dumping goes on.

    Raises:
        DataDirectoryError: the file cannot be read; what the real tool dies of.
    """
    try:
        snapshot = read_producer_snapshot(path)
    except CorruptSnapshotError as error:
        findings.immediate(error.message or "")
        return
    out("".join(_lines(snapshot)).encode())


def _lines(snapshot: ProducerSnapshot) -> list[str]:
    columns = np.stack(
        [
            snapshot.producer_ids,
            snapshot.producer_epochs,
            snapshot.coordinator_epochs,
            snapshot.current_txn_first_offsets,
            snapshot.timestamps,
            snapshot.last_offsets,
            snapshot.last_sequences,
            snapshot.offset_deltas,
        ],
        axis=1,
    )
    return [_line(*row) for row in columns.tolist()]


def _line(
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
    timestamp: int,
    last_offset: int,
    last_sequence: int,
    offset_delta: int,
) -> str:
    first_offset = (
        f"OptionalLong[{current_txn_first_offset}]" if current_txn_first_offset >= 0 else "OptionalLong.empty"
    )
    text = (
        f"producerId: {producer_id} producerEpoch: {producer_epoch} coordinatorEpoch: {coordinator_epoch} "
        f"currentTxnFirstOffset: {first_offset} lastTimestamp: {timestamp}"
    )
    if last_offset >= 0:
        text += (
            f" firstSequence: {first_sequence(last_sequence, offset_delta)} lastSequence: {last_sequence} "
            f"lastOffset: {last_offset} offsetDelta: {offset_delta} timestamp: {timestamp}"
        )
    return text + "\n"
