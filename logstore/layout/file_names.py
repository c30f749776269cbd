"""Names of files and directories in a data directory (`LogFileUtils`, `LocalLog`, `Snapshots`).

In a partition's directory, where an offset is 20 decimal digits with leading zeros:

    <base offset>.log .index .timeindex .txnindex    one segment
    <offset>.snapshot                                producer state of all offsets below
    <any of these>.cleaned .swap .deleted            incomplete; complete and to be swapped in; to be deleted
    <offset>-<epoch>.checkpoint                      KRaft snapshot; the epoch has 10 digits
    <offset>-<epoch>[-<random>].checkpoint.part      KRaft snapshot that is being written
    <offset>-<epoch>.checkpoint.deleted              KRaft snapshot to be deleted

Kafka reads the number before the first dot of a name; it need not have 20 digits.

Directories of partitions, in the root:

    <topic>-<partition>                      split at the last dash
    <topic>-<partition>.<unique>-delete      being deleted; a long topic is cut to keep the name ≤ 255
    <topic>-<partition>.<unique>-future      a replica that moves to this data directory
    <topic>-<partition>.<unique>-stray       a replica that the cluster's metadata does not have here

>>> base_offset_of(bytes.fromhex("3030303030303030303030303030303030333230 2e6c6f67").decode())
320
>>> segment_file_name(320, LOG_SUFFIX)
'00000000000000000320.log'
>>> parse_partition_directory("my-topic-7.0f2a-delete")
PartitionDirectory(topic='my-topic', partition=7, kind=<DirectoryKind.DELETE: '-delete'>)
>>> parse_kraft_snapshot_name("00000000000000000042-0000000003.checkpoint")
KraftSnapshotName(end_offset=42, epoch=3, partial=False, deleted=False)
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from ..errors import InvalidNameError
from .java_integer import number_format_text, parse_int, parse_long

OFFSET_DIGIT_COUNT = 20
EPOCH_DIGIT_COUNT = 10
DIRECTORY_NAME_LENGTH_MAX = 255

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
KRAFT_SNAPSHOT_SUFFIX = ".checkpoint"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
DUMPED_SUFFIXES = (*SEGMENT_SUFFIXES, PRODUCER_SNAPSHOT_SUFFIX, KRAFT_SNAPSHOT_SUFFIX)  # by `kafka-dump-log`

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
KRAFT_PARTIAL_SUFFIX = ".checkpoint.part"
KRAFT_DELETED_SUFFIX = ".checkpoint.deleted"
BOOTSTRAP_SNAPSHOT_NAME = "bootstrap.checkpoint"
LOCK_FILE_NAME = ".lock"  # empty; a broker holds a lock on it while it runs

METADATA_TOPIC = "__cluster_metadata"
REMOTE_INDEX_CACHE_NAME = "remote-log-index-cache"
_JAVA_BLANKS = " \t\n\x0b\f\r"


class DirectoryKind(Enum):
    """Purpose of a partition's directory; the value is the end of its name."""

    LIVE = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class PartitionDirectory(NamedTuple):
    """Parsed name of a partition's directory."""

    topic: str
    partition: int
    kind: DirectoryKind


_SET_ASIDE_SUFFIXES = tuple(kind.value for kind in DirectoryKind if kind.value)


class KraftSnapshotName(NamedTuple):
    """Parsed name of a KRaft snapshot, which holds all offsets below `end_offset`."""

    end_offset: int
    epoch: int
    partial: bool
    deleted: bool


@lru_cache(maxsize=1024)  # many directories have files of the same names
def base_offset_of(file_name: str) -> int:
    """Return the number before the first dot; raise InvalidNameError, with Java's message, if it has not 64 bits."""
    return _long(file_name.split(".", 1)[0])


@lru_cache(maxsize=1024)  # each read asks for its segment's names
def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return f"{base_offset:0{OFFSET_DIGIT_COUNT}d}{suffix}"


def has_offset(file_name: str) -> bool:
    """Return whether a name begins with an offset, as those of a log's files do.

    >>> has_offset("00000000000000000320.index.swap"), has_offset("server.log")
    (True, False)
    """
    return parse_long(file_name.split(".", 1)[0]) is not None


def is_segment_name(file_name: str) -> bool:
    """Return whether a name is that of a segment's log."""
    return file_name.endswith(LOG_SUFFIX) and has_offset(file_name)


