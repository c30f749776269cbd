"""Sequences and epochs of producers, each batch beside the one before it of the same producer (KIP-98, KIP-890)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_fields import NO_EPOCH
from ...columns.batch_table import BoolArray, Int64Array
from ...kernels.scan import batches as fields
from ...layout.batch import CONTROL_FLAG
from ...topics import consumer_offsets
from ...view.walk import Damage
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import CLEANED, Broken, Place, Silence, Where, rule
from .batches import ERROR

_SILENCES = (*CLEANED, Silence.EXPIRED, Silence.DAMAGED)
SEQUENCE_COUNT = 2**31  # 0 follows on 2^31 - 1
ANY = -2  # the next sequence is not known
# columns of what is known of a producer: epoch and offset of its last batch, the next sequence, whether it is a marker,
# and whether it was written in a transaction, as a marker is
_EPOCH, _NEXT, _OFFSET, _IS_MARKER, _IS_TRANSACTIONAL = range(5)


class FollowingBatches:
    """Data and markers of producers that wrote before: columns of a row each, in the order of producers.

    Attributes:
        rows: int64, rows of the batches; `producer_ids`, `epochs` and `sequences` are theirs.
        is_marker: batches that end a transaction.
        epoch_before, is_after_marker: epoch of the producer's last batch; whether that was a marker.
        expected: the next sequence: 0 with a new epoch; ANY if it is not known.
        distance: how far each is ahead of that sequence; 0 if that is not known.
        is_repeated: far ahead with the same epoch, which means behind: the batch is there again.
        is_outside: data in no transaction, though the producer's last batch was in one, or ended it.
    """

    def __init__(self, batches: AuditedBatches, rows: Int64Array, before: Int64Array) -> None:
        """Compare rows with what was known of their producers before each, int64, 5 × n."""
        self.batches, self.rows, table, evidence = batches, rows, batches.table, batches.evidence
        self.producer_ids, self.epochs = table.producer_id[rows], table.producer_epoch[rows]
        self.sequences = table.column(fields.BASE_SEQUENCE)[rows]
        self.is_marker: BoolArray = (table.attributes[rows] & CONTROL_FLAG) != 0
        self.epoch_before: Int64Array = before[_EPOCH]
        self.is_after_marker: BoolArray = before[_IS_MARKER] != 0
        is_outside = ~batches.is_transactional[rows] & ~self.is_marker & (before[_IS_TRANSACTIONAL] != 0)
        self.is_outside: BoolArray = is_outside & (self.epochs >= self.epoch_before)
        self.expected = np.where(self.epochs > self.epoch_before, 0, before[_NEXT])
        is_known = (self.epochs >= self.epoch_before) & (self.epoch_before != NO_EPOCH) & (self.sequences >= 0)
        is_known &= (self.expected != ANY) & ~self.is_marker
        self.distance: Int64Array = np.where(is_known, (self.sequences - self.expected) % SEQUENCE_COUNT, 0)
        is_far = self.distance > SEQUENCE_COUNT // 2
        self.is_repeated: BoolArray = (self.epochs == self.epoch_before) & is_far
        self._silence(evidence.cleaned, before[_OFFSET] < evidence.cleaned_up_to)
        expired = [
            index
            for index in np.flatnonzero(self.distance).tolist()
            if evidence.has_expired(
                int(self.producer_ids[index]), int(before[_OFFSET, index]), int(batches.base[rows[index]])
            )
        ]
        self._silence(Silence.EXPIRED, np.isin(np.arange(rows.size), expired))

    def _silence(self, silence: Silence, is_silenced: BoolArray) -> None:
        """Take it that silenced batches follow."""
        is_silenced &= self.distance != 0
        self.batches.evidence.note(sequence_gap, silence, is_silenced & ~self.is_repeated)
        self.batches.evidence.note(sequence_duplicate, silence, is_silenced & self.is_repeated)
        self.distance[is_silenced] = 0


class Sequences(Follower):
    """Remembers the last batch of each producer."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._last: dict[int, list[int]] = {}

    def skip(self, piece: Damage) -> None:
        """Expect any sequence next: each producer may have written there. Behind a torn end there is nothing."""
        if not self._evidence.may_hide_batches(piece):
            return
        for one in (sequence_gap, sequence_duplicate) if self._last else ():
            self._evidence.note(one, Silence.DAMAGED)
        for last in self._last.values():
            last[_NEXT] = ANY

    def step(self, batches: AuditedBatches) -> Iterator[Broken]:
        table, rows = batches.table, np.flatnonzero(batches.is_producers)
        if not rows.size:
            return
        is_marker = (table.attributes[rows] & CONTROL_FLAG) != 0
        sequences = table.column(fields.BASE_SEQUENCE)[rows]
        after = np.where(sequences >= 0, (sequences + batches.span[rows]) % SEQUENCE_COUNT, ANY)
        if batches.partition.files.topic == consumer_offsets.TOPIC:
            after[:] = ANY  # batches of the group coordinator have sequence 0 each
        is_transactional = is_marker | batches.is_transactional[rows]
        columns = np.stack([table.producer_epoch[rows], after, batches.last[rows], is_marker, is_transactional])
        ids = table.producer_id[rows]
        # what is known already comes before all batches, as a batch of its own
        known = [one for one in np.unique(ids).tolist() if one in self._last]
        ids = np.concatenate([np.array(known, np.int64), ids])
        columns = np.hstack([np.array([self._last[one] for one in known], np.int64).reshape(-1, 5).T, columns])
        order = np.argsort(ids, kind="stable")
        ids, columns = ids[order], columns[:, order]
        is_first = np.concatenate([[True], ids[1:] != ids[:-1]])
        is_known = order < len(known)
        _follow_markers(columns, is_first, is_known)
        for index in np.flatnonzero(np.append(is_first[1:], True)).tolist():
            self._last[int(ids[index])] = columns[:, index].tolist()
        is_asked = ~is_first & ~is_known
        if is_asked.any():
            here = rows[order[is_asked] - len(known)]
            before = columns[:, np.flatnonzero(is_asked) - 1]
            following = FollowingBatches(batches, here, before)
            for one in (sequence_gap, sequence_duplicate, producer_epoch_back, producer_fenced, producer_outside):
                yield from one(following)


