r"""`meta.properties`, in a data directory: its cluster, node and id (`MetaProperties`, KIP-631, KIP-858).

Java properties (`java_properties`): two comment lines, then the keys in any order. Unknown keys are ignored.

    version 1 (KRaft)        version=1, cluster.id, node.id, and directory.id if it has one
    version 0 (ZooKeeper)    version=0 or none, broker.id and cluster.id if it has them

`directory.id` is a UUID's 22 characters. A broker refuses a directory whose ids are not its own.

>>> data = bytes.fromhex("230a 76657273696f6e3d310a 6e6f64652e69643d310a 636c75737465722e69643d61620a")
>>> parse_meta_properties(data)
MetaProperties(version=1, cluster_id='ab', node_id=1, directory_id=None)
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import CheckpointFormatError
from .java_integer import parse_int
from .java_properties import parse_properties
from .kafka_uuid import format_uuid, parse_uuid

FILE_NAME = "meta.properties"
VERSION_KEY = "version"
CLUSTER_ID_KEY = "cluster.id"
BROKER_ID_KEY = "broker.id"
NODE_ID_KEY = "node.id"
DIRECTORY_ID_KEY = "directory.id"


class MetaProperties(NamedTuple):
    """Content of the file; `node_id` is `broker.id` in version 0; None for a missing key."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def parse_meta_properties(data: bytes) -> MetaProperties:
    """Parse the whole file; raise CheckpointFormatError with Kafka's message (a `RuntimeException` there)."""
    properties = parse_properties(data)
    version = _version(properties.get(VERSION_KEY, "0"))
    node_id = None
    if version > 0 or BROKER_ID_KEY in properties:
        node_id = _required_int(properties, NODE_ID_KEY if version > 0 else BROKER_ID_KEY)
    directory_id = _directory_id(properties.get(DIRECTORY_ID_KEY))
    cluster_id = properties.get(CLUSTER_ID_KEY)
    if version > 0 and cluster_id is None:
        raise _error("cluster.id was not found.")
    return MetaProperties(version, cluster_id, node_id, directory_id)


def _version(text: str) -> int:
    version = parse_int(text.strip("".join(map(chr, range(0x21)))))  # what `String.trim` removes
    if version is None:
        raise _error(f"Invalid meta.properties version string '{text}'")
    if version not in (0, 1):
        raise _error(f"Unknown meta.properties version number {version}")
    return version


def _required_int(properties: dict[str, str], key: str) -> int:
    if key not in properties:
        raise _error(f"Failed to find {key}")
    value = parse_int(properties[key])
    if value is None:
        raise _error(f"Unable to read {key} as a base-10 number.")
    return value


def _directory_id(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return format_uuid(parse_uuid(text))
    except CheckpointFormatError as error:
        raise _error(f"Unable to read directory.id as a Uuid: {error.message}") from error


def _error(text: str) -> CheckpointFormatError:
    return CheckpointFormatError(text, java_class="java.lang.RuntimeException")
