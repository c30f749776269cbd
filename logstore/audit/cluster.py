"""The cluster as the metadata log of a data directory describes it, and what can be known by it.

cluster = Cluster("data")
cluster.has_partition("orders", 0), cluster.compaction("orders"), cluster.is_alone      # Known.YES, NO or UNKNOWN
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from enum import Enum

from ..cached_property import cached_property
from ..clock import now_ms
from ..config.kafka_version import level_of_release
from ..disk import paths
from ..disk.loaded import LoadedFile
from ..disk.names import child
from ..disk.side_files import read_meta_properties
from ..errors import DataDirectoryError, LogstoreError, SchemaError, UsageError
from ..layout import clean_shutdown, meta_properties
from ..layout.file_names import METADATA_TOPIC
from ..layout.meta_properties import MetaProperties
from ..layout.offset_checkpoint import CLEANER_OFFSET_FILE_NAME
from ..replay.internal_topic import ReplayedRecord, replayed_rows
from ..replay.metadata_image import MetadataImage, TopicImage
from ..topics import INTERNAL_TOPICS
from ..view.walk import Damage, Run, walk
from .finding import Where
from .partition import Checkpoints, Partition, open_partition, read_checkpoints, unless_gone
from .stable_reading import Signature, newest_ms, signature

NEVER = 2**63 - 1  # ms
MINUTE_MS = 60_000  # within which a broker writes its checkpoints
_AHEAD_MS_MAX = 3_600_000  # of a file's time, by another host's clock
BadRecord = tuple[LogstoreError, Where, str]  # with what was expected there
Gap = tuple[Partition, str, Damage | DataDirectoryError]  # what cannot be read of the metadata, and in which file


class Known(Enum):
    """An answer of the evidence."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Cluster:
    """The cluster as the data directory at `root`, a path as it was given, describes it; read when first needed.

    Args:
        beside: other data directories; those of the same broker count, as `log.dirs` of its configuration does.
    """

    def __init__(self, root: str, beside: Collection[str] = ()) -> None:
        self.root = root
        self._beside = beside
        self._begun_ms = now_ms()
        self._stamped_ms = 0  # the latest time of a metadata record
        self._bad: list[BadRecord] = []
        self._gaps: list[Gap] = []

    @cached_property
    def _partition(self) -> Partition | None:
        for root in self.roots:
            try:
                return open_partition(child(root, f"{METADATA_TOPIC}-0"))
            except LogstoreError:
                continue  # `directory-entry` tells of one that cannot be listed
        return None

    @cached_property
    def other_roots(self) -> list[str]:
        """Other data directories of the broker, by the ids in `meta.properties`; none of which there are two copies."""
        own, named = self.identity, defaultdict[str | None, list[str]](list)
        if not isinstance(own, MetaProperties):
            return []
        for root in self._beside:
            other = Cluster(root).identity
            if isinstance(other, MetaProperties) and other[:3] == own[:3]:
                named[other.directory_id].append(root)
        return [one for id_, (one, *copies) in named.items() if id_ not in (None, own.directory_id) and not copies]

    @property
    def roots(self) -> list[str]:
        """All data directories of the broker that are known here."""
        return [self.root, *self.other_roots]

    def has_directory(self, name: str) -> bool:
        """Return whether a directory of this name is in one of the data directories."""
        return any(paths.is_directory(child(root, name)) for root in self.roots)

    def require_one_broker(self) -> None:
        """Raise UsageError for a directory `beside` that is not of the same broker, or has copies."""
        for root in self._beside:
            if root not in self.other_roots:
                other = Cluster(root).identity
                raise UsageError(
                    "This is not another data directory of the same broker",
                    path=root,
                    expected=f"cluster.id and node.id of {self.root} in meta.properties, and a directory.id of its own",
                    found=", ".join(f"{name} {one}" for name, one in other._asdict().items())
                    if isinstance(other, MetaProperties)
                    else other,
                    advice="ask of each broker, and of each copy, alone",
                )

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The content of each readable offset checkpoint."""
        return read_checkpoints(self.root)

    @cached_property
    def has_history(self) -> bool:
        """Whether the metadata log has its first record; a snapshot does not say what was before it."""
        partition = self._partition
        return partition is not None and partition.first_offset == 0 and bool(partition.files.segments)

    @property
    def has_metadata(self) -> bool:
        """Whether there is a metadata log."""
        return self._partition is not None

    @cached_property
    def image(self) -> MetadataImage:
        """The state as of the end of the metadata log, from the newest snapshot on (KIP-630); partial without a log."""
        image, start, partition = MetadataImage(), 0, self._partition
        if partition is None:
            image.is_partial = True
            return image
        if not self.has_history and partition.files.kraft_snapshots:
            (start, _), path = max(partition.files.kraft_snapshots.items())
            # a snapshot of an empty log has bootstrap records, which are not state (`MetadataState.bootstrap`)
            for record in self._records(image, partition, path, 0) if start else ():
                self._replay(image, record._replace(timestamp=0), partition)
        image.is_partial = image.is_partial or start < partition.first_offset
        for segment in partition.files.segments:
            for record in self._records(image, partition, segment.log, segment.base_offset):
                if record.offset >= start:
                    self._replay(image, record, partition)
        image.is_partial = image.is_partial or bool(image.newer_offsets)
        return image

    def _records(
        self, image: MetadataImage, partition: Partition, path: str, base_offset: int
    ) -> Iterator[ReplayedRecord]:
        """Yield the records of one file of batches; none if it is gone. Behind damage the image is partial."""
        try:
            log = unless_gone(LoadedFile, path)
        except DataDirectoryError as error:
            image.is_partial = True
            self._gaps.append((partition, path, error))
            return
        with log or nullcontext():
            for piece in walk(log, base_offset) if log else ():
                if isinstance(piece, Run):
                    yield from self._replayed(partition, path, piece)
                    continue
                image.is_partial = True
                if piece.may_hide_batches or not _is_being_written(partition, path):
                    self._gaps.append((partition, path, piece))

    def _replayed(self, partition: Partition, path: str, run: Run) -> Iterator[ReplayedRecord]:
        for item in replayed_rows(*run):
            if isinstance(item, LogstoreError):
                self._bad.append((item, partition.where(path), "records that can be read"))
            elif isinstance(item, ReplayedRecord):
                yield item

    def _replay(self, image: MetadataImage, record: ReplayedRecord, partition: Partition) -> None:
        self._stamped_ms = max(self._stamped_ms, record.timestamp)
        try:
            image.replay(record.value, record.offset, record.timestamp)
        except SchemaError as error:
            self._bad.append((error, partition.where(), "a metadata record"))

    @property
    def unreadable(self) -> list[BadRecord]:
        """Metadata records that do not parse."""
        _ = self.image
        return self._bad

    @property
    def gaps(self) -> list[Gap]:
        """Damage in the files of the metadata log, but for an end that is being written, and files that are refused."""
        _ = self.image
        return self._gaps

    @cached_property
    def identity(self) -> MetaProperties | LogstoreError:
        """`meta.properties`, or the error of reading it."""
        try:
            return read_meta_properties(child(self.root, meta_properties.FILE_NAME))
        except LogstoreError as error:
            return error

    @property
    def _node_id(self) -> int | None:
        return self.identity.node_id if isinstance(self.identity, MetaProperties) else None

    @cached_property
    def is_whole_broker(self) -> Known:
        """Whether all log dirs of the broker are in this one; `__cluster_metadata` is in the first of several."""
        return Known.YES if self.has_metadata or self._node_id is None else Known.UNKNOWN

    @cached_property
    def is_alone(self) -> Known:
        """Whether the cluster never had another broker or log dir that a partition's data could come from."""
        is_told = self.has_history and not self.image.is_partial
        is_one = len(self.image.log_directories) == 1 and all(one for _, one in self.image.log_directories)
        return Known.YES if is_told and is_one else Known.UNKNOWN

    @cached_property
    def indexes_by_batch(self) -> Known:
        """Whether every broker that the cluster ever had makes index entries of one batch, as Kafka does from 4.1 on.

        An older broker cannot register with the level of 4.1.
        """
        is_told = self.has_history and not self.image.is_partial
        is_new = self.image.lowest_level >= level_of_release("4.1")
        return Known.YES if is_told and is_new else Known.UNKNOWN

    @property
    def has_one_life(self) -> bool:
        """Whether it is known that the cluster has one broker, which was started once."""
        return self.is_alone is Known.YES and self.image.registration_count == 1 and self.is_of_brokers

    @property
    def is_of_brokers(self) -> bool:
        """Whether brokers registered, at each start, to lead in a new epoch: a store, without listeners, does not."""
        return all(broker.listeners for broker in self.image.brokers.values())

    def has_partition(self, topic: str, partition: int) -> Known:
        """Whether the cluster has such a partition, as of the end of the metadata log."""
        if self.image.is_partial or topic == METADATA_TOPIC:
            return Known.UNKNOWN
        found = self.topic(topic)
        return Known.YES if found is not None and partition in found.partitions else Known.NO

    @cached_property
    def settled_ms(self) -> int:
        """The time up to which all files agree, ms.

        A running broker writes while files are read or copied one after the other; it writes checkpoints each minute,
        and looks for late transactions every ten seconds. So the last minute before the newest file is not judged,
        unless the directory was closed in order.
        """
        if all(paths.exists(child(root, clean_shutdown.FILE_NAME)) for root in self.roots):
            return NEVER
        return self._newest_ms - MINUTE_MS

    @cached_property
    def _newest_ms(self) -> int:
        """When the newest file was written, or the newest metadata if no file tells: none of the future does."""
        _ = self.image
        return newest_ms(self._signature, until_ms=now_ms() + _AHEAD_MS_MAX) or self._stamped_ms

    @cached_property
    def _signature(self) -> Signature:
        return signature(self.root).union(*map(signature, self.other_roots))

    @property
    def has_one_time(self) -> bool:
        """Whether all files have the same time: they were given it."""
        return len({modified_ns for _, _, modified_ns in self._signature}) == 1

    def is_at_rest(self, now_ms: int) -> bool:
        """Return whether no file is of the last minute before `now_ms`, so that nobody writes."""
        return abs(now_ms - self._newest_ms) > MINUTE_MS

    @property
    def is_live(self) -> bool:
        """Whether somebody has written since this object was made: the files are no copy."""
        return self._newest_ms >= self._begun_ms

    def topic(self, name: str) -> TopicImage | None:
        """The topic of this name, None if it is not known."""
        return self.image.topics.get(name)

    def partition_count(self, topic: str) -> int | None:
        """Partitions of the topic, None if it is not known."""
        found = self.topic(topic)
        return None if found is None else len(found.partitions)

    def compaction(self, topic: str) -> Known:
        """Whether the topic is, or ever was, compacted, by its own policy or the brokers'."""
        if topic in INTERNAL_TOPICS:
            return Known.YES
        own = self._is_among(self.image.compacted_topics, topic)
        return Known.UNKNOWN if own is Known.NO and self._compacts_by_default else own

    @cached_property
    def _compacts_by_default(self) -> bool:
        """Whether brokers compact, by the metadata or, for want of `server.properties`, by a topic they cleaned."""
        cleaned = {topic for topic, _ in self.checkpoints.get(CLEANER_OFFSET_FILE_NAME, {})} - {*INTERNAL_TOPICS}
        policies = [self._is_among(self.image.compacted_topics, topic) for topic in cleaned]
        return self.image.compacts_by_default or Known.NO in policies

    def is_never_deleted_from(self, topic: str) -> bool:
        """Return whether it is known that retention and `delete_records` were never allowed to raise a log's start."""
        return topic in self.image.only_compacted_topics and self.has_history and not self.image.is_partial

    def tiering(self, topic: str) -> Known:
        """Whether older segments of the topic are, or ever were, in remote storage."""
        return self._is_among(self.image.tiered_topics, topic)

    def _is_among(self, topics: set[str], topic: str) -> Known:
        if topic in topics:
            return Known.YES
        is_told = topic in self.image.topics and self.has_history and not self.image.is_partial
        return Known.NO if is_told else Known.UNKNOWN

    def created_ms(self, topic: str) -> int:
        """When the topic of this name was made, ms; 0 if it is not known."""
        found = self.topic(topic)
        return 0 if found is None else found.created_ms

    def is_in_sync(self, topic: str, partition: int) -> Known:
        """Whether this broker's replica has all committed records: it leads, or no other may."""
        found = self.topic(topic)
        replica = None if found is None else found.partitions.get(partition)
        if replica is None or self._node_id is None:
            return Known.UNKNOWN
        may_lead = {*replica.isr, *replica.elr} or set(replica.replicas)
        return Known.YES if replica.leader == self._node_id or may_lead == {self._node_id} else Known.NO


def _is_being_written(partition: Partition, path: str) -> bool:
    """Return whether a file of batches may end in one that is cut off."""
    last = partition.last_segment
    return last is not None and last.log == path and partition.is_active(last)
