"""Records that retention deletes soon after a start, here as at a broker (`UnifiedLog.deleteOldSegments`).

A directory that lay still for longer than `retention.ms`, such as a backup, loses all its records half a minute after a
broker has started on it, or a store was opened. So inspection, and every opening, says before how many that would be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...columns.batch_table import headers
from ...columns.legacy import check_all, valid_row_count
from ...config.topic import LogConfig, is_tiered
from ...disk.directory import SegmentFiles, list_partition_directory
from ...disk.files import read_if_present
from ...disk.loaded import LoadedFile
from ...disk.names import child
from ...disk.side_files import log_start_offsets_of, read_time_index
from ...errors import LogstoreError
from ...layout.file_names import LOG_SUFFIX, TIME_INDEX_SUFFIX, directory_name
from ...layout.time_index import ENTRY_SIZE, parse_time_index
from ...log.maintain.retain import CLEANUP_POLICY, DELETE, RETENTION_BYTES, RETENTION_MS
from ...replay.metadata_image import MetadataImage
from ...view.batch_search import indexed_batch
from ..metadata.topic_configs import broker_defaults, topic_config

NO_TIMESTAMP = -1
_TIMESTAMP_SIZE = 8


class DueRecords(NamedTuple):
    """How many offsets of a partition retention deletes, and of how many.

    `newest_ms` is the largest timestamp of the last segment that goes by time; None if all go by size.
    """

    offset_count: int
    all_count: int
    newest_ms: int | None


def retention_warnings(
    root: str, image: MetadataImage, node_id: int, static: Mapping[str, Any], now_ms: int, *, was_clean: bool
) -> list[str]:
    """Return a sentence for each topic of which retention deletes records in the data directory `root` at that time.

    A partition that cannot be read is left out: its own opening says what is wrong with it. `static` is the
    configuration of the broker or the store; if it `was_clean`, each index is complete.
    """
    starts, defaults = _log_starts(root), broker_defaults(image, node_id, static)
    texts = []
    for name, topic in sorted(image.topics.items()):
        config = topic_config(image, name, defaults)
        if DELETE not in config[CLEANUP_POLICY] or is_tiered(config):
            continue
        if config[RETENTION_MS] < 0 and config[RETENTION_BYTES] < 0:
            continue
        due = list[DueRecords]()
        for number in sorted(topic.partitions):
            with suppress(LogstoreError, OSError):
                path, log_start = child(root, directory_name(name, number)), starts.get((name, number), 0)
                due += _due(path, log_start, config, now_ms, was_clean=was_clean)
        if due:
            texts.append(_text(name, due, config, image.topic_config(name)))
    return texts


def _due(path: str, log_start: int, config: LogConfig, now_ms: int, *, was_clean: bool) -> Iterator[DueRecords]:
    oldest_kept_ms = now_ms - config[RETENTION_MS]
    if config[RETENTION_BYTES] < 0 and _is_first_kept(path, oldest_kept_ms):
        return
    segments = list(list_partition_directory(path).segments)
    if segments and not _size(segments[-1]):
        segments.pop()  # an empty last one stays
    going, newest_ms = _going_by_size(segments, config[RETENTION_BYTES]), None
    for segment in segments[going:] if config[RETENTION_MS] >= 0 else ():
        largest = _largest_timestamp(segment, oldest_kept_ms, was_clean=was_clean)
        if largest >= oldest_kept_ms:
            break
        going, newest_ms = going + 1, largest
    if not going:
        return
    log_end, start = _read_end(segments[-1]).offset, max(log_start, segments[0].base_offset)
    end = segments[going].base_offset if going < len(segments) else log_end
    if end > start:
        yield DueRecords(end - start, log_end - start, newest_ms)


def _is_first_kept(path: str, oldest_kept_ms: int) -> bool:
    """Return whether the first segment is known to stay; to list each partition would take too long at each opening."""
    logs = [name for name in os.listdir(path) if name.endswith(LOG_SUFFIX)]
    first = min(logs, default=None)
    if first is None or (len(logs) == 1 and not os.path.getsize(child(path, first))):
        return True
    time_index = child(path, first.removesuffix(LOG_SUFFIX) + TIME_INDEX_SUFFIX)
    content = read_if_present(time_index) or b""
    # the last entry of a whole index has the largest timestamp; to parse the index takes longer than all else here
    last = content[-ENTRY_SIZE:][:_TIMESTAMP_SIZE]
    if content and len(content) % ENTRY_SIZE == 0 and int.from_bytes(last, signed=True) >= oldest_kept_ms:
        return True
    timestamps = parse_time_index(content, base_offset=0, path=time_index).timestamps
    return bool((timestamps >= oldest_kept_ms).any())


def _going_by_size(segments: Sequence[SegmentFiles], retention_bytes: int) -> int:
    excess, going = sum(map(_size, segments)) - retention_bytes, 0
    while retention_bytes >= 0 and going < len(segments) and _size(segments[going]) <= excess:
        excess -= _size(segments[going])
        going += 1
    return going


def _size(segment: SegmentFiles) -> int:
    return os.path.getsize(segment.log)


def _largest_timestamp(segment: SegmentFiles, enough: int, *, was_clean: bool) -> int:
    """Return the largest timestamp of a segment as a load finds it; any from `enough` on will do.

    It is the last one of the time index, or that of a batch behind it (`LogSegment.readLargestTimestamp`). A segment
    without timestamps has the time of its file.
    """
    largest, offset = NO_TIMESTAMP, segment.base_offset
    if segment.time_index is not None:
        index = read_time_index(segment.time_index)
        largest = int(index.timestamps.max(initial=NO_TIMESTAMP))
        offset = int(index.offsets[index.timestamps.argmax()]) if largest >= 0 else offset
    if largest < enough and not (was_clean and largest >= 0):
        largest = max(largest, _read_end(segment, offset).largest_timestamp)
    return largest if largest >= 0 else int(os.stat(segment.log).st_mtime * 1000)


class _End(NamedTuple):
    """The end of a segment's last batches, or its base offset, and their largest timestamp in ms, -1 for none."""

    offset: int
    largest_timestamp: int


