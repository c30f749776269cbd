"""The end of a partition's log, where the newest producer snapshot leaves little to read.

facts, producers = follow_tail(partition, cluster)                       as far back as a transaction is open
facts, producers = follow_tail(partition, cluster, since=17)             and back to an offset
start = start_at(partition, 17)                                          a batch that a pass may begin with

A broker that starts knows its producers by the newest snapshot and by what follows, and so does this; what lies before
is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..disk.directory import SegmentFiles
from ..disk.side_files import read_producer_snapshot
from ..errors import CorruptRecordError, CorruptSnapshotError, DataDirectoryError, LogstoreError
from ..folds import producer_update
from ..folds.producer_state import ProducerState
from ..layout.producer_snapshot import ProducerSnapshot
from ..view.batch_search import indexed_batch
from ..view.walk import Advance, Damage
from .cluster import Cluster
from .evidence import AuditedBatches, Follower
from .log_pass import LOG_START, LogStart
from .partition import Partition, unless_gone
from .verify import Asked, PartitionFacts, verify_partition


class KnownProducers(Follower):
    """Steps the producers of a snapshot by what follows, as a broker that starts (`ProducerStateManager`).

    Attributes:
        state: at the end of the log, or at the first damage, where a broker that recovers the log cuts it.
        problems: why it does not go on to the end, and snapshots that cannot be read.
    """

    def __init__(self, partition: Partition, offset: int, snapshot: ProducerSnapshot | None) -> None:
        self.state = ProducerState(partition.name)
        self.state.start_at(offset)
        if snapshot is not None:
            self.state.load(snapshot, offset, None)  # expired ones have no open transaction
        self.problems = list[LogstoreError]()
        self._partition = partition
        self._segment: SegmentFiles | None = None
        self._is_over = False

    def begin(self, segment: SegmentFiles) -> None:
        self._segment = segment

    def step(self, batches: AuditedBatches) -> None:
        data, table, first_row, row_end = batches.run
        first_row += int((batches.last < self.state.map_end_offset).sum())
        if self._is_over or first_row >= row_end:
            return
        try:
            producer_update.step(self.state, data, table, first_row, row_end)
        except LogstoreError as error:
            error.path = batches.segment.log
            self._stop(error)
        else:
            self.state.map_end_offset = int(batches.last[-1]) + 1

    def skip(self, piece: Damage) -> None:
        """Stop at damage; a batch that is being written is none."""
        is_last = self._segment is self._partition.last_segment
        if self._segment is not None and (piece.may_hide_batches or not is_last):
            self._stop(
                CorruptRecordError(
                    "A segment cannot be read to its end, and is taken to end before",
                    path=self._segment.log,
                    position=piece.start,
                    expected=piece.expected,
                    found=piece.found,
                    advice="if it stays, it is damage and no write on its way: look with `logstore verify`",
                )
            )

    def _stop(self, problem: LogstoreError) -> None:
        self.problems += [] if self._is_over else [problem]
        self._is_over = True


class Tail(NamedTuple):
    """What a pass over the end of a log leaves."""

    facts: PartitionFacts
    producers: KnownProducers


def follow_tail(
    partition: Partition, cluster: Cluster, since: int | None = None, advance: Advance = lambda size: None
) -> Tail:
    """Follow a log from its newest usable snapshot on, and from `since` if that is before.

    Transactions that began before and are open still hold back the last stable offset of the facts, but are not among
    their open ones; see `with_open`.
    """
    bad = list[LogstoreError]()
    for offset, snapshot in _snapshots(partition, bad):
        producers = KnownProducers(partition, offset, snapshot)
        start = start_at(partition, offset if since is None else min(since, offset))
        facts = verify_partition(partition, cluster, Asked.NOTHING, advance=advance, start=start, beside=[producers])
        if snapshot is None or facts.evidence.log_end_offset >= offset:
            break  # else the log was cut since, and a broker that starts removes the snapshot
    producers.problems[:0] = bad
    ongoing = producers.state.transactions.ongoing_entries()
    if len(ongoing) and (begun := int(ongoing[:, 0].min())) < start.offset:
        facts.transactions.open_before = begun
    return Tail(facts, producers)


def with_open(tail: Tail, cluster: Cluster, advance: Advance = lambda size: None) -> PartitionFacts:
    """Return the facts of the log from the first record of its earliest open transaction on."""
    facts, begun = tail.facts, tail.facts.transactions.open_before
    if begun is None:
        return facts
    start = start_at(facts.partition, begun)
    return verify_partition(facts.partition, cluster, Asked.NOTHING, advance=advance, start=start)


def _snapshots(partition: Partition, bad: list[LogstoreError]) -> Iterator[tuple[int, ProducerSnapshot | None]]:
    """Yield the snapshots behind the log start, newest first, and in the end none; add errors of others to `bad`.

    A broker takes an older one in the place of one that is damaged, and more of the log.
    """
    for offset, path in reversed(partition.files.producer_snapshots.items()):
        if offset > partition.first_offset:
            try:
                snapshot = unless_gone(read_producer_snapshot, path)
            except (CorruptSnapshotError, DataDirectoryError) as error:
                error.path = error.path or path
                bad.append(error)
                continue
            if snapshot is not None:
                yield offset, snapshot
    yield partition.first_offset, None


def start_at(partition: Partition, offset: int) -> LogStart:
    """Return a batch from which on a pass sees all records at `offset` and behind it.

    An index leads to it if the batch that an entry names is there; else it is the first one of a segment.
    """
    segments = [one for one in partition.files.segments if one.base_offset <= offset]
    if not segments:
        return LOG_START
    segment = segments[-1]
    inside = indexed_batch(segment, offset)
    if inside is not None:
        return LogStart(segment.base_offset, inside.position, inside.base_offset)
    return LogStart(segment.base_offset, 0, segment.base_offset) if len(segments) > 1 else LOG_START
