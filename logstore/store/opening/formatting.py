"""Formatting of a new data directory, as `kafka-storage format --standalone` does (`Formatter`), and its owner.

`meta.properties` is written last: a crash before that leaves a directory without an owner, which is formatted again.
"""

from __future__ import annotations

import os
import struct

from ...config.kafka_version import KafkaVersion
from ...disk.atomic import CHECKPOINT_TEMPORARY_SUFFIX, replace_file
from ...disk.directory import list_data_directory, partition_directories
from ...disk.names import child, parent
from ...disk.recognition import require_no_parent
from ...disk.seam import Seam
from ...disk.side_files import read_meta_properties
from ...errors import CheckpointFormatError, DataDirectoryError, UsageError
from ...layout import meta_properties
from ...layout.checkpoint_writing import meta_properties_bytes
from ...layout.file_names import BOOTSTRAP_SNAPSHOT_NAME
from ...layout.kafka_uuid import parse_uuid, random_uuid
from ...layout.meta_properties import MetaProperties
from ..metadata.batches import dynamic_quorum, snapshot_bytes, voter_fields
from ..metadata.features import new_cluster_records
from ..metadata.log import DIRECTORY_NAME
from ..metadata.topics import NodeDirectory

NODE_ID = 1
BOOTSTRAP_SNAPSHOT_ID = "00000000000000000000-0000000000.checkpoint"
RESERVED_ID_COUNT = 100
_NEW_PROPERTIES = "put the file back as it was; or move it away, and let `logstore promote` make another"


def make_root(seam: Seam, path: str) -> None:
    """Create the directory at `path`, and its parents."""
    if os.path.isdir(path):
        return
    make_root(seam, parent(path))
    if not os.path.isdir(path):  # `.` and `..` are there when their parent is
        seam.make_directory(path)
        seam.sync_directory(parent(path))


def require_formattable(path: str) -> None:
    """Raise unless a directory has an owner, or holds nothing but what an interrupted formatting leaves."""
    properties_path = child(path, meta_properties.FILE_NAME)
    if not os.path.exists(properties_path):
        require_no_parent(path)
    partition_directories(path)
    if os.path.exists(properties_path):
        return
    found = list_data_directory(path)
    metadata_path = child(path, DIRECTORY_NAME)
    partitions = [
        partition.path for partition in found.partitions if partition.path != metadata_path or partition.segments
    ]
    foreign = [name for name in found.strangers if not name.endswith(CHECKPOINT_TEMPORARY_SUFFIX)]
    if os.path.exists(properties_path):  # another process has just made it, and has its lock
        return
    if partitions and not (found.is_foreign and foreign):
        raise DataDirectoryError(
            "There are partitions in a directory without meta.properties: nobody knows whose they are",
            path=path,
            expected="an empty directory, or one that a broker or logstore.open made",
            found=partitions[0],
            advice="put meta.properties back, or let `logstore promote` make one; or open it read_only",
        )
    if foreign:
        found.require_no_partition()
        raise DataDirectoryError(
            "This is not a Kafka data directory, and a new one is made only where nothing else is",
            path=path,
            expected="meta.properties, or an empty directory",
            found=foreign[0],
            advice="name another directory, which need not exist",
        )


def format_directory(
    seam: Seam, path: str, now_ms: int, kafka: KafkaVersion, cluster_id: str | None = None
) -> MetaProperties:
    """Write the first files of a new directory, with the levels of a new cluster of this version, under its lock.

    `cluster_id` None takes a random one.
    """
    properties = MetaProperties(1, random_uuid() if cluster_id is None else cluster_id, NODE_ID, random_uuid())
    write_bootstrap(seam, path, node_of(properties), now_ms, kafka)
    write_properties(seam, path, properties, now_ms)
    return properties


