"""Levels of features: those of a new cluster, and how they are raised (`FeatureControlManager`, `kafka-features`).

Levels only rise here. Kafka refuses a lower `metadata.version` too where a newer one may have written something.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...config.kafka_version import (
    ELR_VERSION,
    METADATA_VERSION,
    NEWEST,
    RAFT_VERSION,
    KafkaVersion,
    default_levels,
    version_of_levels,
)
from ...errors import InvalidUpdateVersionError, UsageError
from ...layout.kafka_uuid import random_uuid
from ...messages.schema import Value
from ...replay.metadata_image import BROKER_RESOURCE, MetadataImage
from ...topics.cluster_metadata import encode_value
from .topics import NodeDirectory

_ELR_NEEDS = 23  # metadata.version 4.0-IV1
_DIRECTORIES_LEVEL = 17  # metadata.version 3.7-IV2, whose record of a registration has the ids of directories
_VERSIONS = ((30, 4), (_DIRECTORIES_LEVEL, 3), (8, 2), (0, 1))  # (lowest metadata.version, version of the record)
_MIN_ISR = "min.insync.replicas"
_NO_WAY_DOWN = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


def new_cluster_records(kafka: KafkaVersion) -> list[bytes]:
    """Return the records of the levels that this version gives a new cluster: its highest, `metadata.version` first."""
    return level_records(default_levels(kafka.highest_level))


def level_records(levels: Mapping[str, int]) -> list[bytes]:
    """Return a record for each level, except that of `kraft.version`, which a control record has."""
    return [
        encode_value("FeatureLevelRecord", {"name": name, "featureLevel": level})
        for name, level in levels.items()
        if name != RAFT_VERSION
    ]


def raised_levels(present: Mapping[str, int], wanted: Mapping[str, int], node_id: int) -> dict[str, int]:
    """Return the levels of `wanted` that are not `present` yet, `metadata.version` first.

    Raises InvalidUpdateVersionError for a feature or level that is not known, is lower, or needs another.
    """
    merged = {**present, **wanted}
    for name, level in sorted(wanted.items()):
        if not isinstance(level, int) or isinstance(level, bool):
            raise UsageError("The level of a feature is a whole number", expected=f"{name}=1", found=repr(level))
        problem = _problem(name, level, present.get(name, 0), merged, node_id)
        if problem is not None:
            raise InvalidUpdateVersionError(
                f"Invalid update version {level} for feature {name}. {problem}",
                advice="there is no way down from a level: open the directory with a Kafka that knows it"
                if problem == _NO_WAY_DOWN
                else None,
            )
    order = sorted(wanted, key=lambda name: (name != METADATA_VERSION, name))
    return {name: wanted[name] for name in order if wanted[name] != present.get(name, 0)}


def _problem(name: str, level: int, present: int, merged: Mapping[str, int], node_id: int) -> str | None:
    """Return why a feature cannot have a level, in Kafka's words (`FeatureControlManager.updateFeature`)."""
    if level < 0:
        return "A feature version cannot be less than 0."
    supported = NEWEST.features.get(name)
    if supported is None:
        return f"Local controller {node_id} does not support this feature."
    if not supported[0] <= level <= supported[1]:
        return f"Local controller {node_id} only supports versions {supported[0]}-{supported[1]}"
    if level < present:
        return _NO_WAY_DOWN
    if name == ELR_VERSION and level and merged.get(METADATA_VERSION, 0) < _ELR_NEEDS:
        return f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {_ELR_NEEDS}"
    return None


def raising_records(
    image: MetadataImage, levels: Mapping[str, int], node: NodeDirectory, offset: int, min_isr: str
) -> list[bytes]:
    """Return the records that raise levels, and register the node anew as one that knows them.

    `offset` is that of the first record, `min_isr` the `min.insync.replicas` that the store is configured with.
    """
    records = _elr_records(image, min_isr) if levels.get(ELR_VERSION) else []
    features = {**image.features, **levels}
    kafka = version_of_levels(features)
    assert kafka is not None
    known = image.brokers[node.node_id].registration
    offset += len(records)
    records.append(registration(known, features[METADATA_VERSION], kafka, node.directory_id, offset))
    return records + level_records(levels)


def registration(known: Value, level: int, kafka: KafkaVersion, directory_id: str, offset: int) -> bytes:
    """Return a registration of the store as a broker of a version; fenced, because no client can reach it.

    `known` has the fields of the registration before, or the id of the broker and its end points; `level` is that of
    `metadata.version`, `offset` that of the record.
    """
    version = next(version for least, version in _VERSIONS if level >= least)
    fields = {name: value for name, value in known.items() if name not in ("logDirs", "cordonedLogDirs")}
    fields |= {
        "incarnationId": random_uuid(),
        "brokerEpoch": offset,
        "features": [
            {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
            for name, (low, high) in kafka.features.items()
        ],
        "fenced": True,
        "inControlledShutdown": False,
    }
    if version >= 3:
        fields["logDirs"] = [directory_id]
    return encode_value("RegisterBrokerRecord", fields, version=version)


def elr_default(min_isr: str = "1") -> bytes:
    """Return the record of the `min.insync.replicas` of a cluster, which eligible leader replicas need (KIP-966)."""
    return encode_value("ConfigRecord", _min_isr("", min_isr))


def _elr_records(image: MetadataImage, min_isr: str) -> list[bytes]:
    """What a cluster needs before eligible leader replicas (`maybeGenerateElrSafetyRecords`)."""
    of_brokers = [
        name
        for (kind, name), config in image.configs.items()
        if kind == BROKER_RESOURCE and name and _MIN_ISR in config
    ]
    records = [] if _MIN_ISR in image.configs.get((BROKER_RESOURCE, ""), {}) else [elr_default(min_isr)]
    return records + [encode_value("ConfigRecord", _min_isr(name, None)) for name in of_brokers]


def _min_isr(broker: str, value: str | None) -> Value:
    return {"resourceType": BROKER_RESOURCE, "resourceName": broker, "name": _MIN_ISR, "value": value}