def _follow_markers(columns: Int64Array, is_first: BoolArray, is_known: BoolArray) -> None:
    """Fill in the sequence behind each marker: 0 with a new epoch, else the one behind the data before it.

    The offset is that of the data: the cleaner may have taken batches between it and the marker, of a new epoch too.
    """
    is_marker = (columns[_IS_MARKER] != 0) & ~is_known
    is_new_epoch = np.concatenate([[True], columns[_EPOCH, 1:] != columns[_EPOCH, :-1]])
    columns[_NEXT, is_marker] = np.where(is_first[is_marker], ANY, 0)
    is_behind = is_marker & ~is_first
    columns[_OFFSET] = _carried(columns[_OFFSET], is_behind)
    columns[_NEXT] = _carried(columns[_NEXT], is_behind & ~is_new_epoch)


def _carried(column: Int64Array, is_carried: BoolArray) -> Int64Array:
    """Return the column with some values replaced by that of the row before."""
    return column[np.maximum.accumulate(np.where(is_carried, 0, np.arange(column.size)))]


@rule(
    ERROR,
    "records that the producer believes written are lost: compare with the other replicas, `logstore diff`",
    unless=_SILENCES,
)
def sequence_gap(facts: FollowingBatches) -> Iterator[Place]:
    """A producer's batches do not follow on each other: some are missing."""
    return _sequences(facts, is_repeated=False)


@rule(ERROR, "consumers see its records twice: deduplicate by producer id, epoch and sequence", unless=_SILENCES)
def sequence_duplicate(facts: FollowingBatches) -> Iterator[Place]:
    """A producer's batch is there again.

    A broker writes one twice that is sent again after it forgot the producer: is `producer.id.expiration.ms` short?
    """
    return _sequences(facts, is_repeated=True)


@rule(ERROR, "two producers share an id: look for a clone of a client's host, or a log put together from two")
def producer_epoch_back(facts: FollowingBatches) -> Iterator[Place]:
    """A producer wrote, or a marker ended its transaction, with an epoch below that of its earlier batches."""
    return _epochs(facts, ~facts.is_after_marker | facts.is_marker)


@rule(
    ERROR, "its records came after their transaction, and count as none: is a broker older than 3.6 among the replicas?"
)
def producer_fenced(facts: FollowingBatches) -> Iterator[Place]:
    """A producer wrote with an epoch that a marker had ended."""
    return _epochs(facts, facts.is_after_marker & ~facts.is_marker)


@rule(ERROR, "read_committed consumers get its records although the transaction may be aborted: what wrote it?")
def producer_outside(facts: FollowingBatches) -> Iterator[Place]:
    """A producer that writes in transactions wrote outside of one."""
    for index in np.flatnonzero(facts.is_outside).tolist():
        yield *_place(facts, index, "a batch of a transaction"), "one of none"


def _sequences(facts: FollowingBatches, *, is_repeated: bool) -> Iterator[Place]:
    for index in np.flatnonzero((facts.distance != 0) & (facts.is_repeated == is_repeated)).tolist():
        expected = f"sequence {int(facts.expected[index])} of epoch {int(facts.epochs[index])}"
        yield *_place(facts, index, expected), f"sequence {int(facts.sequences[index])}"


def _epochs(facts: FollowingBatches, is_asked: BoolArray) -> Iterator[Place]:
    is_back = (facts.epochs < facts.epoch_before) & (facts.epochs >= 0)  # of another, `log-header` tells
    for index in np.flatnonzero(is_asked & is_back).tolist():
        expected = f"epoch {int(facts.epoch_before[index])} or above"
        yield *_place(facts, index, expected), f"epoch {int(facts.epochs[index])}"


def _place(facts: FollowingBatches, index: int, expected: str) -> tuple[Where, str]:
    return facts.batches.where(int(facts.rows[index])), f"producer {int(facts.producer_ids[index])}: {expected}"
