"""Checkpoints and `partition.metadata` of a data directory, against its partitions (`LogManager`, KIP-516)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..disk.directory import DataDirectoryFiles, PartitionFiles
from ..disk.side_files import read_offset_checkpoint, read_partition_metadata
from ..errors import CheckpointFormatError, DataDirectoryError
from ..layout import offset_checkpoint, partition_metadata
from ..layout.file_names import METADATA_TOPIC, DirectoryKind
from . import rules
from .finding import Finding, Where
from .partition import Report, unless_gone


class LogRange(NamedTuple):
    """Where a log starts and ends; the end is exclusive.

    Attributes:
        is_open: a broker may be writing, and checkpoints are older or newer than what was seen of the log.
    """

    start_offset: int
    end_offset: int
    is_open: bool


def checkpoint_findings(directory: DataDirectoryFiles, ranges: Mapping[tuple[str, int], LogRange]) -> list[Finding]:
    """What the offset checkpoints of `directory` say that its logs cannot have been.

    Args:
        ranges: of the partitions that could be read.
    """
    known = {(files.topic, files.partition) for files in directory.partitions if files.kind is not DirectoryKind.DELETE}
    findings = []
    for name in offset_checkpoint.FILE_NAMES:
        path = directory.files.get(name)
        if path is None:
            continue
        try:
            offsets = unless_gone(read_offset_checkpoint, path)
        except (CheckpointFormatError, DataDirectoryError) as error:
            where = Where(path, position=error.position)
            findings.append(
                rules.CHECKPOINT_FORMAT.finding(where, expected="topics, partitions and offsets", found=error.message)
            )
            continue
        for (topic, partition), offset in (offsets or {}).items():
            where = Where(path, topic, partition, offset=offset)
            log = ranges.get((topic, partition))
            if (topic, partition) not in known:
                findings.append(
                    rules.CHECKPOINT_PARTITION.finding(where, expected=f"a directory {topic}-{partition}", found="none")
                )
            elif log is not None and not _fits(offset, log):
                expected = f"an offset from {log.start_offset} to {log.end_offset}"
                findings.append(rules.CHECKPOINT_OFFSET.finding(where, expected=expected, found=offset))
    return findings


def _fits(offset: int, log: LogRange) -> bool:
    """Below the log's start is what a checkpoint says that is older than the last retention."""
    return 0 <= offset <= log.end_offset or (log.is_open and offset >= 0)


def topic_id_findings(partitions: list[PartitionFiles], known_ids: Mapping[str, str]) -> list[Finding]:
    """All partitions of a topic have a `partition.metadata`, with one id; a stray one may be of a topic of before.

    Args:
        known_ids: from topic to the id that `__cluster_metadata` has.
    """
    ids = {topic: (topic_id, METADATA_TOPIC) for topic, topic_id in known_ids.items()}
    findings: list[Finding] = []
    for files in partitions:
        if files.kind in (DirectoryKind.DELETE, DirectoryKind.STRAY) or files.topic == METADATA_TOPIC:
            continue
        report = Report(files.topic, files.partition)
        topic_id = _topic_id(files, report)
        findings += report.findings
        if topic_id is None:
            continue
        path = files.files[partition_metadata.FILE_NAME]
        first_id, first_path = ids.setdefault(files.topic, (topic_id, path))
        if topic_id != first_id:
            where = Where(path, files.topic, files.partition)
            findings.append(
                rules.PARTITION_METADATA.finding(where, expected=f"{first_id}, as {first_path}", found=topic_id)
            )
    return findings


def _topic_id(files: PartitionFiles, report: Report) -> str | None:
    path = files.files.get(partition_metadata.FILE_NAME)
    try:
        metadata = None if path is None else unless_gone(read_partition_metadata, path)
    except CheckpointFormatError as error:
        report.add_error(rules.PARTITION_METADATA, path, error, expected="a version and a topic id")
        return None
    if metadata is None:
        report.add(rules.PARTITION_METADATA, files.path, expected=partition_metadata.FILE_NAME, found="none")
        return None
    return metadata.topic_id