def _read_end(segment: SegmentFiles, offset: int | None = None) -> _End:
    """Read from the last batch that the index names, of those up to an offset if it is given, to the last good one."""
    end, indexed = _End(segment.base_offset, NO_TIMESTAMP), indexed_batch(segment, offset)
    with LoadedFile(segment.log) as log:
        for table in headers(log.data, 0 if indexed is None else indexed.position, load=log.load):
            check_all(log.data, table)
            row_end = valid_row_count(log.data, table)
            if row_end:
                newest = int(table.max_timestamp[:row_end].max())
                end = _End(int(table.last_offset[row_end - 1]) + 1, max(end.largest_timestamp, newest))
            if row_end < len(table):
                break
            log.release(0, table.next_position)
    return end


def _log_starts(root: str) -> Mapping[tuple[str, int], int]:
    try:
        return log_start_offsets_of(root)
    except LogstoreError:
        return {}  # which is told elsewhere


def _text(topic: str, due: list[DueRecords], config: LogConfig, own: Mapping[str, str]) -> str:
    count, total = sum(log.offset_count for log in due), sum(log.all_count for log in due)
    names = [name for name in (RETENTION_MS, RETENTION_BYTES) if config[name] >= 0]
    rules = " and ".join(f"{name}={config[name]}{'' if name in own else ' by default'}" for name in names)
    newest = max((log.newest_ms for log in due if log.newest_ms is not None), default=None)
    of_when = "" if newest is None else f", the newest of {datetime.fromtimestamp(newest // 1000, UTC):%Y-%m-%d}"
    partitions = "1 partition" if len(due) == 1 else f"{len(due)} partitions"
    return (
        f"retention: a broker, or a store that stays open, deletes {count:,} of {total:,} offsets of topic {topic} "
        f"half a minute after its start, in {partitions}{of_when}, by {rules}: to keep them, set retention.ms=-1 before"
    )
