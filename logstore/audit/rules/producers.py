"""Rules about producers: their sequences, and the `.txnindex` and `.snapshot` that tell of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray
from ...layout.transaction_index import ENTRY_SIZE
from ..facts.producers import NONE, AbortedFacts, SnapshotFacts, SnapshotRow
from ..facts.sequences import FollowingBatches
from ..finding import Broken, Rule, Where, rule
from .log import ERROR, WARNING


@rule(ERROR, "read_committed consumers get aborted records, or miss committed ones: `logstore repair`")
def transaction_index(facts: AbortedFacts) -> Iterator[Broken]:
    """A `.txnindex` does not tell the aborted transactions that the log tells."""
    path = facts.segment.transaction_index or facts.segment.log
    by_marker = {entry[2]: entry for entry in facts.stored.tolist()}  # no two have the same marker
    is_unfinished = facts.is_growing or facts.partition.will_be_recovered(facts.segment)
    last_marker = max(by_marker, default=NONE)
    for entry in facts.expected.tolist():
        stored = by_marker.pop(entry[2], None)
        is_to_come = is_unfinished and stored is None and entry[2] > last_marker  # a broker writes it after the batches
        if not is_to_come and not _is_same(entry, stored, facts):
            yield facts.partition.where(path, offset=entry[2]), _entry_text(entry), _entry_text(stored)
    for entry in by_marker.values():
        is_read = entry[2] < facts.end_offset or facts.partition.surroundings.was_closed
        if is_read and (entry[1] >= facts.known_from or entry[1] < 0):
            yield facts.partition.where(path, offset=entry[2]), "no aborted transaction", _entry_text(entry)
    if facts.odd_size:
        yield facts.partition.where(path), f"a multiple of {ENTRY_SIZE} bytes", f"{facts.odd_size} more"
    if (np.diff(facts.stored[:, 2]) <= 0).any():
        yield facts.partition.where(path), "ascending last offsets", facts.stored[:, 2].tolist()


def _is_same(entry: list[int], found: list[int] | None, facts: AbortedFacts) -> bool:
    """Return whether the file's entry agrees with the log, as far as the log knows.

    Of transactions that began below `known_from` a broker knows more than the log if it has run since then, or less if
    it was started later. So such a one may be in the file or not, and may hold the last stable offset back or not.
    """
    known_from = facts.known_from
    if entry[1] < known_from:
        return found is None or found[0] == entry[0]
    if found is None or found[0] != entry[0]:
        return False
    is_first_right = found[1] == entry[1] or 0 <= found[1] < known_from
    # a follower appends many batches at once, and counts a transaction that begins behind the marker (`updateTxnIndex`)
    is_behind = facts.may_have_followed and min(found[3], entry[3]) > entry[2]
    return is_first_right and (found[3] == entry[3] or is_behind or 0 <= min(found[3], entry[3]) < known_from)


def _entry_text(entry: list[int] | None) -> str:
    if entry is None:
        return "none"
    return f"producerId {entry[0]}, firstOffset {entry[1]}, lastOffset {entry[2]}, lastStableOffset {entry[3]}"


snapshot_format = Rule(
    "snapshot-format",
    WARNING,
    "A `.snapshot` does not parse.",
    "a broker deletes it and takes the one before: starts take longer",
)


@rule(ERROR, "duplicates may be taken, or good batches refused: delete it while the broker is down")
def snapshot_state(facts: SnapshotFacts) -> Iterator[Broken]:
    """A `.snapshot` does not hold the producers that the log had."""
    place = facts.partition.where(facts.partition.files.producer_snapshots[facts.offset], offset=facts.offset)
    if facts.end_offset is not None:
        expected = f"a snapshot of an offset up to {facts.end_offset}, where the log ends"
        yield place._replace(offset=None), expected, facts.offset
    if facts.is_repeated:
        yield place, "each producer once", "one more than once"
    if facts.live is None:
        return
    # not those of transactions: while one is open its producer stays, and a marker sets the timestamp alone
    survivors = [row for row in facts.stored.values() if row.current_txn_first_offset == row.coordinator_epoch == NONE]
    for producer_id, row in facts.live.items():
        found = facts.stored.get(producer_id)
        if facts.known_from and row.last_offset < facts.known_from:
            # the cleaner leaves the last batch of each producer, but neither its time nor markers (`filterTo`)
            if found is not None and NONE != found.last_offset == row.last_offset and found[:4] != row[:4]:
                yield place, row.text(producer_id), found.text(producer_id)
            continue
        if found is None and not _may_have_expired(row, survivors):
            yield place, row.text(producer_id), "none"
        if found is not None and not _agrees(row, found, facts.known_from):
            yield place, row.text(producer_id), found.text(producer_id)
    for producer_id, found in facts.stored.items():
        if found.last_offset >= facts.offset:
            yield place, f"last offsets below {facts.offset}", found.text(producer_id)
        elif producer_id not in facts.live and (not facts.known_from or found.last_offset >= facts.known_from):
            yield place, f"no producer {producer_id}", found.text(producer_id)


def _agrees(row: SnapshotRow, found: SnapshotRow, known_from: int) -> bool:
    """Return whether the log's row and the snapshot's agree, but for fields that one of them cannot know."""
    if NONE < row.current_txn_first_offset < known_from or NONE < found.current_txn_first_offset < known_from:
        row = row._replace(current_txn_first_offset=found.current_txn_first_offset)
    if known_from and row.coordinator_epoch < found.coordinator_epoch:  # of a marker that was cleaned away or cut off
        row = row._replace(coordinator_epoch=found.coordinator_epoch)
    if found.coordinator_epoch == NONE:  # it came again after it had expired
        row = row._replace(coordinator_epoch=NONE)
    if found.last_offset == NONE:  # it came again with a marker
        row = row._replace(last_sequence=NONE, last_offset=NONE, offset_delta=0)
    return row == found


def _may_have_expired(row: SnapshotRow, survivors: list[SnapshotRow]) -> bool:
    """Return whether a producer may have expired: not if a survivor's last write is older, in time and in the log."""
    if row.current_txn_first_offset != NONE:
        return False
    return not any(
        NONE < other.last_offset < row.last_offset and other.timestamp <= row.timestamp for other in survivors
    )


