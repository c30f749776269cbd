r"""`partition.metadata`, in a partition's directory: the topic's id (`PartitionMetadataFile`, KIP-516).

    version: 0\n
    topic_id: <22 characters>        no newline at the end

UTF-8. Lines are split at a colon and the whitespace behind it; the words before the colon are ignored, as is any third
line. The id must not be all zeros. A broker renames a directory without the file, or whose id no topic has, to
`-stray`; it does not start beside a file that does not parse.

>>> data = bytes.fromhex("76657273696f6e3a20300a"
...     "746f7069635f69643a206471456e642d7837536b4b636b7655305f6b4a674c51")
>>> parse_partition_metadata(data, path="/d/partition.metadata")
PartitionMetadata(version=0, topic_id='dqEnd-x7SkKckvU0_kJgLQ')
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import CheckpointFormatError
from .checkpoint import text_lines
from .java_integer import parse_int
from .kafka_uuid import ZERO_UUID, format_uuid, parse_uuid

CURRENT_VERSION = 0
FILE_NAME = "partition.metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"  # of `__cluster_metadata`, in every cluster (`Uuid.METADATA_TOPIC_ID`)
_SEPARATOR = re.compile(":[ \t\n\x0b\f\r]+")


class PartitionMetadata(NamedTuple):
    """Content of the file; `topic_id` is a UUID's 22 characters."""

    version: int
    topic_id: str


def parse_partition_metadata(data: bytes, *, path: str) -> PartitionMetadata:
    """Parse the whole file; raise CheckpointFormatError with Kafka's message."""
    lines = text_lines(data, path=path)
    version_line = _line(lines, 0, path)
    version = parse_int(_value(version_line, path))
    if version is None:
        raise _malformed_line(version_line, path)
    if version < 0:
        raise CheckpointFormatError(f"Unrecognized version of partition metadata file ({path}): {version}")
    topic_id = parse_uuid(_value(_line(lines, 1, path), path))
    if topic_id == ZERO_UUID:
        raise CheckpointFormatError(f"Invalid topic ID in partition metadata file ({path})")
    return PartitionMetadata(version, format_uuid(topic_id))


def _line(lines: list[str], index: int, path: str) -> str:
    if index >= len(lines):
        raise CheckpointFormatError(
            None,
            path=path,
            expected=f"{index + 1} lines or more",
            found=len(lines),
            java_class="java.lang.NullPointerException",
        )
    return lines[index]


def _value(line: str, path: str) -> str:
    parts = _SEPARATOR.split(line)
    if len(parts) != 2 or not parts[1]:
        raise _malformed_line(line, path)
    return parts[1]


def _malformed_line(line: str, path: str) -> CheckpointFormatError:
    return CheckpointFormatError(f"Malformed line in partition metadata file [{path}]: {line}")
