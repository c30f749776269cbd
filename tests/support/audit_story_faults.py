"""Stories in which one thing goes wrong, by the rule that it breaks; and one in which nothing does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.support.audit_story import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TIMEOUT_MS,
    Story,
)
from tests.support.encoder import CONTROL, GZIP, TRANSACTIONAL, Batch, Rec

A, B = "orders-0", "orders-1"
AT_A, AT_B = ("orders", 0), ("orders", 1)
COPY = (8, 0)
PAY, NEXT = (7, 0), (7, 1)  # a producer before and after its epoch was bumped


def begin(story: Story) -> Story:
    """A producer gets its id, and its coordinator an open transaction in both partitions."""
    return story.state("pay", PAY, EMPTY).state("pay", PAY, ONGOING, [AT_A, AT_B])


def end(story: Story) -> Story:
    """The coordinator decides to commit, and is done."""
    return story.state("pay", PAY, PREPARE_COMMIT, [AT_A, AT_B]).state("pay", PAY, COMPLETE_COMMIT)


def commit_in_transaction(story: Story, offset: int) -> Story:
    """A group's offset in A, in a transaction of its own."""
    story.state("copier", COPY, ONGOING, [("__consumer_offsets", 0)])
    story.commit_offset("copy", AT_A, offset, COPY)
    story.state("copier", COPY, PREPARE_COMMIT, [("__consumer_offsets", 0)])
    story.marker("__consumer_offsets-0", COPY)
    return story.state("copier", COPY, COMPLETE_COMMIT)


def clean() -> Story:
    """Transactions committed and fenced, a chain of them, idempotent and plain producers, a sequence that wraps."""
    story = Story()
    story.plain(A, 3)
    begin(story)
    story.data(A, PAY, 0, 2)
    story.data(B, PAY, 0)
    story.plain(A)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A, AT_B])
    story.marker(A, PAY)
    story.marker(B, PAY)
    story.state("pay", PAY, COMPLETE_COMMIT)
    story.state("pay", PAY, ONGOING, [AT_A, AT_B])
    story.data(A, PAY, 2)
    story.state("pay", NEXT, PREPARE_ABORT, [AT_A, AT_B])  # fenced: the markers have the next epoch
    story.marker(A, NEXT, commit=False)
    story.marker(B, NEXT, commit=False)
    story.state("pay", NEXT, COMPLETE_ABORT)
    for number in range(3):
        story.data(A, (9, 0), (2**31 - 2 + 2 * number) % 2**31, 2, flags=0)
    story.data(A, (9, 1), 0, flags=0)
    story.state("copier", COPY, EMPTY)
    for offset in (1, 3, 3):
        commit_in_transaction(story, offset)
    story.commit_offset("plain", AT_A, 9)
    return story.commit_offset("plain", AT_A, 2)


def aborted_before_another() -> Story:
    """A transaction is aborted, and another committed; a follower may have appended both at once."""
    return Story().data(A, PAY, 0).marker(A, PAY, commit=False).plain(A).data(A, COPY, 0).marker(A, COPY)


def gap() -> Story:
    return clean().data(A, (9, 1), 2, flags=0)


def gap_after_bump() -> Story:
    return clean().data(A, (9, 2), 1, flags=0)


def duplicate() -> Story:
    return clean().data(A, (9, 1), 0, flags=0)


def old_epoch() -> Story:
    return clean().data(A, (9, 0), 4, flags=0)


def marker_of_an_old_epoch() -> Story:
    return clean().data(A, (8, 3), 0).marker(A, (8, 2))


def fenced() -> Story:
    return clean().data(A, PAY, 3, flags=0)


def outside() -> Story:
    return clean().data(A, NEXT, 0, flags=0)


def hanging_unknown() -> Story:
    return clean().data(A, (55, 0), 0)


def hanging_not_claimed() -> Story:
    return clean().state("pay", NEXT, ONGOING, [AT_B]).data(B, NEXT, 0).data(A, NEXT, 0)