snapshot_missing = Rule(
    "snapshot-missing",
    WARNING,
    "A log has no `.snapshot` of its end, after a clean shutdown.",
    "with an older one a broker's next start takes longer; without any it forgets the producers and what they have "
    "open: delete `.kafka_cleanshutdown` so that it reads the log",
)


@rule(ERROR, "records that the producer believes written are lost: compare with the other replicas, `logstore diff`")
def sequence_gap(facts: FollowingBatches) -> Iterator[Broken]:
    """A producer's batches do not follow on each other: some are missing."""
    return _sequences(facts, is_repeated=False)


@rule(ERROR, "consumers see its records twice: deduplicate by producer id, epoch and sequence")
def sequence_duplicate(facts: FollowingBatches) -> Iterator[Broken]:
    """A producer's batch is there again.

    A broker writes one twice that is sent again after it forgot the producer: is `producer.id.expiration.ms` short?
    """
    return _sequences(facts, is_repeated=True)


@rule(ERROR, "two producers share an id: look for a clone of a client's host, or a log put together from two")
def producer_epoch_back(facts: FollowingBatches) -> Iterator[Broken]:
    """A producer wrote, or a marker ended its transaction, with an epoch below that of its earlier batches."""
    return _epochs(facts, ~facts.is_after_marker | facts.is_marker)


@rule(
    ERROR, "its records came after their transaction, and count as none: is a broker older than 3.6 among the replicas?"
)
def producer_fenced(facts: FollowingBatches) -> Iterator[Broken]:
    """A producer wrote with an epoch that a marker had ended."""
    return _epochs(facts, facts.is_after_marker & ~facts.is_marker)


@rule(ERROR, "read_committed consumers get its records although the transaction may be aborted: what wrote it?")
def producer_outside(facts: FollowingBatches) -> Iterator[Broken]:
    """A producer that writes in transactions wrote outside of one."""
    for index in np.flatnonzero(facts.is_outside).tolist():
        yield *_place(facts, index, "a batch of a transaction"), "one of none"


def _sequences(facts: FollowingBatches, *, is_repeated: bool) -> Iterator[Broken]:
    for index in np.flatnonzero((facts.distance != 0) & (facts.is_repeated == is_repeated)).tolist():
        expected = f"sequence {int(facts.expected[index])} of epoch {int(facts.epochs[index])}"
        yield *_place(facts, index, expected), f"sequence {int(facts.sequences[index])}"


def _epochs(facts: FollowingBatches, is_asked: BoolArray) -> Iterator[Broken]:
    is_back = (facts.epochs < facts.epoch_before) & (facts.epochs >= 0)  # of another, `log-header` tells
    for index in np.flatnonzero(is_asked & is_back).tolist():
        expected = f"epoch {int(facts.epoch_before[index])} or above"
        yield *_place(facts, index, expected), f"epoch {int(facts.epochs[index])}"


def _place(facts: FollowingBatches, index: int, expected: str) -> tuple[Where, str]:
    return facts.batches.where(int(facts.rows[index])), f"producer {int(facts.producer_ids[index])}: {expected}"
