"""A coordinator's marker at a log's end, the plain way: the batch, or that it is not for the quick way."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tests.naive.append import Log, Topic, _has_room
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec

MARKER_SIZE = 78
EPOCH_MAX = 32767


@dataclass
class Coordinators:
    """By producer id: the epoch of the coordinator of its last marker."""

    epochs: dict[int, int] = field(default_factory=dict)


@dataclass
class Marker:
    """One append."""

    producer_id: int
    epoch: int
    is_commit: bool
    coordinator_epoch: int
    version: int
    now_ms: int = 1000


def prepared_marker(topic: Topic, log: Log, known: Coordinators, call: Marker, leader_epoch: int) -> bytes | None:
    """The batch to be written; None: nothing is."""
    flags = CONTROL | TRANSACTIONAL | (LOG_APPEND_TIME if topic.is_log_append_time else 0)
    key, value = struct.pack(">hh", 0, int(call.is_commit)), struct.pack(">hi", 0, call.coordinator_epoch)
    data = Batch(
        log.end_offset,
        [Rec(key, value)],
        flags=flags,
        base_timestamp=call.now_ms,
        max_timestamp=call.now_ms,
        producer_id=call.producer_id,
        producer_epoch=call.epoch,
        leader_epoch=leader_epoch,
    ).to_bytes()
    assert len(data) == MARKER_SIZE
    if call.now_ms < 0 or topic.batch_size_max < MARKER_SIZE or not _has_room(topic, log, data, call.now_ms):
        return None
    epoch, _, is_open = log.producers.get(call.producer_id, (-1, 0, False))
    is_repeated = call.version == 2 and call.epoch == epoch and (not is_open or epoch == EPOCH_MAX)
    is_new = call.epoch > epoch or (call.version < 2 and call.epoch == epoch)
    if not (is_new or is_repeated) or known.epochs.get(call.producer_id, -1) > call.coordinator_epoch:
        return None
    return data


def committed_marker(log: Log, known: Coordinators, call: Marker) -> None:
    """The marker was written: sequences go on, or begin anew with another epoch."""
    epoch, next_sequence, _ = log.producers.get(call.producer_id, (-1, 0, False))
    log.producers[call.producer_id] = (call.epoch, next_sequence if call.epoch == epoch else 0, False)
    known.epochs[call.producer_id] = call.coordinator_epoch
    if log.size == 0:
        log.first_timestamp = call.now_ms
    log.size += MARKER_SIZE
    log.end_offset += 1
