"""The text of a `.timeindex` (`DumpLogSegments.dumpTimeIndex`), and the check of each entry against the `.log`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from logstore.columns.batch_table import scan_chunk
from logstore.columns.legacy import legacy_entry, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX, BatchRecords
from logstore.disk.mapped import SEGMENT_SIZE_MAX
from logstore.disk.names import file_name, java_file, sibling
from logstore.disk.side_files import read_offset_index, read_time_index
from logstore.layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, base_offset_of
from logstore.layout.time_index import UNKNOWN_TIMESTAMP

from .batch_chains import BatchChains
from .findings import Findings
from .index_options import IndexOptions
from .offset_index_text import require_index, segment_stem, write_lines, written_entry_count
from .segment_records import SegmentRecords


def dump_time_index(path: str, options: IndexOptions, out: Callable[[bytes], None], findings: Findings) -> None:
    """Print one line per entry up to the zero tail, and find entries whose batch is not what they say.

    Raises:
        InvalidNameError, DataDirectoryError, CorruptIndexError, CorruptRecordError, and whatever the records of a
            batch raise when they are read: what the real tool dies of; the lines before it are printed.
    """
    base_offset_of(file_name(path))
    stem = segment_stem(path)
    records = SegmentRecords(sibling(path, stem + LOG_SUFFIX))
    offset_index_path = sibling(path, stem + OFFSET_INDEX_SUFFIX)
    require_index(offset_index_path)
    offset_index = read_offset_index(offset_index_path)
    require_index(path)
    time_index = read_time_index(path)
    if options.index_sanity_only:
        time_index.sanity_check()
        out(f"{java_file(path)} passed sanity check.\n".encode("utf-8", "replace"))
        return
    entry_count = written_entry_count(time_index.offsets, time_index.base_offset)
    offsets = time_index.offsets[:entry_count]
    entries = zip(
        time_index.timestamps[:entry_count].tolist(),
        offsets.tolist(),
        offset_index.lookup_positions(offsets).tolist(),
        strict=True,
    )
    write_lines(_checked_lines(path, entries, records, options, findings), out)


def _checked_lines(
    path: str,
    entries: Iterator[tuple[int, int, int]],
    records: SegmentRecords,
    options: IndexOptions,
    findings: Findings,
) -> Iterator[str]:
    chains = BatchChains(records)
    previous_timestamp = UNKNOWN_TIMESTAMP
    for timestamp, offset, position in entries:
        records.slice_end(position, SEGMENT_SIZE_MAX)
        batch = chains.first_batch(position, offset)
        if batch is None:
            findings.indexed_offset_not_found(path, offset, -1)
        elif batch.last_offset != offset:
            findings.indexed_offset_not_found(path, offset, batch.last_offset)
        else:
            log_timestamp = _max_record_timestamp(records, batch.position)
            if log_timestamp != timestamp:
                findings.timestamp_mismatch(path, timestamp, log_timestamp)
            if previous_timestamp >= timestamp:
                findings.timestamp_out_of_order(path, timestamp, previous_timestamp)
        if not options.verify_only:
            yield f"timestamp: {timestamp} offset: {offset}\n"
        previous_timestamp = timestamp


def _max_record_timestamp(records: SegmentRecords, position: int) -> int:
    """The largest timestamp of the records of the batch at `position`, -1 if it has none."""
    table = scan_chunk(records.data, position, records.size, capacity=1)
    if int(table.magic[0]) < 2:
        entry = legacy_entry(records.data, position, int(table.size[0]))
        timestamps = [record.timestamp for record in read_legacy_records(entry, DECOMPRESSED_SIZE_MAX)]
    else:
        chunks = BatchRecords(records.data, table, 0).chunks()
        timestamps = [int(chunk.timestamp.max(initial=UNKNOWN_TIMESTAMP)) for chunk in chunks]
    return max([UNKNOWN_TIMESTAMP, *timestamps])
