"""Configurations of topics: defaults, Kafka's checks of changes (`LogConfig.validate`), and their records.

An existing topic is opened with the configuration it has, as by a broker; only changes are checked.

>>> require_valid_config("t", {"remote.storage.enable": "true"}, defaults={}, present={})
Traceback (most recent call last):
logstore.errors.InvalidConfigurationError: Tiered Storage functionality is disabled in the broker. Topic cannot be \
configured with remote log storage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...config.broker import topic_defaults
from ...config.definition import list_items, text_of
from ...config.kafka_version import ELR_VERSION, NEWEST, OF_NEW_STORES, KafkaVersion, kafka_version, version_of_levels
from ...config.topic import KAFKA_VERSION, REMOTE_STORAGE, LogConfig, known_names, parse_config
from ...errors import InvalidConfigurationError, UsageError
from ...messages.schema import Value
from ...replay.metadata_image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from ...topics.cluster_metadata import encode_value

CONFIG_VALUE_LENGTH_MAX = 32_767
_MIN_ISR = "min.insync.replicas"
_NOT_OF_A_TOPIC = frozenset({"producer.id.expiration.ms", KAFKA_VERSION})
_THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def broker_defaults(image: MetadataImage, node_id: int, static: Mapping[str, Any]) -> dict[str, str]:
    """Return the defaults of all topics: the broker's dynamic configurations over `static`."""
    dynamic = [image.configs.get((BROKER_RESOURCE, resource), {}) for resource in ("", str(node_id))]
    merged: dict[str, str] = {}
    for config in (static, *dynamic):
        merged.update(topic_defaults(config))
    merged[KAFKA_VERSION] = store_version(image, static).name
    return merged


def store_version(image: MetadataImage, static: Mapping[str, Any]) -> KafkaVersion:
    """Return the version of Kafka that a store does as: what its levels need, or a newer one that is configured."""
    configured = kafka_version(static.get(KAFKA_VERSION, OF_NEW_STORES))
    needed = version_of_levels(image.features) or NEWEST
    return max(configured, needed, key=lambda version: version.number)


def topic_config(
    image: MetadataImage, name: str, defaults: Mapping[str, str], given: Mapping[str, str] | None = None
) -> LogConfig:
    """Return every configuration of a topic: `given`, then its own, then `broker_defaults`, then Kafka's defaults.

    Names unknown to this version are ignored, as by a broker that loads a topic; among `given` they are a UsageError.
    """
    return parse_config({**defaults, **known_configs(image.topic_config(name), defaults), **(given or {})})


def known_configs(present: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return those of a topic's configurations that its version knows: an older Kafka may have set others."""
    known = known_names(kafka_version(defaults[KAFKA_VERSION])) - _NOT_OF_A_TOPIC
    return {key: value for key, value in present.items() if key in known}


def config_text(config: Mapping[str, Any]) -> dict[str, str]:
    """Return configurations as text, as records have them; raises InvalidConfigurationError for None."""
    nulls = [name for name, value in config.items() if value is None]
    if nulls:
        raise InvalidConfigurationError(f"Null value not supported for topic configs: {','.join(nulls)}")
    return {name: text_of(value) for name, value in config.items()}


def require_valid_config(
    name: str, config: Mapping[str, str], *, defaults: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """Raise InvalidConfigurationError unless the topic may have this configuration instead of the `present` one."""
    for key, value in config.items():
        if key in _NOT_OF_A_TOPIC:
            raise InvalidConfigurationError(f"Unknown topic config name: {key}")
        if len(value) > CONFIG_VALUE_LENGTH_MAX:
            raise InvalidConfigurationError(
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{CONFIG_VALUE_LENGTH_MAX} bytes."
            )
    try:
        merged = parse_config({**defaults, **config})
    except UsageError as error:
        raise InvalidConfigurationError(error.message, found=name, advice=error.given_advice) from error
    for key in _THROTTLED:
        _require_replicas(key, config.get(key, ""))
    _require_no_remote_storage(merged, was_remote=present.get(REMOTE_STORAGE, "false").lower() == "true")


def _require_replicas(key: str, text: str) -> None:
    """Raise InvalidConfigurationError as `ThrottledReplicaListValidator` does."""
    replicas = list_items(text)
    if "".join(replicas) != "*" and not all(re.fullmatch("([0-9]+:[0-9]+)?", replica) for replica in replicas):
        raise InvalidConfigurationError(
            f"Invalid value [{', '.join(replicas)}] for configuration {key}: {key} must be the literal '*' or a list "
            "of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )


def _require_no_remote_storage(config: LogConfig, *, was_remote: bool) -> None:
    """Refuse tiered storage, which is not supported (`validateRemoteStorageOnlyIfSystemEnabled`)."""
    if config[REMOTE_STORAGE]:
        raise InvalidConfigurationError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage.",
        )
    if was_remote and not config["remote.log.delete.on.disable"]:
        raise InvalidConfigurationError(
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data "
            "and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want "
            "to disable remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`.",
        )


def config_records(image: MetadataImage, name: str, config: Mapping[str, str | None]) -> list[bytes]:
    """Return records of checked configurations; `min.insync.replicas` also clears the eligible leader replicas."""
    values = _config_values(name, config)
    if _MIN_ISR in config and image.features.get(ELR_VERSION):
        values.append(encode_value("ClearElrRecord", {"topicName": name}))
    return values


def no_config_records(image: MetadataImage, name: str) -> list[bytes]:
    """Return the records that take a topic's configurations away, to stand before the one that removes it.

    A broker that replays both may give them to the next topic of the name, see `MetadataImage.removed_configs`, and
    then delete records by their retention.
    """
    return _config_values(name, dict.fromkeys(image.topic_config(name)))


def removed_config_records(image: MetadataImage) -> list[bytes]:
    """Return the records that keep topics from getting the configurations of earlier ones that a broker removed."""
    return [
        record
        for name, config in image.removed_configs.items()
        if name in image.topics
        for record in _config_values(name, dict.fromkeys(config))
    ]


def _config_values(name: str, config: Mapping[str, str | None]) -> list[bytes]:
    fields: Value = {"resourceType": TOPIC_RESOURCE, "resourceName": name}
    return [encode_value("ConfigRecord", {**fields, "name": key, "value": value}) for key, value in config.items()]
