"""Batch headers as objects, with the names that the text has."""

from __future__ import annotations

from typing import Any

from logstore.columns.batch_table import BatchTable, ByteArray
from logstore.columns.legacy import legacy_entry
from logstore.columns.record_table import unknown_codec
from logstore.kernels.rules import increment_sequence
from logstore.layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from logstore.model import Codec, TimestampType

from .legacy_text import legacy_batch_line


def batch_object(table: BatchTable, row: int) -> dict[str, Any]:
    """A v2 batch."""
    fields = table.row(row)
    attributes = fields["attributes"]
    base_sequence = fields["base_sequence"]
    last_sequence = base_sequence
    if base_sequence != NO_SEQUENCE:
        last_sequence = increment_sequence(base_sequence, fields["last_offset_delta"])
    return {
        "kind": "batch",
        "baseOffset": fields["base_offset"],
        "lastOffset": int(table.last_offset[row]),
        "count": fields["record_count"],
        "baseSequence": base_sequence,
        "lastSequence": last_sequence,
        "producerId": fields["producer_id"],
        "producerEpoch": fields["producer_epoch"],
        "partitionLeaderEpoch": fields["partition_leader_epoch"],
        "isTransactional": bool(attributes & TRANSACTIONAL_FLAG),
        "isControl": bool(attributes & CONTROL_FLAG),
        "deleteHorizonMs": fields["base_timestamp"] if attributes & DELETE_HORIZON_FLAG else None,
        "position": fields["position"],
        "timestampType": TimestampType(int(bool(attributes & LOG_APPEND_TIME_FLAG))).kafka_name,
        "maxTimestamp": fields["max_timestamp"],
        "size": fields["size"],
        "magic": fields["magic"],
        "codec": _codec(attributes & CODEC_MASK, fields["position"]).kafka_name,
        "crc": fields["crc"],
        "isValid": fields["is_valid"] == 1,
    }


def legacy_object(data: ByteArray, table: BatchTable, row: int) -> dict[str, Any]:
    """A v0/v1 entry; raises what its line dies of."""
    position, size = int(table.position[row]), int(table.size[row])
    entry = legacy_entry(data, position, size)
    for _ in legacy_batch_line(data, position, size):
        pass
    return {
        "kind": "batch",
        "lastOffset": entry.offset,
        "position": position,
        "timestampType": entry.timestamp_type.kafka_name,
        "maxTimestamp": entry.timestamp,
        "size": size,
        "magic": entry.magic,
        "codec": _codec(entry.attributes & CODEC_MASK, position).kafka_name,
        "crc": entry.crc,
        "isValid": entry.is_valid,
    }


def _codec(codec_id: int, position: int) -> Codec:
    if codec_id > max(Codec):
        raise unknown_codec(codec_id, position)
    return Codec(codec_id)
