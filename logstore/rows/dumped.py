"""Rows of `logstore dump`: what stands in the files of a partition, with what is wrong with it.

Options leave out members: without `--print-data-log` records have no key and value, with `--skip-record-metadata` they
have nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from .batches import BatchRow, RecordRow
from .schema import Int32, TimeMs, selection


class _OfBatch(NamedTuple):
    path: Annotated[str, "the file"]
    last_sequence: Annotated[Int32, "sequence of its last record, -1 for none"]


class _OfRecord(NamedTuple):
    path: Annotated[str, "the file"]
    key_size: Annotated[Int32, "bytes, -1 for null"]
    value_size: Annotated[Int32, "bytes, -1 for null"]
    sequence: Annotated[Int32, "-1 for none"]
    crc: Annotated[int, "its checksum"]
    is_valid: Annotated[bool, "the checksum is right"]
    control: Annotated[Mapping[str, str], "what a control record says"]
    key: Annotated[bytes | None, "or `keyBase64`; with a decoder an object"]
    value: Annotated[bytes | None, "or `valueBase64`; with a decoder an object"]


# In the order of Kafka's lines.
DumpedBatch = selection(
    "DumpedBatch",
    "A record batch, or an entry of message format 0 or 1, which has no members before `position` but its offset.",
    "path base_offset last_offset record_count base_sequence last_sequence producer_id producer_epoch "
    "partition_leader_epoch is_transactional is_control delete_horizon position timestamp_type max_timestamp size "
    "magic codec crc is_valid",
    *(BatchRow, _OfBatch),
)
DumpedRecord = selection(
    "DumpedRecord",
    "A record, below its batch. `crc` and `isValid` are of message formats 0 and 1, `sequence` and `headers` of 2.",
    "path offset timestamp_type timestamp key_size value_size sequence headers crc is_valid control key value",
    *(RecordRow, _OfRecord),
)


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


DUMPED: dict[str, type] = {  # by their `type`
    "batch": DumpedBatch,
    "record": DumpedRecord,
    "trailer": DumpedTrailer,
    "message": DumpedMessage,
    "offsetIndexEntry": DumpedOffsetIndexEntry,
    "timeIndexEntry": DumpedTimeIndexEntry,
    "abortedTransaction": DumpedAbortedTransaction,
    "producerEntry": DumpedProducerEntry,
}
