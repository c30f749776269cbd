"""Table `records`: the records that a consumer gets, in the columns of Spark's Kafka source and some more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logstore.columns.batch_table import BatchTable, BoolArray, ByteArray
from logstore.columns.record_windows import record_windows
from logstore.disk.loaded import LoadedFile
from logstore.disk.paths import exists
from logstore.errors import CorruptRecordError, DataDirectoryError, LogstoreError
from logstore.folds.committed_filter import is_in_aborted
from logstore.layout.batch import MAGIC_V2
from logstore.layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX
from logstore.view.walk import tables_and_damage, tables_around_damage

from .arrow_records import KeptRecords, record_batch
from .bounds import find_ranges, require_named, while_files_go
from .directories import chosen_partitions
from .options import Options
from .planning import Slice, SliceTask, mark_of, plan_tasks
from .schemas import parse_columns
from .segments import read_entries
from .tables import Table, tasks_of_unlisted

RECORD_COUNT_MAX = 98_312  # of an Arrow batch; as many usual records as a scan yields, since each batch costs time

_ADVICE = "retention, compaction or truncation replaced it after the query was planned: run the query again"
KAFKA_COLUMNS = parse_columns(
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)
MORE_COLUMNS = parse_columns(
    "headers headers, producer_id long, producer_epoch short, sequence int, partition_leader_epoch int, "
    "is_transactional bool"
)
#: (slice, bytes of the file, batches, options, schema) -> Arrow batches, and errors of damage between them
Make = Callable[[Slice, ByteArray, BatchTable, Options, pa.Schema], Iterable[pa.RecordBatch | LogstoreError]]


def _shown(options: Options) -> list[str]:
    return [*KAFKA_COLUMNS, "headers"] if options.include_headers else [*KAFKA_COLUMNS]


def plan(options: Options) -> list[InputPartition]:
    """Plan tasks of about 128 MiB; small partitions share one."""
    return while_files_go(lambda: _plan(options))


def _plan(options: Options) -> list[InputPartition]:
    found = chosen_partitions(options)
    for bound in (options.starting, options.ending):
        require_named(bound, found.keys)
    ranges, hidden = find_ranges(found.listed, options)
    tasks = plan_tasks(ranges, options.partition_count_min)
    return [*tasks, *tasks_of_unlisted([*found.unlisted, *hidden])]


def read_task(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task, without control records and aborted transactions.

    Raises:
        DataDirectoryError: this process does not see what the driver listed, or a segment was replaced since.
        LogstoreError: damage, with mode FAILFAST.
    """
    return read_slices(task, options, schema, _records)


def read_slices(task: InputPartition, options: Options, schema: pa.Schema, make: Make) -> Iterator[pa.RecordBatch]:
    """Yield the result of `make` for the batches of a task, and rows for damage; raises as `read_task`."""
    assert isinstance(task, SliceTask)
    for run in task.runs:
        run.require()
    for one in task.slices:
        for data, found in batch_tables(one):
            made = [found] if isinstance(found, LogstoreError) else make(one, data, found, options, schema)
            for part in made:
                if isinstance(part, LogstoreError):
                    yield from options.damage_rows(part, one.run.topic, one.run.partition, schema)
                else:
                    yield part


def _records(
    one: Slice, data: ByteArray, table: BatchTable, options: Options, schema: pa.Schema
) -> Iterator[pa.RecordBatch | LogstoreError]:
    is_wanted = wanted(one, table)
    if options.producer_ids is not None:
        is_wanted &= np.isin(table.producer_id, list(options.producer_ids))
    for row in np.flatnonzero(is_wanted & (table.is_valid == 0)).tolist():
        found = f"stored {table.row(row)['crc']:#010x}"
        error = CorruptRecordError("Record is corrupt: the checksum of its batch is wrong", found=found)
        yield _located(one, table, row, error)
    rows = np.flatnonzero(is_wanted & (table.is_valid != 0))
    for window in record_windows(data, table, rows, RECORD_COUNT_MAX):
        if window.error is not None:
            yield _located(one, table, int(window.batch_rows[-1]), window.error)
            continue
        offsets = window.offset
        is_kept = (offsets >= one.run.first_offset) & (offsets < one.end_offset)
        if is_kept.any():
            kept = slice(None) if is_kept.all() else np.flatnonzero(is_kept)
            yield record_batch(KeptRecords(window, table, kept, one.run.topic, one.run.partition), schema)


