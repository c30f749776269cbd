"""Records as objects.

Keys and values are strings when they are UTF-8, else `keyBase64` and `valueBase64`; null is null. That holds for
headers too, which are a list, because a key may come twice. What the decoder of an internal topic makes of a key or
value stands there as an object.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from logstore.columns.legacy import LegacyRecord
from logstore.columns.record_table import RecordTable
from logstore.layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from logstore.model import TimestampType

from .json_control import control_object
from .legacy_text import legacy_texts
from .options import DumpOptions


def record_object(chunk: RecordTable, index: int, attributes: int, options: DumpOptions) -> dict[str, Any]:
    """A record of a v2 batch with these attributes."""
    is_control = bool(attributes & CONTROL_FLAG)
    key, value = chunk.key(index), chunk.value(index)
    item: dict[str, Any] = {"kind": "record"}
    if not options.skip_record_metadata:
        item |= _metadata(chunk, index, attributes)
        if is_control:
            item["control"] = control_object(key, value)
    if options.print_contents and not is_control:
        item |= _contents(int(chunk.offset[index]), key, value, options)
    return item


def legacy_record_object(record: LegacyRecord, timestamp_type: TimestampType, options: DumpOptions) -> dict[str, Any]:
    """A v0/v1 record; its timestamp type is that of the entry in the file."""
    item: dict[str, Any] = {"kind": "record"}
    if not options.skip_record_metadata:
        item |= {
            "offset": record.offset,
            "timestampType": timestamp_type.kafka_name,
            "timestamp": record.timestamp,
            "keySize": record.key_size,
            "valueSize": record.value_size,
            "crc": record.crc,
            "isValid": record.is_valid,
        }
    if options.print_contents and options.needs_python:
        key_text, value_text = legacy_texts(record, options)
        item |= {"key": _decoded(key_text), "value": _decoded(value_text)}
    elif options.print_contents:
        item |= _bytes("key", record.key) | _bytes("value", record.value)
    return item


def _metadata(chunk: RecordTable, index: int, attributes: int) -> dict[str, Any]:
    timestamp_type = TimestampType(int(bool(attributes & LOG_APPEND_TIME_FLAG)))
    return {
        "offset": int(chunk.offset[index]),
        "timestampType": timestamp_type.kafka_name,
        "timestamp": int(chunk.timestamp[index]),
        "keySize": int(chunk.key_size[index]),
        "valueSize": int(chunk.value_size[index]),
        "sequence": int(chunk.sequence[index]),
        "headers": [_bytes("key", key) | _bytes("value", value) for key, value in chunk.headers(index)],
    }


def _contents(offset: int, key: bytes | None, value: bytes | None, options: DumpOptions) -> dict[str, Any]:
    if not options.needs_python:
        return _bytes("key", key) | _bytes("value", value)
    if options.parser is not None:
        key_text, value_text = options.parser(offset, key, value)
        return {"key": _decoded(key_text), "value": _decoded(value_text)}
    return {
        "key": None if key is None else options.key_decoder(key),
        "value": None if value is None else options.value_decoder(value),
    }


def _decoded(text: str | None) -> Any:
    return json.loads(text) if text is not None and text.startswith("{") else text


def _bytes(name: str, content: bytes | memoryview | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    content = bytes(content)
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(content).decode()}
