"""Records of internal topics: whether they parse, and whether they are where their coordinator looks for them."""

from __future__ import annotations

from collections.abc import Iterator

from ...config.kafka_version import NEWEST
from ...disk.names import child
from ...errors import LogstoreError, SchemaError
from ...layout.batch import NO_PRODUCER_ID
from ...layout.file_names import METADATA_TOPIC
from ...model import TopicPartition
from ...replay.group_offsets import ReplayedCommit, ReplayedOffsets
from ...replay.internal_topic import ReplayedRecord, replayed_rows
from ...topics import frames, transaction_state
from ...topics.partition_for import partition_for
from ..cluster import Cluster, Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..facts.coordinators import Commit, GroupLog, Target
from ..facts.states import StateRecords
from ..finding import Broken, Rule, Silence, Where, unreadable
from .batches import ERROR, WARNING, damage

internal_partition = Rule(
    "internal-partition",
    ERROR,
    "A record of an internal topic is in a partition where its coordinator does not look for it.",
    "was a directory renamed? put it back under its name; were partitions added? then it is forgotten: commit anew",
)
internal_record = Rule(
    "internal-record",
    ERROR,
    "A record of an internal topic does not parse.",
    "a coordinator that loads it fails or skips it: what wrote it?",
    (Silence.NEWER_KAFKA,),
)
newer_kafka = Rule(
    "newer-kafka",
    WARNING,
    "A newer Kafka than any known here wrote the directory; what is not known of it is not judged.",
    "read it with a logstore that knows that Kafka; this one does not open it for writing",
)
_OLDER = f"what Kafka {NEWEST} or an older one writes"


class InternalRecords(ReplayedOffsets, Follower):
    """Reads the records of a partition of an internal topic.

    Attributes:
        states: records of transactional ids.
        commits: commits that took effect, by group and partition.
        bad_count: records that cannot be read.
    """

    # of the topic's partitions; None if it is not known, or a record in the wrong one was told
    _count: int | None

    def __init__(self, evidence: Evidence) -> None:
        super().__init__()
        self._partition = partition = evidence.partition
        is_here = partition.is_live and evidence.cluster.has_partition(*partition.key) is Known.YES
        self._count = evidence.cluster.partition_count(partition.files.topic) if is_here else None
        self.states = StateRecords(partition.files.partition)
        self.commits: GroupLog = {}
        self.bad_count = 0
        self._is_newer_told = evidence.cluster.image.newer_kafka is not None
        self._broken: list[Broken] = []

    def step(self, batches: AuditedBatches) -> list[Broken]:
        self._broken = []
        is_states = self._partition.files.topic == transaction_state.TOPIC
        for item in replayed_rows(*batches.run):
            try:
                if isinstance(item, LogstoreError):
                    where, self.bad_count = self._partition.where(batches.segment.log), self.bad_count + 1
                    self._broken.append(internal_record.by(item, where, "records that can be read"))
                elif not is_states:
                    self.replay_item(item)
                elif isinstance(item, ReplayedRecord):
                    self._take_state(item)
            except SchemaError as error:
                self.bad_count += 1
                if isinstance(item, ReplayedRecord) and self._is_newer(item):
                    continue
                expected = "a transactional id's state" if is_states else "a group's state"
                self._broken.append(internal_record.by(error, self._partition.where(), expected))
            except LogstoreError:
                continue  # a marker, which breaks `log-marker`
        return self._broken

    def _take_state(self, record: ReplayedRecord) -> None:
        if record.key is None:
            raise SchemaError("The record has no key", offset=record.offset)
        transactional_id = transaction_state.decode_key(record.key, offset=record.offset)
        metadata = transaction_state.decode_value(record.value, offset=record.offset)
        self._check_place(transactional_id, record.offset)
        self.states.append(transactional_id, record.offset, record.timestamp, metadata)

    def _is_newer(self, record: ReplayedRecord) -> bool:
        """Return whether a record that does not parse is of a newer Kafka; the first of the directory is told."""
        topic = self._partition.files.topic
        try:
            is_newer = record.key is not None and frames.is_newer(topic.removeprefix("__"), record.key, record.value)
        except SchemaError:
            return False
        if is_newer and not self._is_newer_told:
            self._is_newer_told = True
            where = self._partition.where(offset=record.offset)
            found = f"written by a newer Kafka (a record of {topic} is not known here)"
            self._broken.append(newer_kafka.at(where, _OLDER, found))
        return is_newer

    def _check_place(self, key: str, offset: int) -> None:
        """Tell the first record that is not where its coordinator looks for it."""
        right = None if self._count is None else partition_for(key, self._count)
        if right not in (None, self._partition.files.partition):
            self._count = None
            expected = f"{key} in {self._partition.files.topic}-{right}, by its hash"
            where = self._partition.where(offset=offset)
            self._broken.append(internal_partition.at(where, expected, f"it in {self._partition.name}"))

    def put(self, group_id: str, partition: TopicPartition, commit: ReplayedCommit) -> None:
        """Add a commit to those before."""
        self._check_place(group_id, commit.record_offset)
        super().put(group_id, partition, commit)
        self.commits.setdefault((group_id, *partition), []).append(self._commit(commit))

    def _commit(self, commit: ReplayedCommit) -> Commit:
        producer_id = None if commit.producer_id == NO_PRODUCER_ID else commit.producer_id
        place = self._partition.files.partition, commit.record_offset
        return Commit(commit.value.offset, producer_id, place, commit.value.commit_timestamp_ms)

    @property
    def pending(self) -> dict[Target, Commit]:
        """Commits of transactions that are open."""
        return {
            (group_id, *partition): self._commit(commit)
            for groups in self.undecided.values()
            for group_id, commits in groups.items()
            for partition, commit in commits.items()
        }

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Forget the offset and all commits before."""
        super().remove(group_id, partition)
        self.commits.pop((group_id, *partition), None)


def metadata_problems(cluster: Cluster) -> Iterator[Broken]:
    """Yield why the cluster's image may lack something, for an answer that does not verify the metadata log."""
    yield from newer_metadata(cluster)
    yield from unread_metadata(cluster)


def unread_metadata(cluster: Cluster) -> Iterator[Broken]:
    """Yield what cannot be read of the metadata: records, damaged bytes and files."""
    yield from metadata_records(cluster)
    for partition, path, gap in cluster.gaps:
        if isinstance(gap, LogstoreError):
            yield unreadable(gap, partition.where())
        else:
            yield damage(partition, path, gap)


def metadata_records(cluster: Cluster) -> Iterator[Broken]:
    """Yield metadata records that do not parse."""
    for error, where, expected in cluster.unreadable:
        yield internal_record.by(error, where, expected)


def newer_metadata(cluster: Cluster) -> Iterator[Broken]:
    """Yield what says that a newer Kafka than any known here wrote the metadata, if anything does."""
    image = cluster.image
    if image.newer_kafka is not None:
        offset = image.newer_offsets[0] if image.newer_offsets else None
        where = Where(child(cluster.root, f"{METADATA_TOPIC}-0"), METADATA_TOPIC, 0, offset=offset)
        yield newer_kafka.at(where, _OLDER, image.newer_kafka)
