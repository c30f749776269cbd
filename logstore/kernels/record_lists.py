"""Records of a call, from Python lists to the records of a batch, as long as there is nothing odd about them."""

from __future__ import annotations

from typing import Any

from ..layout.batch import HEADER_SIZE, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from . import append_slots as slot
from . import scan
from .encode_fields import put_varint
from .encode_size import body_size, sized, varint_size
from .kernel import called, device
from .primitives import add64
from .python_lists import IS_NONE, IS_OTHER, bytes_data, bytes_size, copy_bytes, item_at, item_int, list_size


@device
def _is_in_range(slots: Any, timestamp: int) -> bool:
    """Whether a record may have this timestamp (`LogValidator.validateTimestamp`)."""
    if timestamp == NO_TIMESTAMP or slots[slot.IS_LOG_APPEND_TIME] != 0:
        return timestamp >= NO_TIMESTAMP
    ahead = add64(timestamp, -slots[slot.NOW_MS])
    return (
        timestamp >= 0 and -ahead <= slots[slot.TIMESTAMP_BEFORE_MAX_MS] and ahead <= slots[slot.TIMESTAMP_AFTER_MAX_MS]
    )


@device
def _put_field(out: Any, o: int, item: Any, size: int, is_known: int) -> int:
    """Write an item with its size before it."""
    o = put_varint(out, o, size)
    return o if size < 1 else copy_bytes(bytes_data(item, is_known), size, out, o)


@device
def _put_records(
    slots: Any, keys: Any, values: Any, timestamps: Any, columns: Any, out: Any, has_keys: bool, has_timestamps: bool
) -> int:
    limit = min(slots[slot.OUT_CAPACITY], slots[slot.BATCH_SIZE_MAX])
    needs_keys, is_known = slots[slot.NEEDS_KEYS] != 0, slots[slot.IS_LAYOUT_KNOWN]
    timestamp = base_timestamp = max_timestamp = slots[slot.NOW_MS]
    if not has_timestamps and not _is_in_range(slots, timestamp):
        return 0
    key_size = -1
    o = HEADER_SIZE
    for row in range(slots[slot.RECORD_COUNT]):
        if has_timestamps:
            timestamp = item_int(timestamps, row)  # before an item is taken: it may run code of Python's
            if not _is_in_range(slots, timestamp):
                return 0
            base_timestamp = timestamp if row == 0 else base_timestamp
            max_timestamp = timestamp if row == 0 else max(max_timestamp, timestamp)
        key = value = item_at(values, row, is_known)
        value_size = bytes_size(value, is_known)
        if has_keys:
            key = item_at(keys, row, is_known)
            key_size = bytes_size(key, is_known)
        if key_size == IS_OTHER or value_size == IS_OTHER or (needs_keys and key_size < 0):
            return 0
        delta = add64(timestamp, -base_timestamp)
        body = body_size(delta, row, sized(key_size) + sized(value_size) + 1)
        if o + varint_size(body) + body > limit:
            return 0
        o = put_varint(out, o, body)
        out[o] = 0
        o = put_varint(out, put_varint(out, o + 1, delta), row)
        o = _put_field(out, _put_field(out, o, key, key_size, is_known), value, value_size, is_known)
        out[o] = 0
        o += 1
    columns[scan.BASE_TIMESTAMP] = base_timestamp
    columns[scan.MAX_TIMESTAMP] = max_timestamp
    return o


@called
def put_records(slots: Any, keys: Any, values: Any, timestamps: Any, columns: Any, out: Any) -> int:
    """Write the records behind the header; returns the position after them, 0 if that is not for here."""
    has_keys, has_timestamps = slots[slot.HAS_KEYS] != 0, slots[slot.HAS_TIMESTAMPS] != 0
    if not has_keys and not has_timestamps:  # a loop of its own, from which the compiler takes all that is not needed
        return _put_records(slots, keys, values, timestamps, columns, out, False, False)
    return _put_records(slots, keys, values, timestamps, columns, out, has_keys, has_timestamps)


@called
def take_call(
    slots: Any,
    values: Any,
    keys: Any,
    timestamps: Any,
    now_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: int,
) -> bool:
    """Put the call down; False if its lists are none."""
    slots[slot.RECORD_COUNT] = list_size(values)
    slots[slot.NOW_MS] = now_ms
    slots[slot.PRODUCER_ID] = producer_id
    slots[slot.PRODUCER_EPOCH] = producer_epoch
    slots[slot.BASE_SEQUENCE] = base_sequence
    slots[slot.ATTRIBUTES] = TRANSACTIONAL_FLAG if is_transactional != 0 else 0
    key_count, timestamp_count = list_size(keys), list_size(timestamps)
    slots[slot.HAS_KEYS] = key_count != IS_NONE
    slots[slot.HAS_TIMESTAMPS] = timestamp_count != IS_NONE
    return slots[slot.RECORD_COUNT] > 0 and key_count != IS_OTHER and timestamp_count != IS_OTHER