def is_renamed_log(file_name: str) -> bool:
    """Return whether somebody else has given a segment's log its name, so that no broker reads it.

    >>> is_renamed_log("00000000000000000320.log.gz"), is_renamed_log("00000000000000000320.LOG")
    (True, True)
    >>> is_renamed_log("00000000000000000320.log"), is_renamed_log("00000000000000000320.log.deleted")
    (False, False)
    """
    is_kafkas = is_segment_name(file_name) or file_name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX))
    return has_offset(file_name) and not is_kafkas and f".{file_name.split('.', 1)[1]}".lower().startswith(LOG_SUFFIX)


def parse_kraft_snapshot_name(file_name: str) -> KraftSnapshotName | None:
    """Parse the name of a KRaft snapshot; None if it has no suffix of one (`Snapshots.parse`).

    Raises:
        InvalidNameError: it has one, but is too short or holds no numbers; Java's message.
    """
    partial = file_name.endswith(KRAFT_PARTIAL_SUFFIX)
    deleted = file_name.endswith(KRAFT_DELETED_SUFFIX)
    if not (partial or deleted or file_name.endswith(KRAFT_SNAPSHOT_SUFFIX)):
        return None
    epoch_start = OFFSET_DIGIT_COUNT + 1
    end_offset = _long(_substring(file_name, 0, OFFSET_DIGIT_COUNT))
    epoch_text = _substring(file_name, epoch_start, epoch_start + EPOCH_DIGIT_COUNT)
    epoch = parse_int(epoch_text)
    if epoch is None:
        raise InvalidNameError(number_format_text(epoch_text))
    return KraftSnapshotName(end_offset, epoch, partial, deleted)


def parse_partition_directory(name: str) -> PartitionDirectory | None:
    """Parse the name of a partition's directory; None if Kafka refuses it (`LocalLog.parseTopicPartitionName`)."""
    kind = DirectoryKind.LIVE
    if name.endswith(_SET_ASIDE_SUFFIXES):
        kind = next(k for k in DirectoryKind if k.value and name.endswith(k.value))
        if not _has_unique_id(name[: -len(kind.value)]):
            return None
        name = name[: name.rindex(".")]
    topic, _, partition_text = name.rpartition("-")
    partition = parse_int(partition_text)
    if not topic or partition is None:
        return None
    return PartitionDirectory(topic, partition, kind)


def directory_name(topic: str, partition: int) -> str:
    """Return the name of a partition's directory."""
    return f"{topic}-{partition}"


def set_aside_name(topic: str, partition: int, unique_id: str, kind: DirectoryKind) -> str:
    """Return the name of a directory that is to be deleted, or stray; cuts a long topic (`LocalLog.logDeleteDirName`).

    >>> set_aside_name("orders", 7, "0f2a", DirectoryKind.DELETE)
    'orders-7.0f2a-delete'
    """
    suffix = f"-{partition}.{unique_id}{kind.value}"
    return topic[: DIRECTORY_NAME_LENGTH_MAX - len(suffix)] + suffix


def foreign_directory_text(name: str, canonical_path: str) -> str:
    """Return Kafka's message for a directory whose name it refuses; a broker does not start beside one."""
    return (
        f"Found directory {canonical_path}, '{name}' is not in the form of topic-partition or "
        "topic-partition.uniqueId-delete (if marked for deletion).\n"
        "Kafka's log directories (and children) should only contain Kafka topic data."
    )


def _has_unique_id(stem: str) -> bool:
    r"""Return whether `stem` matches (\S+)-(\S+)\.(\S+), without the backtracking of a regular expression."""
    if any(blank in stem for blank in _JAVA_BLANKS):
        return False
    dash = stem.find("-", 1)
    return dash > 0 and stem.rfind(".", 0, len(stem) - 1) > dash + 1


def _substring(text: str, begin: int, end: int) -> str:
    if end > len(text):
        raise InvalidNameError(
            f"begin {begin}, end {end}, length {len(text)}",
            java_class="java.lang.StringIndexOutOfBoundsException",
        )
    return text[begin:end]


def _long(text: str) -> int:
    value = parse_long(text)
    if value is None:
        raise InvalidNameError(number_format_text(text))
    return value
