"""Suitability of a data directory for a store: one node, one directory, features of known levels."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import DataDirectoryError
from ...replay.metadata_image import METADATA_VERSION
from ...replay.metadata_state import MetadataState
from ...topics.cluster_metadata import encode_value
from .topics import NodeDirectory

#: feature to the lowest and highest level that Kafka 4.3.1 knows
SUPPORTED_FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    METADATA_VERSION: (7, 30),  # 3.3-IV3 to 4.3-IV0
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
_RAFT_FEATURE = "kraft.version"  # a control record of the metadata log, not a FeatureLevelRecord


def feature_records() -> list[bytes]:
    """Return the records of the levels that Kafka 4.3.1 gives a new cluster: the highest, `metadata.version` first."""
    names = [METADATA_VERSION, *(name for name in SUPPORTED_FEATURES if name not in (METADATA_VERSION, _RAFT_FEATURE))]
    levels = {name: SUPPORTED_FEATURES[name][1] for name in names}
    return [encode_value("FeatureLevelRecord", {"name": name, "featureLevel": level}) for name, level in levels.items()]


def require_suitable(state: MetadataState, path: str, node: NodeDirectory, *, has_partitions: bool) -> None:
    """Raise DataDirectoryError unless the directory belongs to this node alone.

    Args:
        path: of the metadata log, for messages.
        has_partitions: it contains directories of partitions.
    """
    _require_only_voter(state, path, node)
    if state.image.features:
        require_known_levels(state.image.features, path)
    _require_one_directory(state, path, node)
    if has_partitions and not state.image.features:
        raise DataDirectoryError(
            "There are partitions, but the metadata of their topics is not here",
            path=path,
            expected="the directory of metadata.log.dir, which for one of several log.dirs is the first",
            found="an empty metadata log",
            advice="name that one, after its broker has moved every partition there; or open the directory read_only",
        )


def _require_only_voter(state: MetadataState, path: str, node: NodeDirectory) -> None:
    voter_ids = {voter["voterId"] for voter in state.voters}
    if voter_ids - {node.node_id}:
        raise DataDirectoryError(
            "The metadata log belongs to a quorum of other nodes",
            path=path,
            expected=f"node {node.node_id} as its only voter",
            found=f"voters {', '.join(map(str, sorted(voter_ids)))}",
            advice="open the directory read_only",
        )


def require_known_levels(features: Mapping[str, int], path: str) -> None:
    """Raise DataDirectoryError unless each feature has a level that Kafka 4.3.1 knows, `metadata.version` too.

    Args:
        features: the finalized ones; of level 0 are those that are left out.
        path: of what says so, for messages.
    """
    for name, level in {METADATA_VERSION: 0, **features}.items():
        lowest, highest = SUPPORTED_FEATURES.get(name, (0, 0))
        if not lowest <= level <= highest:
            names = (
                f"{lowest} (3.3-IV3) to {highest} (4.3-IV0)" if name == METADATA_VERSION else f"{lowest} to {highest}"
            )
            raise DataDirectoryError(
                f"The directory's {name} is not one that Kafka 4.3.1 knows",
                path=path,
                expected=f"level {names}",
                found=level or "none",
                advice="open the directory with a logstore of that version, or read_only",
            )


def _require_one_directory(state: MetadataState, path: str, node: NodeDirectory) -> None:
    for name, topic in state.image.topics.items():
        for number, partition in topic.partitions.items():
            is_here = not partition.directories or partition.directories == (node.directory_id,)
            if partition.replicas != (node.node_id,) or not is_here:
                advice = (
                    "first let its brokers move every partition here: `kafka-reassign-partitions.sh --execute` with "
                    f"[{node.node_id}] as replicas and this directory in log_dirs; or open the directory read_only"
                )
                raise DataDirectoryError(
                    "A partition has replicas in other directories or on other nodes",
                    path=path,
                    expected=f"all partitions on node {node.node_id} in directory {node.directory_id}",
                    found=f"{name}-{number} on {partition.replicas} in {partition.directories}",
                    advice=advice,
                )
