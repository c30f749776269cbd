"""A leader's append of records, the plain way: the batch, or that it is not for the quick way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.encoder import LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec


@dataclass
class Topic:
    """What the configuration asks for."""

    batch_size_max: int = 10_000
    needs_keys: bool = False
    is_log_append_time: bool = False
    before_max_ms: int = 2**62
    after_max_ms: int = 2**62
    segment_size_max: int = 2**20
    age_max_ms: int = 2**40
    created_ms: int = 0


@dataclass
class Log:
    """What was appended: per producer its epoch, the next sequence, and whether its transaction is open."""

    end_offset: int = 0
    size: int = 0
    first_timestamp: int = -1
    producers: dict[int, tuple[int, int, bool]] = field(default_factory=dict)


@dataclass
class Call:
    """One append, of items that may be none that a record has."""

    values: Sequence[Any]
    keys: Sequence[Any] | None = None
    timestamps: Sequence[Any] | None = None
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False
    now_ms: int = 1000
    headers: Sequence[Sequence[tuple[bytes, bytes | None]]] | None = None


def prepared(topic: Topic, log: Log, call: Call, leader_epoch: int) -> bytes | None:
    """The batch to be written; None: nothing is."""
    data = batch_of(topic, log, call, leader_epoch)
    if data is None or not _has_room(topic, log, data, call.now_ms) or not _follows(log, call):
        return None
    return data


def batch_of(topic: Topic, log: Log, call: Call, leader_epoch: int) -> bytes | None:
    """The batch at the log's end; None if a record cannot be in it."""
    count = len(call.values)
    keys = [None] * count if call.keys is None else list(call.keys)
    times = [call.now_ms] * count if call.timestamps is None else list(call.timestamps)
    headers = [()] * count if call.headers is None else list(call.headers)
    if not count or len(keys) != count or len(times) != count or len(headers) != count:
        return None
    records = []
    for row, (key, value, time) in enumerate(zip(keys, call.values, times, strict=False)):
        if not isinstance(key, bytes | None) or not isinstance(value, bytes | None) or not isinstance(time, int):
            return None
        if (topic.needs_keys and key is None) or not _is_timely(topic, time, call.now_ms):
            return None
        records.append(Rec(key, value, headers[row], offset_delta=row, timestamp_delta=time - times[0]))
    flags = (TRANSACTIONAL if call.is_transactional else 0) | (LOG_APPEND_TIME if topic.is_log_append_time else 0)
    batch = Batch(
        log.end_offset,
        records,
        last_offset_delta=count - 1,
        flags=flags,
        base_timestamp=times[0],
        max_timestamp=call.now_ms if topic.is_log_append_time else max(times[:count]),
        producer_id=call.producer_id,
        producer_epoch=call.epoch,
        base_sequence=call.sequence,
        leader_epoch=leader_epoch,
    )
    data = batch.to_bytes()
    return data if len(data) <= topic.batch_size_max else None


def committed(log: Log, call: Call, data: bytes, max_timestamp: int) -> None:
    """The batch was written."""
    if call.producer_id >= 0:
        log.producers[call.producer_id] = (call.epoch, call.sequence + len(call.values), call.is_transactional)
    if log.size == 0:
        log.first_timestamp = max_timestamp
    log.size += len(data)
    log.end_offset += len(call.values)


def _is_timely(topic: Topic, time: int, now_ms: int) -> bool:
    if time >= 2**63:
        return False
    if time == -1 or topic.is_log_append_time:
        return time >= -1
    return time >= 0 and now_ms - time <= topic.before_max_ms and time - now_ms <= topic.after_max_ms


def _has_room(topic: Topic, log: Log, data: bytes, now_ms: int) -> bool:
    max_timestamp = int.from_bytes(data[35:43], "big", signed=True)
    waited_ms = max_timestamp - log.first_timestamp if log.first_timestamp >= 0 else now_ms - topic.created_ms
    return log.size + len(data) <= topic.segment_size_max and (log.size == 0 or waited_ms <= topic.age_max_ms)


def _follows(log: Log, call: Call) -> bool:
    if call.producer_id < 0:
        return True
    if call.sequence < 0:
        return False
    epoch, next_sequence, is_open = log.producers.get(call.producer_id, (-1, call.sequence, False))
    if epoch >= 0 and (call.epoch < epoch or (call.epoch > epoch and call.sequence != 0)):
        return False
    if call.epoch == epoch and call.sequence != next_sequence:
        return False
    return call.is_transactional or not is_open
