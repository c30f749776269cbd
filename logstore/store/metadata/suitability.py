"""Suitability of a data directory for a store: one node, one directory, features of known levels."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...config.kafka_version import METADATA_VERSION, NEWEST, level_name, unknown_levels
from ...disk.names import child, parent
from ...disk.side_files import read_quorum_state
from ...errors import CheckpointFormatError, DataDirectoryError
from ...layout import clean_shutdown, quorum_state
from ...layout.file_names import directory_name
from ...layout.quorum_state import QuorumState
from ...replay.metadata_state import MetadataState, metadata_damage
from .topics import NodeDirectory

_NEWER_ADVICE = "open the directory with a logstore that knows that Kafka, or read_only"

#: directories of partitions that a broker assigns when it starts: MIGRATING, after the level was raised to that of
#: directories, and UNASSIGNED (`DirectoryId`)
_NOT_ASSIGNED = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")


def require_suitable(state: MetadataState, path: str, node: NodeDirectory, *, has_partitions: bool) -> None:
    """Raise DataDirectoryError unless the directory belongs to this node alone, CorruptRecordError for lost metadata.

    `path` is that of the metadata log; `has_partitions`: directories of partitions are beside it.
    """
    _require_only_voter(state, path, node)
    require_known_kafka(state, path)
    _require_one_directory(state, path, node)
    if has_partitions and not state.image.features:
        damage = metadata_damage(path) if os.path.isdir(path) else None
        if damage is not None:  # the log is not empty: its first records cannot be read
            raise damage
        raise DataDirectoryError(
            "There are partitions, but the metadata of their topics is not here",
            path=path,
            expected="the directory of metadata.log.dir, which for one of several log.dirs is the first",
            found="an empty metadata log",
            advice="name that one, after its broker has moved every partition there; or open the directory read_only",
        )


def quorum_of(directory: str, kraft_version: int) -> QuorumState:
    """Return `quorum-state` of the metadata log in a directory; raises LogstoreError if it cannot be read."""
    path = child(directory, quorum_state.FILE_NAME)
    if not os.path.exists(path):
        return QuorumState(min(kraft_version, 1), -1, 0, -1, None, ())
    try:
        return read_quorum_state(path)
    except CheckpointFormatError as error:
        error.path = path
        error.advice = (
            "no broker starts on it: put it back from a copy; or delete it, where this node is the only voter: it goes "
            "on from the epochs of its log"
        )
        raise


def _require_only_voter(state: MetadataState, path: str, node: NodeDirectory) -> None:
    voters = {(voter["voterId"], voter["voterDirectoryId"]) for voter in state.voters}
    # where a configuration names the voters, the file alone has them, without directories
    configured = quorum_of(path, kraft_version=0).voter_ids
    if voters - {node} or set(configured) - {node.node_id}:
        names = [f"{node_id} in directory {directory_id}" for node_id, directory_id in sorted(voters)]
        advice = "open the directory read_only; or put back the meta.properties that it had"
        if node in voters:
            remove = "first remove the other voters while they run, `kafka-metadata-quorum.sh … remove-controller`"
            advice = f"{remove}; or open the directory read_only"
        raise DataDirectoryError(
            "The metadata log belongs to a quorum of other nodes or directories",
            path=path,
            expected=f"node {node.node_id} in directory {node.directory_id} as its only voter",
            found=f"voters {', '.join([*map(str, configured), *names])}",
            advice=advice,
        )


def require_known_kafka(state: MetadataState, path: str) -> None:
    """Raise DataDirectoryError if a newer Kafka than any known here wrote the metadata, or one before 3.3."""
    if state.image.features:
        require_known_levels(state.image.features, path)
    if state.image.newer_offsets:
        raise DataDirectoryError(
            f"The directory was {state.image.newer_kafka}",
            path=path,
            offset=state.image.newer_offsets[0],
            expected=f"records of Kafka {NEWEST} or older",
            advice=_NEWER_ADVICE,
        )


def require_known_levels(features: Mapping[str, int], path: str) -> None:
    """Raise DataDirectoryError unless each feature has a level that is known here, `metadata.version` too.

    Features that are left out have level 0; `path` is that of what says so.
    """
    for name, level in {METADATA_VERSION: 0, **features}.items():
        lowest, highest = NEWEST.features.get(name, (0, 0))
        if lowest <= level <= highest:
            continue
        known = f"level {lowest} to {highest}" if highest else "a feature that is known here"
        if name == METADATA_VERSION:
            known = f"level {lowest} ({level_name(lowest)}) to {highest} ({level_name(highest)})"
        newer = unknown_levels({name: level})
        raise DataDirectoryError(
            f"The directory was written by a newer Kafka ({newer[0]})"
            if newer
            else f"The directory's {name} is not one that Kafka {NEWEST} knows",
            path=path,
            expected=known,
            found=level or "none",
            advice=_NEWER_ADVICE,
        )


def _require_one_directory(state: MetadataState, path: str, node: NodeDirectory) -> None:
    broker, root = state.image.brokers.get(node.node_id), parent(path)
    registered = set(broker.directories) if broker is not None else set()
    here = {node.directory_id, *(_NOT_ASSIGNED if registered <= {node.directory_id} else ())}
    is_closed = os.path.exists(child(root, clean_shutdown.FILE_NAME))
    for name, topic in state.image.topics.items():
        for number, partition in topic.partitions.items():
            found = f"{name}-{number} on {partition.replicas} in {partition.directories}"
            is_here = partition.replicas == (node.node_id,) and here.issuperset(partition.directories)
            # below the level of directories a second of several log.dirs is on no record
            if is_here and is_closed and not partition.directories and not registered:
                is_here = os.path.isdir(child(root, directory_name(name, number)))
                found = f"no directory of {name}-{number}, though the broker was stopped in order"
            if not is_here:
                advice = (
                    "first let its brokers move every partition here: `kafka-reassign-partitions.sh --execute` with "
                    f"[{node.node_id}] as replicas and this directory in log_dirs; or open the directory read_only"
                )
                if partition.directories and node.directory_id not in registered:
                    advice = f"a controller's directory, or a metadata.log.dir, is in no broker's log.dirs; {advice}"
                raise DataDirectoryError(
                    "A partition has replicas in other directories or on other nodes",
                    path=path,
                    expected=f"all partitions on node {node.node_id} in directory {node.directory_id}",
                    found=found,
                    advice=advice,
                )
