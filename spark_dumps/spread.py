"""The pass of an audit on executors: a task for some partitions, whose facts the driver joins."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from logstore.audit.cluster import Cluster
from logstore.audit.partition import Partition, open_partition, read_checkpoints
from logstore.audit.processes import Task
from logstore.audit.verify import Asked, PartitionFacts
from logstore.disk.paths import is_directory
from logstore.errors import DataDirectoryError

from .pyspark_parts import prepare_worker
from .seen import ADVICE, SeenFiles, host, packed, properties_of

if TYPE_CHECKING:
    from pyspark import SparkContext

LOOK_COUNT_MAX = 5
GROUPS_A_CORE = 4  # so that no core waits long for the last group


class _Listed(NamedTuple):
    """A partition, and its files as the driver saw them."""

    partition: Partition
    seen: SeenFiles


class _Answer(NamedTuple):
    """The answer of an executor about a partition: its facts, or why it does not see the partition."""

    host: str
    facts: PartitionFacts | None
    error: DataDirectoryError | None


def follow_on_executors(
    context: SparkContext, partitions: Sequence[Partition], cluster: Cluster, *, decodes: bool
) -> list[PartitionFacts]:
    """Return the facts of all partitions; raise DataDirectoryError if an executor sees less than the driver."""
    _ = cluster.image  # a cached property: read it here once, not in every task
    task = Task(cluster, Asked.EVERYTHING, decodes)
    found: list[PartitionFacts] = []
    properties = properties_of(cluster.root)
    listed = [_listed(one, properties) for one in partitions]
    for look in range(LOOK_COUNT_MAX):
        groups = list(packed(listed, lambda one: one.seen.cost, GROUPS_A_CORE * context.defaultParallelism))
        tasks = context.parallelize(groups, max(1, len(groups)))
        answers = [one for part in tasks.map(partial(_answers, task=task)).collect() for one in pickle.loads(part)]
        unseen = [one for one, answer in zip(listed, answers, strict=True) if not _is_whole(one, answer)]
        found += [answer.facts for answer in answers if answer.facts is not None]
        if not unseen:
            break
        if look == LOOK_COUNT_MAX - 1:
            raise next(answer.error for answer in answers if answer.error is not None)
        # gone for the driver too, which saw them before: retention took segments, or the partition was deleted
        checkpoints = read_checkpoints(cluster.root)
        paths = [one.seen.path for one in unseen if is_directory(one.seen.path)]
        listed = [_listed(open_partition(path, checkpoints), properties) for path in paths]
    for facts in found:
        facts.evidence.cluster = cluster
    return found


def _listed(partition: Partition, properties: frozenset[str] | None) -> _Listed:
    return _Listed(partition, SeenFiles.of(partition.files, properties))


def _answers(group: tuple[_Listed, ...], task: Task) -> bytes:
    prepare_worker()
    return pickle.dumps([_answer(listed, task) for listed in group])


def _answer(listed: _Listed, task: Task) -> _Answer:
    try:
        listed.seen.require()
    except DataDirectoryError as error:
        return _Answer(host(), None, error)
    return _Answer(host(), task.facts_without_cluster(listed.partition), None)


def _is_whole(listed: _Listed, answer: _Answer) -> bool:
    """Return whether the executor read what the driver listed; raise DataDirectoryError if the driver still sees it."""
    facts = answer.facts
    if facts is not None:
        is_short = facts.evidence.size < listed.seen.byte_count and facts.error is None
        if not is_short or facts.partition.files != listed.partition.files or not _is_there(listed):
            return True
        raise DataDirectoryError(
            f"executor {answer.host} read fewer bytes of the logs than the driver listed",
            path=listed.seen.path,
            expected=f"{listed.seen.byte_count} bytes",
            found=facts.evidence.size,
            advice=ADVICE,
        )
    if answer.error is not None and _is_there(listed):
        raise answer.error
    return False


def _is_there(listed: _Listed) -> bool:
    try:
        listed.seen.require()
    except DataDirectoryError:
        return False
    return True


@contextmanager
def without_collection() -> Iterator[None]:
    """`with` block without garbage collection: facts of thousands of partitions are no garbage.

    To look for some takes a third of the time in which they are joined. It is for the whole process, as Python's is.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
