"""Rows about the content of logs: batches and records."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .schema import Int32, TimeMs


class BatchRow(NamedTuple):
    """The header of a record batch, or an entry of message format 0 or 1, where what it does not have is null."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    segment: Annotated[int, "base offset of the segment"]
    position: Annotated[int, "byte in the file"]
    size: Annotated[Int32, "bytes"]
    base_offset: Annotated[int, "of its first record"]
    last_offset: Annotated[int, "of its last record"]
    partition_leader_epoch: Annotated[Int32, "epoch of the leader that wrote it"]
    magic: Annotated[Int32, "0, 1 or 2"]
    crc: Annotated[int, "its checksum"]
    is_valid: Annotated[bool, "the checksum is right"]
    codec: Annotated[str | None, "none, gzip, snappy, lz4 or zstd"]
    timestamp_type: Annotated[str, "CreateTime, LogAppendTime or NoTimestampType"]
    is_transactional: Annotated[bool, "it is of a transaction"]
    is_control: Annotated[bool, "it is a marker, or another control batch"]
    base_timestamp: Annotated[TimeMs | None, "of its first record"]
    max_timestamp: Annotated[TimeMs | None, "the largest of its records"]
    delete_horizon: Annotated[TimeMs | None, "from when on its tombstones may go"]
    producer_id: Annotated[int, "-1 without a producer"]
    producer_epoch: Annotated[Int32, "-1 without a producer"]
    base_sequence: Annotated[Int32, "sequence of its first record, -1 for none"]
    record_count: Annotated[Int32, "records"]


class HeaderRow(NamedTuple):
    """A header of a record."""

    key: Annotated[str, "its name"]
    value: Annotated[bytes | None, "its value"]


class RecordRow(NamedTuple):
    """A record."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    offset: Annotated[int, "of the record"]
    timestamp: Annotated[TimeMs | None, "of the record"]
    timestamp_type: Annotated[str, "CreateTime, LogAppendTime or NoTimestampType"]
    is_control: Annotated[bool, "it is a marker, or another control record"]
    key: Annotated[bytes | None, "its key"]
    value: Annotated[bytes | None, "its value"]
    headers: Annotated[tuple[HeaderRow, ...], "its headers, in order: objects of `key` and `value`"]
