"""The configuration of a partition's log, as the metadata of the data directory around it has it."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.audit.checks.internal_records import unread_metadata
from logstore.audit.cluster import Cluster
from logstore.audit.finding import Finding, findings_of
from logstore.audit.partition import directory_around
from logstore.config.broker import parse_broker_config
from logstore.config.topic import LogConfig, parse_config
from logstore.disk.directory import list_partition_directory
from logstore.layout.file_names import METADATA_TOPIC
from logstore.layout.meta_properties import MetaProperties
from logstore.store.metadata.topic_configs import broker_defaults
from logstore.store.metadata.topic_configs import topic_config as effective_config
from logstore.store.opening.formatting import NODE_ID


def topic_config(path: str, given: Mapping[str, str] | None = None) -> tuple[LogConfig, list[Finding]]:
    """Return the configuration with which a broker loads the partition directory at `path`, and why it may lack some.

    Without metadata around it, it is Kafka's default; the configuration of a broker (`server.properties`) is not known.

    Args:
        given: configurations that win over those of the topic.

    Raises:
        UsageError: a configuration that is given is unknown or has a wrong value.
    """
    given, topic = given or {}, list_partition_directory(path).topic
    cluster = Cluster(directory_around(path))
    if topic == METADATA_TOPIC or not cluster.has_metadata:
        return parse_config(given), []
    node_id = cluster.identity.node_id if isinstance(cluster.identity, MetaProperties) else None
    defaults = broker_defaults(cluster.image, NODE_ID if node_id is None else node_id, parse_broker_config({}))
    return effective_config(cluster.image, topic, defaults, given), findings_of(unread_metadata(cluster))
