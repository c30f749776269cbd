"""What `__cluster_metadata` of a data directory knows of topics: ids, partitions, configurations (KRaft, KIP-631)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import SchemaError
from ..messages.schema import Value
from ..topics.cluster_metadata import TOPIC, decode_value
from . import rules
from .finding import Finding
from .markers import Marker
from .partition import Partition, Report
from .topic_records import topic_records

_TOPIC_RESOURCE = 2  # of a ConfigRecord


@dataclass(slots=True)
class Topic:
    """A topic as the controllers know it: partition numbers, and the configuration that was set."""

    name: str
    topic_id: str
    partitions: set[int] = field(default_factory=set)
    config: dict[str, str] = field(default_factory=dict)


def read_topics(partitions: Iterable[Partition]) -> tuple[dict[str, Topic], list[Finding]]:
    """From name to topic, as of the end of the metadata log among `partitions`; none if there is no such log.

    A log that begins with a snapshot of KRaft's, because its beginning was deleted, tells only what came after it.

    Returns:
        The topics, and a finding for each record that does not parse.
    """
    by_id: dict[str, Topic] = {}
    by_name: dict[str, Topic] = {}
    configs: dict[str, dict[str, str]] = {}
    findings: list[Finding] = []
    for partition in partitions:
        if partition.files.topic != TOPIC:
            continue
        report = Report(TOPIC, partition.files.partition)
        for record in topic_records(partition, report):
            if isinstance(record, Marker) or record.value is None:
                continue
            try:
                message = decode_value(record.value, offset=record.offset)
            except SchemaError as error:
                report.add_error(rules.INTERNAL_RECORD, partition.files.path, error, expected="a metadata record")
                continue
            _take(message.message.name, message.fields, by_id, by_name, configs)
        findings += report.findings
    for name, topic in by_name.items():
        topic.config = configs.get(name, {})
    return by_name, findings


def _take(
    kind: str, fields: Value, by_id: dict[str, Topic], by_name: dict[str, Topic], configs: dict[str, dict[str, str]]
) -> None:
    if kind == "TopicRecord":
        topic = Topic(fields["name"], fields["topicId"])
        by_id[topic.topic_id] = by_name[topic.name] = topic
    elif kind == "RemoveTopicRecord":
        removed = by_id.pop(fields["topicId"], None)
        if removed is not None and by_name.get(removed.name) is removed:
            del by_name[removed.name]
            configs.pop(removed.name, None)
    elif kind == "PartitionRecord" and fields["topicId"] in by_id:
        by_id[fields["topicId"]].partitions.add(fields["partitionId"])
    elif kind == "ConfigRecord" and fields["resourceType"] == _TOPIC_RESOURCE:
        config = configs.setdefault(fields["resourceName"], {})
        if fields["value"] is None:
            config.pop(fields["name"], None)
        else:
            config[fields["name"]] = fields["value"]
