"""First records of a metadata log: levels of features, and the registration of the store as a broker.

Marks of clean shutdowns and blocks of producer ids need the epoch of the registration.
"""

from __future__ import annotations

import os

from ...disk.mapped import MappedFile
from ...disk.names import child
from ...layout.file_names import BOOTSTRAP_SNAPSHOT_NAME
from ...layout.kafka_uuid import random_uuid
from ...topics.cluster_metadata import encode_value
from ...view.metadata_image import BROKER_RESOURCE, METADATA_VERSION
from ...view.replay import ReplayedRecord, replayed_file
from ..metadata.log import MetadataLog
from ..metadata.suitability import SUPPORTED_FEATURES, feature_records
from ..metadata.topics import NodeDirectory

_VERSIONS = ((30, 4), (17, 3), (8, 2), (0, 1))  # (lowest metadata.version, version of the record)


def begin(path: str, metadata: MetadataLog, place: NodeDirectory) -> None:
    """Write the first records of an empty metadata log, and register the node if it is unknown."""
    if not metadata.image.features:
        metadata.lead()
        metadata.append(_bootstrap_records(path))
    _require_registration(metadata, place.node_id, place.directory_id)


def _bootstrap_records(path: str) -> list[bytes]:
    """Return the records of `bootstrap.checkpoint` as one metadata transaction (`ActivationRecordsGenerator`)."""
    file = child(path, BOOTSTRAP_SNAPSHOT_NAME)
    values = feature_records()
    if os.path.exists(file):
        with MappedFile(file) as snapshot:
            records = [one for one in replayed_file(snapshot.data, file) if isinstance(one, ReplayedRecord)]
        values = [one.value for one in records if one.value is not None]
    default = {"resourceType": BROKER_RESOURCE, "resourceName": "", "name": "min.insync.replicas", "value": "1"}
    begin = encode_value("BeginTransactionRecord", {"name": "Bootstrap records"})
    end = encode_value("EndTransactionRecord", {})
    return [begin, *values, encode_value("ConfigRecord", default), end]


def _require_registration(metadata: MetadataLog, node_id: int, directory_id: str) -> None:
    """Register this node if it is unknown; as fenced, because no client can reach it."""
    if node_id not in metadata.image.brokers:
        metadata.lead()
        features = [
            {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ]
        level = metadata.image.features[METADATA_VERSION]
        version = next(version for least, version in _VERSIONS if level >= least)
        fields = {
            "brokerId": node_id,
            "incarnationId": random_uuid(),
            "brokerEpoch": metadata.next_offset,
            "endPoints": [],
            "features": features,
            "fenced": True,
        }
        if version >= 3:
            fields["logDirs"] = [directory_id]
        metadata.append([encode_value("RegisterBrokerRecord", fields, version=version)])
