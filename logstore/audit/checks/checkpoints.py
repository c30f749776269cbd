"""Offset checkpoints of a data directory beside the logs that they tell of (`LogManager`, `OffsetCheckpointFile`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...disk.directory import DataDirectoryFiles
from ...disk.files import file_size
from ...disk.names import child, file_name
from ...disk.side_files import read_offset_checkpoint
from ...errors import CheckpointFormatError, DataDirectoryError, LogstoreError
from ...layout import clean_shutdown, offset_checkpoint
from ...layout.file_names import directory_name, parse_partition_directory
from ...layout.meta_properties import MetaProperties
from ..cluster import Cluster, Known
from ..evidence import Evidence
from ..finding import Broken, Rule, Silence, Where
from ..partition import Partition, read_checkpoints, unless_gone
from .batches import DAMAGED, ERROR, UNSETTLED, WARNING

checkpoint_format = Rule(
    "checkpoint-format",
    ERROR,
    "A checkpoint does not parse, or is missing or empty after a clean shutdown.",
    "no broker starts on one that does not parse, and without one deleted records come back or more is recovered: put "
    "it back from a copy; `logstore repair` makes `leader-epoch-checkpoint` anew",
)
checkpoint_offset = Rule(
    "checkpoint-offset",
    ERROR,
    "A checkpoint has an offset that the log cannot have.",
    "unless the checkpoint is of another time, what it tells of the log is so: compare with the other replicas, "
    "`logstore diff`",
    (UNSETTLED, DAMAGED, Silence.NOT_LOADED),
    more="A follower keeps a recovery point above its end if it is truncated while a rolled segment waits to be "
    "flushed. A clean shutdown flushes each log to its end, and leaves out those that were not loaded yet "
    "(`LogManager.shutdown`).",
)
checkpoint_partition = Rule(
    "checkpoint-partition",
    WARNING,
    "A checkpoint tells of a partition that has no directory.",
    "a broker drops the entry; where the cluster has the partition, put its directory back from a copy",
    (UNSETTLED,),
)

_RECOVERY_POINT = offset_checkpoint.RECOVERY_POINT_FILE_NAME
_HIGH_WATERMARK = offset_checkpoint.HIGH_WATERMARK_FILE_NAME
_WRITTEN_ON_CLOSE = (_RECOVERY_POINT, offset_checkpoint.LOG_START_OFFSET_FILE_NAME)
_IN_CLUSTER = {Known.YES: ", and the cluster has the partition", Known.NO: ", and the cluster has no such partition"}

Key = tuple[str, int]
Logs = Mapping[Key, tuple[Partition, int]]  # whose ends are known, with the end


def offset_checkpoints(directory: DataDirectoryFiles, passes: Sequence[Evidence], cluster: Cluster) -> Iterator[Broken]:
    """Yield what is wrong with the checkpoints, after the passes over all partitions."""
    is_closed = clean_shutdown.FILE_NAME in directory.files
    is_brokers = isinstance(cluster.identity, MetaProperties)
    live = [one for one in passes if one.partition.is_live]
    logs = {one.partition.key: (one.partition, one.log_end_offset) for one in live if one.is_end_known}
    endless = {one.partition.key for one in live if not one.is_end_known}
    known = {one.key for one in directory.partitions} | set(_refused(directory.errors))
    for name in offset_checkpoint.FILE_NAMES:
        path = directory.files.get(name)
        # one without a byte is made at a start, and is what a power failure leaves of another (`CheckpointFile`)
        if is_closed and is_brokers and name in _WRITTEN_ON_CLOSE and not (path and file_size(path)):
            where, expected = Where(child(directory.path, name)), "a checkpoint, which a clean shutdown writes"
            yield checkpoint_format.at(where, expected, "an empty file" if path else "none")
            continue
        if path is None:
            continue
        try:
            offsets = unless_gone(read_offset_checkpoint, path) or {}
        except (CheckpointFormatError, DataDirectoryError) as error:
            yield checkpoint_format.by(error, Where(path), "topics, partitions and offsets")
            continue
        # this one is written every few seconds, the others before the directory of a deleted partition is removed
        is_behind = name == _HIGH_WATERMARK and not is_closed
        for key, offset in offsets.items():
            where = Where(path, *key, offset=offset)
            if key in logs:
                yield from _wrong_offset(where, offset, *logs[key], cluster)
            elif key in endless:
                yield checkpoint_offset.not_asked(where, DAMAGED)
            elif key not in known:
                yield _without_directory(where, key, cluster, UNSETTLED if is_behind else None)
        if name in (_RECOVERY_POINT, _HIGH_WATERMARK):
            yield from _left_out(path, offsets, logs, cluster)


def lost_partitions(cluster: Cluster, topic: str) -> Iterator[Broken]:
    """Yield the partitions of a topic that have no directory, though a checkpoint and the cluster have them."""
    for root in cluster.roots:
        for key, offset in read_checkpoints(root).get(_RECOVERY_POINT, {}).items():
            is_asked = key[0] == topic and cluster.has_partition(*key) is Known.YES
            if is_asked and not cluster.has_directory(directory_name(*key)):
                yield _without_directory(Where(child(root, _RECOVERY_POINT), *key, offset=offset), key, cluster)


def _without_directory(where: Where, key: Key, cluster: Cluster, silence: Silence | None = None) -> Broken:
    found = f"none{_IN_CLUSTER.get(cluster.has_partition(*key), '')}"
    return checkpoint_partition.at(where, f"a directory {directory_name(*key)}", found, silence)


def _wrong_offset(where: Where, offset: int, partition: Partition, end: int, cluster: Cluster) -> Iterator[Broken]:
    """Compare an entry with its log; one that is older than the last retention may be below the log's start.

    A clean shutdown flushes a log to its end. What one broker wrote in its first life is replicated to the end; a later
    one starts with the offset that was in the checkpoint, and may be stopped before it leads again.
    """
    name, is_closed = file_name(str(where.path)), partition.surroundings.was_closed
    expected = f"an offset from {partition.base_offset} to {end}"
    if offset < 0:
        yield checkpoint_offset.at(where, expected, offset)
    elif offset > end:
        found, silence = f"{offset}: {_offsets(offset - end)} gone from the log's end", None if is_closed else UNSETTLED
        yield checkpoint_offset.at(where, expected, found, silence)
    elif offset < end and is_closed and name in (_RECOVERY_POINT, _HIGH_WATERMARK):
        found = f"{offset}: {_offsets(end - offset)} behind what was flushed"
        silence = None if name == _RECOVERY_POINT or cluster.has_one_life else Silence.NOT_LOADED
        yield checkpoint_offset.at(where, f"offset {end}, where the log was closed", found, silence)


def _left_out(path: str, offsets: Collection[Key], logs: Logs, cluster: Cluster) -> Iterator[Broken]:
    """Tell of logs without an entry: of a broker that was stopped in its first life none was not loaded yet."""
    for key, (partition, end) in logs.items():
        is_judged = partition.surroundings.was_closed and cluster.has_partition(*key) is Known.YES
        if is_judged and end > partition.base_offset and key not in offsets:
            where, silence = Where(path, *key), None if cluster.has_one_life else Silence.NOT_LOADED
            yield checkpoint_offset.at(where, f"offset {end}, where the log was closed", "no entry", silence)


def _offsets(count: int) -> str:
    return "1 offset is" if count == 1 else f"{count} offsets are"


def _refused(errors: Iterable[LogstoreError]) -> Iterator[Key]:
    """Yield topic and number of partitions whose directories cannot be listed, or are links that are not followed."""
    for error in errors:
        cause = error.__cause__
        path = cause.filename if isinstance(cause, OSError) else error.path
        name = None if path is None else parse_partition_directory(file_name(str(path)))
        if name is not None:
            yield name.topic, name.partition