def hanging_of_the_past() -> Story:
    story = clean()
    story.data(B, NEXT, 0)
    for epoch in (2, 3):
        story.state("pay", (7, epoch), EMPTY)
    return story


def timed_out() -> Story:
    story = begin(Story()).data(A, PAY, 0).data(B, PAY, 0)
    story.now_ms += TIMEOUT_MS
    return story


def no_data() -> Story:
    story = begin(Story().plain(A).plain(B))
    story.now_ms += TIMEOUT_MS
    return story


def late() -> Story:
    story = begin(Story()).data(A, PAY, 0).data(B, PAY, 0)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A, AT_B])
    story.marker(A, PAY)
    story.now_ms += TIMEOUT_MS
    return story


def marker_missing(policy: str | None = None) -> Story:
    story = Story()
    story.make_topic(AT_B[0], policy=policy)
    return end(begin(story).data(A, PAY, 0).data(B, PAY, 0).marker(A, PAY))


def marker_missing_between() -> Story:
    return Story().data(A, PAY, 0).data(A, NEXT, 0).marker(A, (7, 2))


def marker_cleaned() -> Story:
    story = marker_missing("compact")
    marker = Batch(0, flags=TRANSACTIONAL | CONTROL, producer_id=PAY[0], producer_epoch=PAY[1])
    return story.append(B, marker)


def marker_doubled() -> Story:
    return Story().data(A, PAY, 0).marker(A, NEXT).marker(A, NEXT)


def markers_contradict() -> Story:
    return Story().data(A, PAY, 0).marker(A, NEXT).marker(A, NEXT, commit=False)


def marker_against_the_decision() -> Story:
    story = begin(Story()).data(A, PAY, 0).data(B, PAY, 0)
    return end(story.marker(A, PAY).marker(B, PAY, commit=False))


def not_atomic() -> Story:
    return Story().data(A, PAY, 0).data(B, PAY, 0).marker(A, NEXT).marker(B, NEXT, commit=False)


def lost_between() -> Story:
    story = clean()
    return story.plain(A, offset=story.end(A) + 3)


def record_batch(*records: Rec, stream: bytes | None = None, codec: int = 0) -> Story:
    """One more batch, with the right checksum."""
    story = clean()
    delta = max(len(records) - 1, 0)
    return story.append(A, Batch(0, records, last_offset_delta=delta, stream=stream, codec=codec)).plain(A)


def records_of_another_length() -> Story:
    return record_batch(Rec(value=b"v"), stream=b"\x40\x00\x00\x00\x01\x02v\x00")


def records_in_no_stream() -> Story:
    return record_batch(Rec(value=b"v"), stream=b"this is no gzip", codec=GZIP)


def record_offsets_go_back() -> Story:
    return record_batch(Rec(value=b"v", offset_delta=1), Rec(value=b"w", offset_delta=0))


def record_offset_beyond_the_batch() -> Story:
    return record_batch(Rec(value=b"v"), Rec(value=b"w", offset_delta=5))


def record_timestamp_above_the_largest() -> Story:
    return record_batch(Rec(value=b"v", timestamp_delta=7))


def chain_back() -> Story:
    return commit_in_transaction(clean(), 2)


def chain_mixed() -> Story:
    return clean().commit_offset("copy", AT_A, 5)


def chain_ahead() -> Story:
    return commit_in_transaction(clean(), 99)


def group_ahead() -> Story:
    return clean().commit_offset("plain", AT_A, 99)


def group_behind() -> Story:
    return clean().commit_offset("plain", AT_A, -2)


def group_unknown() -> Story:
    story = clean()
    story.make_topic("orders")
    return story.commit_offset("plain", ("gone", 0), 1)


def in_another_partition() -> Story:
    """The topic got a second partition, in which the coordinator looks for `page` from then on."""
    story = clean()
    story.make_topic("__transaction_state")
    story.make_partition("__transaction_state", 1)
    return story.state("page", (8, 0), EMPTY)


def completed_otherwise() -> Story:
    story = clean()
    story.state("pay", NEXT, ONGOING, [AT_A])
    story.state("pay", NEXT, PREPARE_ABORT, [AT_A])
    story.marker(A, NEXT, commit=False)
    return story.state("pay", NEXT, COMPLETE_COMMIT)


