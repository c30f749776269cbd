"""Index and snapshot files as rows (`DumpLogSegments.dumpIndex`, `dumpTimeIndex`, …).

Each reader yields the rows of one file: the fields of a line by their names in the text, or a sentence as `message`. It
compares the entries of an index with the `.log` beside it. An error that ends the real tool is raised behind the rows
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from logstore.columns.batch_table import scan_chunk
from logstore.columns.legacy import legacy_entry, read_legacy_records
from logstore.columns.record_table import BatchRecords
from logstore.disk import paths
from logstore.disk.files import read_file
from logstore.disk.mapped import SEGMENT_SIZE_MAX
from logstore.disk.names import absolute_path, file_name, sibling
from logstore.disk.side_files import read_offset_index, read_producer_snapshot, read_time_index
from logstore.errors import CorruptIndexError, CorruptSnapshotError, DataDirectoryError
from logstore.kernels.rules import decrement_sequence
from logstore.layout.batch import NO_TIMESTAMP
from logstore.layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, base_offset_of
from logstore.layout.index_search import entry_count_before_zeros
from logstore.layout.transaction_index import parse_transaction_index

from .batch_chains import ILLEGAL_ARGUMENT, SegmentRecords
from .findings import Findings, Section
from .log_dump import new_writer
from .options import DumpOptions
from .output import Output, Row

_ROW_COUNT = 8192  # rows in one write
_PRODUCER_FIELD_COUNT = 6  # fields of a producer without a batch, with the type

_Index = TypeVar("_Index")
_Read = Callable[[str, DumpOptions, Findings], Iterator[Row]]


class _OptionalLong(int):
    """A number that Java's text shows as an OptionalLong; None stands for the empty one."""

    def __str__(self) -> str:
        return f"OptionalLong[{int(self)}]"


def dump_side_file(path: str, options: DumpOptions, out: Output, findings: Findings) -> None:
    """Print an index or a snapshot; say of a file with another suffix that it is ignored."""
    name = file_name(path)
    read = _READERS.get(name[name.rfind(".") :]) if "." in name else None
    if read is None:
        findings.immediate(f"Ignoring unknown file {path}")
        return
    write = new_writer(path, options, out).write_rows
    rows: list[Row] = []
    try:
        for row in read(path, options, findings):
            rows.append(row)
            if len(rows) == _ROW_COUNT:
                write(rows)
                rows = []
    finally:
        write(rows)


def _offset_index_rows(path: str, options: DumpOptions, findings: Findings) -> Iterator[Row]:
    """Yield the entries of an `.index` up to its zero tail; find those that do not point at their batch."""
    _ = options.max_message_size  # Kafka's tool parses it before it opens a file
    base_offset_of(file_name(path))
    records = SegmentRecords(sibling(path, _segment_stem(path) + LOG_SUFFIX))
    index = _read_index(path, read_offset_index)
    if index.entry_count == 0:
        yield {"type": "message", "message": f"{path} is empty."}
        return
    if options.has("index-sanity-check"):
        index.sanity_check()
        yield {"type": "message", "message": f"{path} passed sanity check."}
        return
    entry_count = entry_count_before_zeros(index.offsets, index.base_offset)
    is_printed = not options.has("verify-index-only")
    entries = zip(index.offsets[:entry_count].tolist(), index.positions[:entry_count].tolist(), strict=True)
    for offset, position in entries:
        last_offset = records.first_batch_last_offset(position, options.max_message_size)
        if last_offset != offset:
            findings.add(Section.INDEX_MISMATCH, path, offset, last_offset)
        if is_printed:
            yield {"type": "offsetIndexEntry", "offset": offset, "position": position}


def _time_index_rows(path: str, options: DumpOptions, findings: Findings) -> Iterator[Row]:
    """Yield the entries of a `.timeindex` up to its zero tail; find those that their batch belies."""
    base_offset_of(file_name(path))
    stem = _segment_stem(path)
    records = SegmentRecords(sibling(path, stem + LOG_SUFFIX))
    offset_index = _read_index(sibling(path, stem + OFFSET_INDEX_SUFFIX), read_offset_index)
    index = _read_index(path, read_time_index)
    if options.has("index-sanity-check"):
        index.sanity_check()
        yield {"type": "message", "message": f"{path} passed sanity check."}
        return
    entry_count = entry_count_before_zeros(index.offsets, index.base_offset)
    offsets, timestamps = index.offsets[:entry_count], index.timestamps[:entry_count].tolist()
    is_printed = not options.has("verify-index-only")
    previous_timestamp = NO_TIMESTAMP
    positions = offset_index.lookup_positions(offsets).tolist()
    for timestamp, offset, position in zip(timestamps, offsets.tolist(), positions, strict=True):
        records.slice_end(position, SEGMENT_SIZE_MAX)
        batch = records.first_batch(position, offset)
        if batch is None or batch.last_offset != offset:
            findings.add(Section.OFFSET_NOT_FOUND, path, offset, -1 if batch is None else batch.last_offset)
        else:
            log_timestamp = _max_record_timestamp(records, batch.position)
            if log_timestamp != timestamp:
                findings.add(Section.TIMESTAMP_MISMATCH, path, timestamp, log_timestamp)
            if previous_timestamp >= timestamp:
                findings.add(Section.TIMESTAMP_ORDER, path, timestamp, previous_timestamp)
        if is_printed:
            yield {"type": "timeIndexEntry", "timestamp": timestamp, "offset": offset}
        previous_timestamp = timestamp


