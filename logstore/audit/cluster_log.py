"""What `__cluster_metadata` of a data directory knows of topics: ids, partitions, configurations (KRaft, KIP-631)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import SchemaError
from ..messages.schema import Value
from ..topics.cluster_metadata import TOPIC, decode_value
from ..view.replay import ReplayedRecord
from . import rules
from .finding import Finding
from .markers import Marker
from .partition import Partition, Report
from .topic_records import file_records, topic_records

_TOPIC_RESOURCE = 2  # of a ConfigRecord
_NO_CHANGE = -2  # leader of a PartitionChangeRecord


@dataclass(slots=True)
class ReplicaSet:
    """Who has a partition: the node that leads it, -1 for none, and those in sync."""

    leader: int
    isr: list[int]


@dataclass(slots=True)
class Topic:
    """A topic as the controllers know it: partitions by number, and the configuration that was set.

    Attributes:
        created_ms: when it was made; 0 if that was before the oldest record at hand.
        was_compacted: `cleanup.policy` names compact, or did at some time.
    """

    name: str
    topic_id: str
    created_ms: int = 0
    partitions: dict[int, ReplicaSet] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    was_compacted: bool = False


@dataclass(slots=True)
class ClusterTopics:
    """The topics as of the end of the metadata log.

    Attributes:
        has_history: the log goes back to its first record; else it begins with a snapshot of KRaft's, which does not
            tell what was before it.
    """

    by_name: dict[str, Topic] = field(default_factory=dict)
    has_history: bool = True


def read_topics(partition: Partition) -> tuple[ClusterTopics, list[Finding]]:
    """Read the metadata log, from the newest snapshot on if its beginning was deleted (KIP-630).

    Returns:
        The topics, and a finding for each record that does not parse.
    """
    report = Report(TOPIC, partition.files.partition)
    has_history = partition.first_offset == 0 and bool(partition.files.segments)
    replay = _Replay()
    for record in _records(partition, report, has_history=has_history):
        if record.value is None:
            continue
        try:
            message = decode_value(record.value, offset=record.offset)
        except SchemaError as error:
            report.add_error(rules.INTERNAL_RECORD, partition.files.path, error, expected="a metadata record")
            continue
        replay.take(message.message.name, message.fields, record.timestamp)
    return ClusterTopics(replay.finish(), has_history), report.findings


def _records(partition: Partition, report: Report, *, has_history: bool) -> Iterator[ReplayedRecord]:
    start = 0
    if not has_history and partition.files.kraft_snapshots:
        (start, _), path = max(partition.files.kraft_snapshots.items())
        for record in file_records(path, 0, report):
            if isinstance(record, ReplayedRecord):
                yield record._replace(timestamp=0)
    for record in topic_records(partition, report):
        if not isinstance(record, Marker) and record.offset >= start:
            yield record


class _Replay:
    """Takes records of topics in their order."""

    def __init__(self) -> None:
        self._by_id: dict[str, Topic] = {}
        self._by_name: dict[str, Topic] = {}
        self._configs: dict[str, dict[str, str]] = {}
        self._compacted: set[str] = set()

    def take(self, kind: str, fields: Value, timestamp: int) -> None:
        """Replay one record of this kind."""
        if kind == "TopicRecord":
            topic = Topic(fields["name"], fields["topicId"], timestamp)
            self._by_id[topic.topic_id] = self._by_name[topic.name] = topic
        elif kind == "RemoveTopicRecord":
            removed = self._by_id.pop(fields["topicId"], None)
            if removed is not None and self._by_name.get(removed.name) is removed:
                del self._by_name[removed.name]
                self._configs.pop(removed.name, None)
                self._compacted.discard(removed.name)
        elif kind in ("PartitionRecord", "PartitionChangeRecord") and fields["topicId"] in self._by_id:
            self._take_partition(self._by_id[fields["topicId"]].partitions, fields)
        elif kind == "ConfigRecord" and fields["resourceType"] == _TOPIC_RESOURCE:
            self._take_config(fields["resourceName"], fields["name"], fields["value"])

    def finish(self) -> dict[str, Topic]:
        """From name to topic."""
        for name, topic in self._by_name.items():
            topic.config = self._configs.get(name, {})
            topic.was_compacted = name in self._compacted
        return self._by_name

    def _take_partition(self, partitions: dict[int, ReplicaSet], fields: Value) -> None:
        replicas = partitions.setdefault(fields["partitionId"], ReplicaSet(-1, []))
        if fields.get("isr") is not None:
            replicas.isr = list(fields["isr"])
        if fields["leader"] != _NO_CHANGE:
            replicas.leader = fields["leader"]

    def _take_config(self, topic: str, name: str, value: str | None) -> None:
        config = self._configs.setdefault(topic, {})
        if value is None:
            config.pop(name, None)
            return
        config[name] = value
        if name == "cleanup.policy" and "compact" in value:
            self._compacted.add(topic)
