"""Rules about what lies in a data directory beside segments and their indexes."""

from __future__ import annotations

from collections.abc import Iterator

from ...disk import paths
from ...layout import partition_metadata as metadata_file
from ...layout.file_names import (
    LOG_SUFFIX,
    METADATA_TOPIC,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from ..cluster import Known
from ..facts.epochs import EpochFacts
from ..facts.surroundings import Surrounding
from ..finding import Broken, Rule, Where, rule
from ..partition import Partition
from .log import ERROR, WARNING

directory_entry = Rule(
    "directory-entry",
    ERROR,
    "Something in the directory is not Kafka's, or must not be followed.",
    "a broker does not start beside it, or follows a link out of the directory: move it away",
)


@rule(WARNING, "a broker deletes it on its start; look where the `.log` went")
def orphan_index(partition: Partition) -> Iterator[Broken]:
    """An index has no segment."""
    for path in partition.files.left_overs:
        if path.endswith((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)):
            yield partition.where(path), "a .log beside it", "none"


@rule(
    WARNING,
    "a broker goes on with that on its next start, and what is in the way is deleted: start one, then verify again",
)
def swap_left_over(partition: Partition) -> Iterator[Broken]:
    """The cleaner's output was being put in the place of segments when the broker ended."""
    for path in partition.files.left_overs:
        if path.endswith(LOG_SUFFIX + SWAP_SUFFIX) and paths.exists(path):
            yield partition.where(path), "no cleaning under way", "its output"


@rule(ERROR, "replicas truncate by it: stop the broker, `logstore repair`")
def leader_epochs(epochs: EpochFacts) -> Iterator[Broken]:
    """`leader-epoch-checkpoint` does not tell the epochs that the batches have."""
    partition = epochs.evidence.partition
    for before, entry in epochs.disordered:
        expected = f"an epoch and an offset above {before[0]} and {before[1]}"
        yield partition.where(epochs.path), expected, f"{entry[0]} and {entry[1]}"
    for (epoch, known), (path, offset) in epochs.wrong.items():
        found = "no epoch" if known is None else f"epoch {known}"
        yield partition.where(path, offset=offset), f"epoch {epoch}, which the batch has", found
    end = epochs.evidence.log_end_offset
    is_end_known = epochs.evidence.is_start_known and epochs.evidence.is_end_known
    if is_end_known and (epochs.starts[-1:] > end).any():
        start = int(epochs.starts[-1])
        expected, found = (
            f"epochs that begin up to {end}, where the log ends",
            f"epoch {epochs.epochs[-1]} from {start} on",
        )
        yield partition.where(epochs.path, offset=start), expected, found


@rule(
    ERROR,
    "a broker sets the directory aside as -stray, and does not start if the file does not parse: `logstore promote` "
    "writes an id that is known",
)
def partition_metadata(facts: Surrounding) -> Iterator[Broken]:
    """`partition.metadata` is missing, does not parse, or names another topic id."""
    for where, topic_id, right_id, right_path in facts.ids:
        if topic_id is None:
            yield where, metadata_file.FILE_NAME, "none"
        elif topic_id != right_id:
            yield where, f"{right_id}, as {right_path}", topic_id


@rule(
    WARNING,
    "a broker sets it aside as -stray on its next start, or leaves it unused if it has the id of another topic: was "
    "the topic deleted while it was down, or the directory copied?",
)
def partition_unknown(facts: Surrounding) -> Iterator[Broken]:
    """The cluster's metadata does not have the partition of a directory."""
    for where in facts.unknown:
        yield where, "a partition of the cluster", "none of this name and number"


@rule(ERROR, "no broker starts beside both: compare them, `logstore diff`, and move one away")
def partition_twice(facts: Surrounding) -> Iterator[Broken]:
    """Two directories are of one partition, one of them left over by a move between directories, or copied."""
    for where, fate in facts.twice:
        yield where, "one directory of the partition", f"one that {fate.value}"


@rule(ERROR, "was `__cluster_metadata` put back from an older copy, or this partition brought from another cluster?")
def metadata_behind(facts: Surrounding | EpochFacts) -> Iterator[Broken]:
    """A closed log has leader epochs or producer ids that the cluster's metadata has not given out yet."""
    for where, expected, found in facts.newer:
        yield where, f"{expected}, as {METADATA_TOPIC} has", found


@rule(ERROR, "a broker does not start on it, or as another one: restore the file that was there")
def meta_properties(facts: Surrounding) -> Iterator[Broken]:
    """`meta.properties` is missing, does not parse, or has ids that the cluster's metadata does not know."""
    yield from facts.foreign_ids


@rule(
    ERROR,
    "no broker starts on it: put the log back from a copy; or `logstore import` writes the levels that the directory "
    "was formatted with",
)
def metadata_version(facts: Surrounding) -> Iterator[Broken]:
    """The metadata log has records, and none with the level of `metadata.version`."""
    if facts.is_without_level:
        yield Where(facts.metadata_path, METADATA_TOPIC, 0), "a record with the level of metadata.version", "none"


newer_kafka = Rule(
    "newer-kafka",
    WARNING,
    "A newer Kafka than any known here wrote the directory; what is not known of it is not judged.",
    "read it with a logstore that knows that Kafka; this one does not open it for writing",
)

metadata_snapshot = Rule(
    "metadata-snapshot",
    ERROR,
    "A snapshot of the metadata log is not whole.",
    "a broker that loads it knows nothing of what it held: put it back from another controller",
)

startup_file = Rule(
    "startup-file",
    ERROR,
    "`quorum-state` or `bootstrap.checkpoint` does not parse, or the metadata log begins behind its snapshots.",
    "a broker does not start on it: put it back from a copy, or from a replica of the controller",
)

checkpoint_format = Rule(
    "checkpoint-format",
    ERROR,
    "A checkpoint does not parse, or is missing after a clean shutdown.",
    "no broker starts on one that does not parse, and without one deleted records come back or more is recovered: put "
    "it back from a copy",
)


@rule(
    ERROR,
    "unless the checkpoint is of another time, what it tells of the log is so: compare with the other replicas, "
    "`logstore diff`",
)
def checkpoint_offset(facts: Surrounding) -> Iterator[Broken]:
    """A checkpoint has an offset that the log cannot have.

    A follower keeps a recovery point above its end if it is truncated while a rolled segment waits to be flushed. A
    clean shutdown flushes each log to its end, and leaves out those that were not loaded yet (`LogManager.shutdown`).
    """
    for entry in facts.entries:
        if entry.has_directory and entry.log is not None:
            start, end, is_open, _ = entry.log  # one that is older than the last retention may be below the start
            expected = f"an offset from {start} to {end}"
            if entry.offset < 0:
                yield entry.where, expected, entry.offset
            elif entry.offset > end and not is_open:
                yield entry.where, expected, f"{entry.offset}: {_offsets(entry.offset - end)} gone from the log's end"
            elif entry.offset < end and entry.is_at_end:
                expected, found = f"offset {end}, where the log was closed", _offsets(end - entry.offset)
                yield entry.where, expected, f"{entry.offset}: {found} behind what was flushed"
    for where, expected in facts.left_out:
        yield where, expected, "no entry"


def _offsets(count: int) -> str:
    return "1 offset is" if count == 1 else f"{count} offsets are"


@rule(WARNING, "a broker drops the entry; where the cluster has the partition, put its directory back from a copy")
def checkpoint_partition(facts: Surrounding) -> Iterator[Broken]:
    """A checkpoint tells of a partition that has no directory."""
    about = {Known.YES: ", and the cluster has the partition", Known.NO: ", and the cluster has no such partition"}
    for entry in facts.entries:
        if not entry.has_directory:
            found = f"none{about.get(entry.is_in_cluster, '')}"
            yield entry.where, f"a directory {entry.where.topic}-{entry.where.partition}", found