def _max_record_timestamp(records: SegmentRecords, position: int) -> int:
    """Return the largest timestamp of the records of the batch at `position`, -1 if it has none."""
    table = scan_chunk(records.data, position, records.size, capacity=1)
    if int(table.magic[0]) < 2:
        timestamps = [record.timestamp for record in read_legacy_records(legacy_entry(records.data, table, 0))]
    else:
        chunks = BatchRecords(records.data, table, 0).chunks()
        timestamps = [int(chunk.timestamp.max(initial=NO_TIMESTAMP)) for chunk in chunks]
    return max([NO_TIMESTAMP, *timestamps])


def _transaction_index_rows(path: str, options: DumpOptions, findings: Findings) -> Iterator[Row]:
    """Yield the entries of a `.txnindex`; none of a missing file, and none of a damaged one."""
    base_offset_of(file_name(path))
    if not paths.exists(path):
        return
    if paths.is_directory(path):
        raise DataDirectoryError(f"{path}: Is a directory", java_class="java.nio.file.FileSystemException")
    version_size = options.kafka_version.transaction_index_version_size
    index = parse_transaction_index(read_file(path), path=absolute_path(path), version_size=version_size)
    index.require_all()
    columns = {
        "version": index.versions,
        "producerId": index.producer_ids,
        "firstOffset": index.first_offsets,
        "lastOffset": index.last_offsets,
        "lastStableOffset": index.last_stable_offsets,
    }
    yield from _rows("abortedTransaction", columns)


def _producer_snapshot_rows(path: str, options: DumpOptions, findings: Findings) -> Iterator[Row]:
    """Yield the producers of a `.snapshot` in file order; print the error of a damaged one, and go on."""
    try:
        snapshot = read_producer_snapshot(path)
    except CorruptSnapshotError as error:
        findings.immediate(error.message or "")
        return
    sequences = zip(snapshot.last_sequences.tolist(), snapshot.offset_deltas.tolist(), strict=True)
    columns = {
        "producerId": snapshot.producer_ids,
        "producerEpoch": snapshot.producer_epochs,
        "coordinatorEpoch": snapshot.coordinator_epochs,
        "currentTxnFirstOffset": snapshot.current_txn_first_offsets,
        "lastTimestamp": snapshot.timestamps,
        "firstSequence": np.array([decrement_sequence(last, delta) for last, delta in sequences], np.int64),
        "lastSequence": snapshot.last_sequences,
        "lastOffset": snapshot.last_offsets,
        "offsetDelta": snapshot.offset_deltas,
        "timestamp": snapshot.timestamps,
    }
    for row in _rows("producerEntry", columns):
        first_offset = row["currentTxnFirstOffset"]
        row["currentTxnFirstOffset"] = _OptionalLong(first_offset) if first_offset >= 0 else None
        has_batch = row["lastOffset"] >= 0
        yield row if has_batch else {name: row[name] for name in list(row)[:_PRODUCER_FIELD_COUNT]}


def _rows(of: str, columns: dict[str, NDArray[np.int64]]) -> Iterator[dict[str, Any]]:
    for values in np.stack(list(columns.values()), axis=1).tolist():
        yield {"type": of, **dict(zip(columns, values, strict=True))}


_READERS: dict[str, _Read] = {
    ".index": _offset_index_rows,
    ".timeindex": _time_index_rows,
    ".txnindex": _transaction_index_rows,
    ".snapshot": _producer_snapshot_rows,
}


def _segment_stem(path: str) -> str:
    """Return the part of a file's name that all files of the segment share."""
    return file_name(path).split(".", 1)[0]


def _read_index(path: str, read: Callable[[str], _Index]) -> _Index:
    """Read an index; a missing one raises the error of the real tool, which creates an empty file first."""
    if not paths.exists(path):
        raise CorruptIndexError("Invalid max index size: -1", java_class=ILLEGAL_ARGUMENT)
    return read(path)