def write_bootstrap(seam: Seam, path: str, node: NodeDirectory, now_ms: int, kafka: KafkaVersion) -> None:
    """Write the initial levels of features, and the only voter of the quorum."""
    snapshot = snapshot_bytes([], new_cluster_records(kafka), 0, now_ms)
    replace_file(seam, child(path, BOOTSTRAP_SNAPSHOT_NAME), snapshot)
    metadata_path = child(path, DIRECTORY_NAME)
    make_root(seam, metadata_path)
    quorum = dynamic_quorum(voter_fields(node.node_id, node.directory_id))
    replace_file(seam, child(metadata_path, BOOTSTRAP_SNAPSHOT_ID), snapshot_bytes(quorum, [], now_ms, now_ms))


def write_properties(seam: Seam, path: str, properties: MetaProperties, now_ms: int) -> None:
    """Write `meta.properties`: from now on the directory has an owner."""
    replace_file(seam, child(path, meta_properties.FILE_NAME), meta_properties_bytes(properties, now_ms))


def node_of(properties: MetaProperties) -> NodeDirectory:
    """Return the node and directory of all partitions."""
    assert properties.node_id is not None
    assert properties.directory_id is not None
    return NodeDirectory(properties.node_id, properties.directory_id)


def owner(path: str) -> MetaProperties | None:
    """Return `meta.properties`; None without the file."""
    file = child(path, meta_properties.FILE_NAME)
    if not os.path.exists(file):
        return None
    try:
        properties = read_meta_properties(file)
    except CheckpointFormatError as error:
        error.path = file
        error.advice = _NEW_PROPERTIES
        raise
    has_metadata = os.path.isdir(child(parent(file), DIRECTORY_NAME))
    if has_metadata and properties.version == 0 and properties.node_id is None:
        raise CheckpointFormatError(
            f"{meta_properties.FILE_NAME} has no ids beside a metadata log of KRaft: it was emptied or cut",
            path=file,
            expected="version=1 with node.id, cluster.id and directory.id",
            found=f"version={properties.version}, node.id={properties.node_id}",
            advice=_NEW_PROPERTIES,
        )
    # a broker that was migrated from ZooKeeper keeps its file of version 0, and starts on it
    is_migrated = has_metadata and properties.cluster_id is not None
    if properties.directory_id is None or (properties.version == 0 and not is_migrated):
        raise DataDirectoryError(
            "The data directory is of a broker before KRaft, or before KIP-858",
            path=file,
            expected="version=1 with node.id, cluster.id and directory.id",
            found=f"version={properties.version}, directory.id={properties.directory_id}",
            advice="let a Kafka 3.9 broker migrate it first; reading is possible with read_only",
        )
    if _is_reserved(properties.directory_id):
        raise DataDirectoryError(
            f"Invalid resrved directory ID {properties.directory_id} found in {path}",  # as Kafka spells it
            path=file,
            advice=_NEW_PROPERTIES,
            java_class="java.lang.RuntimeException",
        )
    return properties


def _is_reserved(directory_id: str) -> bool:
    """Return whether an id stands for a lost or unassigned directory (`DirectoryId.reserved`)."""
    high, low = struct.unpack(">qq", parse_uuid(directory_id))
    return bool(high == 0 and low < RESERVED_ID_COUNT)


def require_cluster_id(cluster_id: object) -> None:
    """Raise UsageError unless a cluster id is None or a non-empty text."""
    if cluster_id is not None and (not isinstance(cluster_id, str) or not cluster_id):
        raise UsageError(
            "A cluster id is text, and not empty",
            expected="as `kafka-storage random-uuid` makes one",
            found=repr(cluster_id),
        )


def require_cluster(path: str, properties: MetaProperties, cluster_id: str | None) -> None:
    """Raise DataDirectoryError if the directory belongs to another cluster (`MetaPropertiesEnsemble.verify`)."""
    if cluster_id is not None and properties.cluster_id != cluster_id:
        file = child(path, meta_properties.FILE_NAME)
        raise DataDirectoryError(
            f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {properties.cluster_id}",
            path=file,
            advice="open the directory of that cluster; or leave cluster_id out, if this is the one that is meant",
            java_class="java.lang.RuntimeException",
        )
