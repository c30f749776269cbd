"""Batches and records of logs, as rows: `logstore.dump`. Nothing is written, and no file is mapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray
from ..columns.record_windows import record_windows
from ..disk import paths
from ..disk.directory import PartitionFiles, SegmentFiles, list_data_directory, list_partition_directory
from ..disk.loaded import LoadedFile
from ..disk.names import absolute_path, file_name, normal_path, parent, path_text
from ..disk.recognition import names_partition
from ..errors import CorruptRecordError, LogstoreError, UsageError
from ..layout.batch import CONTROL_FLAG
from ..layout.file_names import LOG_SUFFIX
from ..rows.batches import BatchRow, HeaderRow, RecordRow
from ..rows.listing import Rows
from ..rows.schema import fields_of, unless_missing
from ..view.walk import tables_and_damage
from .batch_headers import field_column
from .listings import Path

R = TypeVar("R", BatchRow, RecordRow)
_PLACE = ("topic", "partition", "segment")
_HEADER_FIELDS = tuple(field.name for field in fields_of(BatchRow) if field.name not in _PLACE)


class _Place(NamedTuple):
    files: PartitionFiles
    segment: SegmentFiles


@overload
def dump(path: Path, *, records: Literal[False] = ...) -> Rows[BatchRow]: ...
@overload
def dump(path: Path, *, records: Literal[True]) -> Rows[RecordRow]: ...
@overload
def dump(path: Path, *, records: bool) -> Rows[BatchRow] | Rows[RecordRow]: ...
def dump(path: Path, *, records: bool = False) -> Rows[BatchRow] | Rows[RecordRow]:
    """Read the batches of logs, or their records: markers and what was aborted included, as the log has them.

    Nothing is read before the rows are iterated over. All that can be read is yielded, then what could not be listed,
    or the first damage on the way, is raised, with a note of how much more there is. A batch that a broker is writing
    is no damage.

    Args:
        path: a `.log`, a partition, or a data directory for all partitions in it.
        records: yield records, not batches.

    Raises:
        UsageError: `path` is none of these.
        DataDirectoryError: it cannot be read; also while the rows are iterated over.
        InvalidNameError, CorruptRecordError, InvalidRecordError, DecompressionError, UnsupportedCompressionTypeError:
            after all rows.
    """
    places, unlisted = _places(absolute_path(path_text(path)))  # read later, in whatever working directory
    if records:
        return Rows(RecordRow, _Contents(places, unlisted, _record_rows))
    return Rows(BatchRow, _Contents(places, unlisted, _batch_rows))


def _places(path: str) -> tuple[list[_Place], list[LogstoreError]]:
    """Return the segments that a path names, and what could not be listed of it."""
    if paths.is_file(path):
        if not path.endswith(LOG_SUFFIX):
            raise UsageError("This is no log of a partition", path=path, expected="a .log, or a directory")
        around = list_partition_directory(parent(normal_path(path)))
        return [_Place(around, one) for one in around.segments if file_name(one.log) == file_name(path)], []
    unlisted: list[LogstoreError] = []
    if names_partition(path):
        partitions: Sequence[PartitionFiles] = [list_partition_directory(path)]
    else:
        directory = list_data_directory(path)
        partitions, unlisted = directory.partitions, [*directory.errors]
    unlisted += [error for partition in partitions for error in partition.errors]
    return [_Place(partition, segment) for partition in partitions for segment in partition.segments], unlisted


class _Contents(Generic[R]):
    """Iterates over the rows of segments, each time anew."""

    def __init__(
        self,
        places: Sequence[_Place],
        unlisted: Sequence[LogstoreError],
        make: Callable[[_Place, ByteArray, BatchTable, list[LogstoreError]], Iterator[R]],
    ) -> None:
        self._places, self._unlisted = places, unlisted
        self._make: Callable[..., Iterator[R]] = make

    def __iter__(self) -> Iterator[R]:
        damage = [*self._unlisted]
        for place in self._places:
            with LoadedFile(place.segment.log) as log:
                for table in _tables(log, place, damage):
                    yield from self._make(place, log.data, table, damage)
        if damage:
            if len(damage) > 1 and not hasattr(damage[0], "__notes__"):  # what was not listed is raised each time
                damage[0].add_note(f"{len(damage) - 1} more could not be read.")
            raise damage[0]


def _tables(log: LoadedFile, place: _Place, damage: list[LogstoreError]) -> Iterator[BatchTable]:
    """Yield the batches of a segment with their checksums computed; add bytes that are no batch to `damage`."""
    segment, is_last = place.segment, place.segment is place.files.segments[-1]
    for found in tables_and_damage(log, segment.log, 0, log.size, segment.base_offset, is_tail=is_last):
        if isinstance(found, LogstoreError):
            damage.append(found)
        else:
            yield found


def _batch_rows(place: _Place, data: ByteArray, table: BatchTable, damage: list[LogstoreError]) -> Iterator[BatchRow]:
    where = place.files.topic, place.files.partition, place.segment.base_offset
    for values in zip(*(field_column(table, name).to_list() for name in _HEADER_FIELDS), strict=True):
        yield BatchRow(*where, *values)


def _record_rows(place: _Place, data: ByteArray, table: BatchTable, damage: list[LogstoreError]) -> Iterator[RecordRow]:
    for row in np.flatnonzero(table.is_valid == 0).tolist():
        found = f"stored {table.row(row)['crc']:#010x}"
        error = CorruptRecordError("Record is corrupt: the checksum of its batch is wrong", found=found)
        damage.append(_located(error, place, table, row))
    for window in record_windows(data, table, np.flatnonzero(table.is_valid != 0)):
        if window.error is not None:
            damage.append(_located(window.error, place, table, int(window.batch_rows[-1])))
        is_control = (table.attributes[window.rows] & CONTROL_FLAG != 0).tolist()
        columns: Any = zip(*window.to_lists(), is_control, strict=True)
        for offset, timestamp, kind, key, value, headers, _, control in columns:
            yield RecordRow(
                place.files.topic,
                place.files.partition,
                offset,
                unless_missing(timestamp),
                kind.kafka_name,
                control,
                key,
                value,
                tuple(HeaderRow(name, content) for name, content in headers),
            )


def _located(error: LogstoreError, place: _Place, table: BatchTable, row: int) -> LogstoreError:
    error.path, error.position = place.segment.log, int(table.position[row])
    error.offset = int(table.base_offset[row])
    return error
