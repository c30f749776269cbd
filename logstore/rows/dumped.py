"""Rows of `logstore dump`: what stands in the files of a partition, with what is wrong with it.

Options leave out members: without `--print-data-log` records have no key and value, with `--skip-record-metadata` they
have nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from .batches import HeaderRow
from .schema import Int32, TimeMs


class DumpedBatch(NamedTuple):
    """A record batch, or an entry of message format 0 or 1, which has no members before `position` but its offset."""

    path: Annotated[str, "the file"]
    base_offset: Annotated[int, "of its first record"]
    last_offset: Annotated[int, "of its last record"]
    record_count: Annotated[Int32, "records"]
    base_sequence: Annotated[Int32, "sequence of its first record, -1 for none"]
    last_sequence: Annotated[Int32, "sequence of its last record, -1 for none"]
    producer_id: Annotated[int, "-1 without a producer"]
    producer_epoch: Annotated[Int32, "-1 without a producer"]
    partition_leader_epoch: Annotated[Int32, "epoch of the leader that wrote it"]
    is_transactional: Annotated[bool, "it is of a transaction"]
    is_control: Annotated[bool, "it is a marker, or another control batch"]
    delete_horizon: Annotated[TimeMs | None, "from when on its tombstones may go"]
    position: Annotated[int, "byte in the file"]
    timestamp_type: Annotated[str, "CreateTime or LogAppendTime"]
    max_timestamp: Annotated[TimeMs | None, "the largest of its records"]
    size: Annotated[Int32, "bytes"]
    magic: Annotated[Int32, "0, 1 or 2"]
    codec: Annotated[str, "none, gzip, snappy, lz4 or zstd"]
    crc: Annotated[int, "its checksum"]
    is_valid: Annotated[bool, "the checksum is right"]


class DumpedRecord(NamedTuple):
    """A record, below its batch. `crc` and `isValid` are of message formats 0 and 1, `sequence` and `headers` of 2."""

    path: Annotated[str, "the file"]
    offset: Annotated[int, "of the record"]
    timestamp_type: Annotated[str, "CreateTime or LogAppendTime"]
    timestamp: Annotated[TimeMs | None, "of the record"]
    key_size: Annotated[Int32, "bytes, -1 for null"]
    value_size: Annotated[Int32, "bytes, -1 for null"]
    sequence: Annotated[Int32, "-1 for none"]
    headers: Annotated[tuple[HeaderRow, ...], "objects of `key` and `value`"]
    crc: Annotated[int, "its checksum"]
    is_valid: Annotated[bool, "the checksum is right"]
    control: Annotated[Mapping[str, str], "what a control record says"]
    key: Annotated[bytes | None, "or `keyBase64`; with a decoder an object"]
    value: Annotated[bytes | None, "or `valueBase64`; with a decoder an object"]


class DumpedTrailer(NamedTuple):
    """The end of a log that is no batch."""

    path: Annotated[str, "the file"]
    invalid_bytes: Annotated[int, "its size"]


class DumpedMessage(NamedTuple):
    """What is said of a file in a sentence."""

    path: Annotated[str, "the file"]
    message: Annotated[str, "the sentence"]


class DumpedOffsetIndexEntry(NamedTuple):
    """An entry of an `.index`."""

    path: Annotated[str, "the file"]
    offset: Annotated[int, "where the entry leads"]
    position: Annotated[int, "byte in the log"]


class DumpedTimeIndexEntry(NamedTuple):
    """An entry of a `.timeindex`."""

    path: Annotated[str, "the file"]
    timestamp: Annotated[TimeMs | None, "the largest up to the offset"]
    offset: Annotated[int, "where the entry leads"]


class DumpedAbortedTransaction(NamedTuple):
    """An entry of a `.txnindex`."""

    path: Annotated[str, "the file"]
    version: Annotated[Int32, "of the entry, 0"]
    producer_id: Annotated[int, "of its producer"]
    first_offset: Annotated[int, "of the transaction"]
    last_offset: Annotated[int, "of its marker"]
    last_stable_offset: Annotated[int, "as the marker was written"]


class DumpedProducerEntry(NamedTuple):
    """A producer in a `.snapshot`; one without a batch has only the first of them."""

    path: Annotated[str, "the file"]
    producer_id: Annotated[int, "its id"]
    producer_epoch: Annotated[Int32, "its epoch"]
    coordinator_epoch: Annotated[Int32, "of its last marker, -1 for none"]
    current_txn_first_offset: Annotated[int | None, "where its open transaction begins"]
    last_timestamp: Annotated[TimeMs | None, "of its last batch or marker"]
    first_sequence: Annotated[Int32, "of its last batch"]
    last_sequence: Annotated[Int32, "of its last batch"]
    last_offset: Annotated[int, "of its last batch"]
    offset_delta: Annotated[Int32, "from the first to the last offset of that batch"]
    timestamp: Annotated[TimeMs | None, "of that batch"]