def decided_of_less() -> Story:
    story = clean()
    story.state("pay", NEXT, ONGOING, [AT_A, AT_B])
    story.state("pay", NEXT, PREPARE_ABORT, [AT_A])
    story.marker(A, NEXT, commit=False)
    return story.state("pay", NEXT, COMPLETE_ABORT)


def another_producer() -> Story:
    return clean().state("pay", (8, 0), ONGOING)


def epoch_back() -> Story:
    return clean().state("pay", PAY, ONGOING)


def marker_of_nothing() -> Story:
    """In B two decisions have come, and between them a marker of neither."""
    story = clean()
    story.state("pay", (7, 2), EMPTY)
    story.marker(B, (7, 2), commit=False)
    story.state("pay", (7, 3), EMPTY)
    for _ in range(2):
        story.state("pay", (7, 3), ONGOING, [AT_B])
        story.state("pay", (7, 3), PREPARE_COMMIT, [AT_B])
        story.marker(B, (7, 3))
        story.state("pay", (7, 3), COMPLETE_COMMIT)
    return story


def marker_of_an_abort_missing_between() -> Story:
    """The next transaction of the same epoch ends two."""
    story = clean()
    for is_commit in (False, True):
        decision, end_state = (PREPARE_COMMIT, COMPLETE_COMMIT) if is_commit else (PREPARE_ABORT, COMPLETE_ABORT)
        story.state("pay", NEXT, ONGOING, [AT_A])
        story.data(A, NEXT, int(is_commit))
        story.state("pay", NEXT, decision, [AT_A])
        if is_commit:
            story.marker(A, NEXT)
        story.state("pay", NEXT, end_state)
    return story


def bad_records() -> Story:
    return clean().plain("__transaction_state-0")


def microseconds() -> Story:
    story = clean()
    story.plain(A)
    batch = story.batches[A][-1]
    story.batches[A][-1] = replace(batch, base_timestamp=story.now_ms * 1000, max_timestamp=story.now_ms * 1000)
    return story


def coordinator_epoch_back() -> Story:
    story = Story()
    for sequence, coordinator_epoch in enumerate((3, 2)):
        story.data(A, PAY, sequence)
        story.marker(A, PAY, coordinator_epoch=coordinator_epoch)
    return story


FAULTS: dict[str, list[Callable[[], Story]]] = {
    "sequence-gap": [gap, gap_after_bump],
    "sequence-duplicate": [duplicate],
    "producer-epoch-back": [old_epoch, marker_of_an_old_epoch],
    "producer-fenced": [fenced],
    "producer-outside": [outside],
    "transaction-hanging": [hanging_unknown, hanging_not_claimed, hanging_of_the_past],
    "transaction-timeout": [timed_out],
    "transaction-no-data": [no_data],
    "marker-late": [late],
    "marker-missing": [marker_missing, marker_missing_between, marker_of_an_abort_missing_between],
    "marker-cleaned": [marker_cleaned],
    "marker-unexplained": [marker_of_nothing],
    "marker-epoch": [coordinator_epoch_back],
    "coordinator-state": [completed_otherwise, decided_of_less, another_producer, epoch_back],
    "internal-partition": [in_another_partition],
    "group-behind": [group_behind],
    "group-unknown": [group_unknown],
    "marker-doubled": [marker_doubled],
    "marker-contradicting": [markers_contradict, marker_against_the_decision],
    "transaction-atomicity": [not_atomic],
    "offsets-lost": [lost_between],
    "log-records": [
        records_of_another_length,
        records_in_no_stream,
        record_offsets_go_back,
        record_offset_beyond_the_batch,
        record_timestamp_above_the_largest,
    ],
    "chain-back": [chain_back],
    "chain-mixed": [chain_mixed],
    "chain-ahead": [chain_ahead],
    "group-ahead": [group_ahead],
    "internal-record": [bad_records],
    "timestamp-future": [microseconds],
}
