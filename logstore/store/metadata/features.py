"""Features and the levels of them that Kafka 4.3.1 knows, as records of the metadata log."""

from __future__ import annotations

from ...topics.cluster_metadata import encode_value
from .image import METADATA_VERSION

#: from feature to the lowest and highest level that Kafka 4.3.1 knows
SUPPORTED_FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    METADATA_VERSION: (7, 30),  # 3.3-IV3 to 4.3-IV0
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
_RAFT_FEATURE = "kraft.version"  # a control record of the metadata log, not a record of its own


def feature_records() -> list[bytes]:
    """Return the records of the levels that Kafka 4.3.1 gives a new cluster: the highest, `metadata.version` first."""
    names = [METADATA_VERSION, *(name for name in SUPPORTED_FEATURES if name not in (METADATA_VERSION, _RAFT_FEATURE))]
    levels = {name: SUPPORTED_FEATURES[name][1] for name in names}
    return [encode_value("FeatureLevelRecord", {"name": name, "featureLevel": level}) for name, level in levels.items()]
