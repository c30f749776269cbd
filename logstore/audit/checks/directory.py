"""What lies in a data directory and its partitions beside segments and their indexes (`LogManager`, KIP-516)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from ...config.kafka_version import METADATA_VERSION
from ...disk import paths
from ...disk.directory import DataDirectoryFiles, PartitionFiles
from ...disk.names import child
from ...disk.side_files import read_partition_metadata, topic_id_of
from ...errors import CheckpointFormatError, DataDirectoryError, LogstoreError
from ...layout import meta_properties as meta_properties_file
from ...layout import partition_metadata as metadata_file
from ...layout.file_names import (
    LOG_SUFFIX,
    METADATA_TOPIC,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    DirectoryKind,
    PartitionDirectory,
    directory_name,
)
from ...layout.meta_properties import MetaProperties
from ...replay.directory_fates import Fate, directory_fates
from ...replay.metadata_image import MetadataImage
from ..cluster import Cluster, Known
from ..evidence import Evidence
from ..finding import Broken, Rule, Where
from ..partition import SET_ASIDE, Partition, unless_gone
from .batches import ERROR, UNSETTLED, WARNING
from .checkpoints import offset_checkpoints
from .epochs import metadata_behind
from .internal_records import newer_metadata
from .metadata_log import startup_files

directory_entry = Rule(
    "directory-entry",
    ERROR,
    "Something in the directory is not Kafka's, or must not be followed.",
    "a broker does not start beside it, or passes over it: move it away, or give a log that was packed or renamed its "
    "name again; but it follows a link to a partition elsewhere: mount the partition there, or move it back",
)
orphan_index = Rule(
    "orphan-index",
    WARNING,
    "An index has no segment.",
    "a broker deletes it on its start; look where the `.log` went",
)
swap_left_over = Rule(
    "swap-left-over",
    WARNING,
    "The cleaner's output was being put in the place of segments when the broker ended.",
    "a broker goes on with that on its next start, and what is in the way is deleted: start one, then verify again",
)
partition_metadata = Rule(
    "partition-metadata",
    ERROR,
    "`partition.metadata` is missing, does not parse, or names another topic id.",
    "a broker sets the directory aside as -stray and begins the partition anew, or does not start if the file does "
    "not parse: `logstore promote` writes an id that is known; to undo it, stop the broker, copy the file of "
    "the new directory into the stray one, delete the indexes there, and put it in the place of the new one",
    (UNSETTLED,),
)
partition_unknown = Rule(
    "partition-unknown",
    WARNING,
    "The cluster's metadata does not have the partition of a directory.",
    "a broker sets it aside as -stray on its next start, or leaves it unused if it has the id of another topic: was "
    "the topic deleted while it was down, or the directory copied? put lost metadata back before that",
)
partition_twice = Rule(
    "partition-twice",
    ERROR,
    "Two directories are of one partition, one of them left over by a move between directories, or copied.",
    "no broker starts beside both: compare them, `logstore diff`, and move one away",
)
partition_set_aside = Rule(
    "partition-set-aside",
    WARNING,
    "A directory that a broker set aside has the topic's id, and more than the partition itself.",
    "a broker started while the metadata had no such partition, and began it anew later: unless a leader has it all, "
    "stop the broker, delete the indexes in the stray directory, and put it in the place of the new one",
)
meta_properties = Rule(
    "meta-properties",
    ERROR,
    "`meta.properties` is missing, does not parse, or has ids that the cluster's metadata does not know.",
    "a broker does not start on it, or as another one: restore the file that was there",
)
metadata_version = Rule(
    "metadata-version",
    ERROR,
    "The metadata log has records, and none with the level of `metadata.version`.",
    "no broker starts on it: put the log back from a copy; or `logstore import` writes the levels that the directory "
    "was formatted with",
)

_INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
Passes = Sequence[Evidence]  # of each partition, after the pass


def files_of_partition(partition: Partition) -> Iterator[Broken]:
    """Yield what should not lie in the directory of a partition."""
    for path in partition.files.left_overs:
        if path.endswith(_INDEX_SUFFIXES):
            yield orphan_index.at(partition.where(path), "a .log beside it", "none")
    for path in partition.files.left_overs:
        if path.endswith(LOG_SUFFIX + SWAP_SUFFIX) and paths.exists(path):
            yield swap_left_over.at(partition.where(path), "no cleaning under way", "its output")
    for error in partition.files.errors:
        yield directory_entry.by(error, partition.where(), "only files of Kafka's")


def files_of_directory(directory: DataDirectoryFiles, passes: Passes, cluster: Cluster) -> Iterator[Broken]:
    """Yield what is wrong around the partitions of a data directory, which was listed before they were read."""
    yield from _topic_ids(directory, passes, cluster)
    yield from _partitions(directory, passes, cluster)
    yield from _set_aside(passes, cluster)
    yield from _identity(directory, cluster)
    image = cluster.image
    has_records = bool(image.topics or image.brokers or image.configs)
    if has_records and not image.is_partial and METADATA_VERSION not in image.features:
        where = Where(child(directory.path, directory_name(METADATA_TOPIC, 0)), METADATA_TOPIC, 0)
        yield metadata_version.at(where, "a record with the level of metadata.version", "none")
    yield from offset_checkpoints(directory, passes, cluster)
    yield from (unlisted_entry(error, directory.path) for error in directory.errors)
    yield from startup_files(directory)
    yield from newer_metadata(cluster)


def unlisted_entry(error: LogstoreError, path: str) -> Broken:
    """Return an entry of a data directory that cannot be listed; `path` is for an error without one."""
    where = Where(path if error.path is None else str(error.path))
    return directory_entry.by(error, where, "only directories of partitions")


def _partitions(directory: DataDirectoryFiles, passes: Passes, cluster: Cluster) -> Iterator[Broken]:
    """Compare the directories with the partitions that the cluster has."""
    for one in directory.partitions:
        if one.kind is DirectoryKind.LIVE and cluster.has_partition(*one.key) is Known.NO:
            found = _NONE_OF_THIS_NAME if cluster.image.topics else "no topic at all in the metadata log"
            yield partition_unknown.at(Where(one.path, *one.key), "a partition of the cluster", found)
    with suppress(DataDirectoryError):  # of an id that the system refuses, which is told beside those of topics
        yield from _twice(directory.partitions, cluster.image)
    following = cluster.image.next_producer_id
    for read in passes:
        # only a broker that is alone has each block of ids on record before it uses it
        is_judged = read.partition.surroundings.was_closed and read.partition.is_live and cluster.is_alone is Known.YES
        if is_judged and read.producer_id >= following >= 0:
            expected = f"producer ids below {following}, the next block, as {METADATA_TOPIC} has"
            yield metadata_behind.at(read.partition.where(), expected, f"producer {read.producer_id}")


_NONE_OF_THIS_NAME = "none of this name and number"


def _set_aside(passes: Passes, cluster: Cluster) -> Iterator[Broken]:
    """Yield stray directories whose log goes on behind that of their live partition, which has the same topic id."""
    ends = {read.partition.key: read.log_end_offset for read in passes if read.partition.is_live}
    for read in passes:
        files, topic = read.partition.files, cluster.topic(read.partition.files.topic)
        if (
            files.kind is DirectoryKind.STRAY
            and topic
            and read.log_end_offset > ends.get(files.key, read.log_end_offset)
        ):
            with suppress(CheckpointFormatError, DataDirectoryError):  # told beside the other ids
                if topic_id_of(files.path) == topic.topic_id:
                    expected = f"an end up to {ends[files.key]}, that of the partition"
                    yield partition_set_aside.at(Where(files.path, *files.key), expected, read.log_end_offset)


def _twice(partitions: Iterable[PartitionFiles], image: MetadataImage) -> Iterator[Broken]:
    if image.is_partial:
        return
    named = [(PartitionDirectory(one.topic, one.partition, one.kind), one.path) for one in partitions]
    for one in directory_fates(named, image):
        if one.fate in (Fate.TWICE, Fate.BESIDE_CURRENT):
            found = f"one that {one.fate.value}"
            yield partition_twice.at(Where(one.path, *one.key), "one directory of the partition", found)


def _identity(directory: DataDirectoryFiles, cluster: Cluster) -> Iterator[Broken]:
    """Compare the directory's identity with the broker's registration in the metadata log."""
    image, identity = cluster.image, cluster.identity
    where = Where(child(directory.path, meta_properties_file.FILE_NAME))
    if image.is_partial:
        return
    if not isinstance(identity, MetaProperties):
        yield meta_properties.by(identity, where, "ids of cluster, node and directory")
        return
    # a controller that is no broker, and a metadata.log.dir beside log.dirs, are in no broker's registration
    if all(partition.topic == METADATA_TOPIC for partition in directory.partitions):
        return
    broker = image.brokers.get(identity.node_id) if identity.node_id is not None else None
    if broker is None and image.brokers and image.topics:
        expected, found = f"a node id of {', '.join(map(str, sorted(image.brokers)))}", identity.node_id
        yield meta_properties.at(where, expected, "none" if found is None else found)
    elif broker is not None and broker.directories and identity.directory_id not in broker.directories:
        expected = f"a directory id of {', '.join(broker.directories)}"
        yield meta_properties.at(where, expected, identity.directory_id)


def _topic_ids(directory: DataDirectoryFiles, passes: Passes, cluster: Cluster) -> Iterator[Broken]:
    """Compare the ids in `partition.metadata`: all partitions of a topic have one, that of the metadata log."""
    topics = cluster.image.topics
    ids = {name: (topic.topic_id, METADATA_TOPIC) for name, topic in topics.items()}
    ids[METADATA_TOPIC] = metadata_file.METADATA_TOPIC_ID, "every cluster has"
    empty = {one.partition.files.path for one in passes if one.log_end_offset == one.partition.base_offset}
    # a topic that was made again a moment ago may still have the directories of the one before
    recent = {name for name, topic in topics.items() if topic.created_ms > cluster.settled_ms}
    # a broker that was migrated to KRaft keeps its file of version 0
    is_old = isinstance(cluster.identity, MetaProperties) and cluster.identity.version == 0
    is_with_zookeeper = is_old and not topics
    for files in directory.partitions:
        if is_with_zookeeper and metadata_file.FILE_NAME not in files.files:
            continue  # topics have ids from Kafka 2.8 on, and it makes the file on its start
        silence = UNSETTLED if files.topic in recent and files.kind not in SET_ASIDE else None
        yield from (one._replace(silence=silence) for one in _topic_id(files, ids, empty))


def _topic_id(files: PartitionFiles, ids: dict[str, tuple[str, str]], empty: Collection[str]) -> Iterator[Broken]:
    """Compare the id in a directory; a stray one may be of an earlier topic of the name.

    An empty log may have none: the file is written before the first record (`LogManager.isStrayReplica`).
    """
    path = files.files.get(metadata_file.FILE_NAME)
    where = Where(path or files.path, files.topic, files.partition)
    try:
        metadata = unless_gone(read_partition_metadata, path)
    except (CheckpointFormatError, DataDirectoryError) as error:
        yield partition_metadata.by(error, where, "a version and a topic id")
        return
    if files.kind in SET_ASIDE:
        if path is None and files.kind is DirectoryKind.STRAY and files.topic in ids and files.path not in empty:
            found = "none: a broker set the directory aside, and began the partition anew"
            yield partition_metadata.at(where, metadata_file.FILE_NAME, found)
        return
    if metadata is None or path is None:
        # a broker that starts writes that of the metadata log anew
        if files.path not in empty and files.topic != METADATA_TOPIC:
            yield partition_metadata.at(where, metadata_file.FILE_NAME, "none")
        return
    right_id, right_path = ids.setdefault(files.topic, (metadata.topic_id, path))
    if metadata.topic_id != right_id:
        yield partition_metadata.at(where, f"{right_id}, as {right_path}", metadata.topic_id)