def batch_tables(one: Slice) -> Iterator[tuple[ByteArray, BatchTable | LogstoreError]]:
    """Yield (bytes of the file, batches) of a slice, with checksums computed, or an error for bytes that are no batch.

    Reading goes on at the next good batch behind such bytes. Raises DataDirectoryError for a segment that is gone, or
    was replaced since planning.
    """
    with _opened(one) as log:
        start, end = _batch_bounds(one, log)
        is_tail = one.is_last and end == one.segment_size
        for found in tables_and_damage(log, one.path, start, end, one.base_offset, is_tail=is_tail):
            if _position(found) >= one.end:
                return
            yield log.data, found


def _position(found: BatchTable | LogstoreError) -> int:
    """Return where a table or damage begins; 0 for a table without rows."""
    if isinstance(found, LogstoreError):
        return found.position or 0
    return int(found.position[0]) if len(found) else 0


def _batch_bounds(one: Slice, log: LoadedFile) -> tuple[int, int]:
    """Return where the first batch or damage of the slice is, and where a batch behind its last one is, if known."""
    if one.start == 0 and one.end == one.segment_size:
        return 0, one.segment_size
    path = one.path.removesuffix(LOG_SUFFIX) + OFFSET_INDEX_SUFFIX
    entries = read_entries(path if exists(path) else None, one.segment_size)
    start, end = entries.position_to(log, one.start), entries.position_from(log, one.end)
    for table in tables_around_damage(log, start, one.segment_size, one.base_offset) if start < one.start else ():
        row = int(np.searchsorted(table.position, one.start))
        if row < len(table):
            return int(table.position[row]), end
        start = table.next_position if table.next_position >= one.start else one.segment_size
        if not table.has_more and start < one.segment_size:
            return start, end  # damage
    return start, end


def wanted(one: Slice, table: BatchTable) -> BoolArray:
    """Return bool[count]: which batches have records to read."""
    base_offset, last_offset = table.base_offset, table.last_offset
    is_wanted: BoolArray = (last_offset >= one.run.first_offset) & ~table.is_control & (table.position < one.end)
    # the offset of a wrapper of v0/v1 is that of its last message
    is_wanted &= (base_offset < one.end_offset) | (table.magic < MAGIC_V2)
    if len(one.run.aborted):
        is_wanted &= ~is_in_aborted(one.run.aborted, table)
    return is_wanted


def _opened(one: Slice) -> LoadedFile:
    try:
        log, mark = LoadedFile(one.path), mark_of(one.path, one.segment_size)
    except DataDirectoryError as error:
        raise DataDirectoryError("the segment cannot be opened", path=one.path, found=error, advice=_ADVICE) from error
    if log.size < one.segment_size:
        raise DataDirectoryError(
            "the segment is shorter than at planning",
            path=one.path,
            expected=f"at least {one.segment_size} bytes",
            found=log.size,
            advice=_ADVICE,
        )
    if mark != one.mark:
        raise DataDirectoryError("the segment was replaced", path=one.path, advice=_ADVICE)
    return log


def _located(one: Slice, table: BatchTable, row: int, error: LogstoreError) -> LogstoreError:
    error.path, error.position, error.offset = one.path, int(table.position[row]), int(table.base_offset[row])
    return error


TABLE = Table({**KAFKA_COLUMNS, **MORE_COLUMNS}, _shown, plan, read_task)
