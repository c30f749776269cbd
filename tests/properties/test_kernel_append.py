"""The append kernel against a slow twin: what it writes, what it leaves to the slow path, and what it counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.kernels.append import structs as kinds
from logstore.kernels.scan import batches as fields
from tests.naive import append as naive
from tests.properties.kernel_inputs import TOPICS
from tests.support.append_forms import LEADER_EPOCH, OUT_CAPACITY, TopicForms, assert_counts

ITEMS = st.one_of(st.none(), st.binary(max_size=70), st.binary(max_size=3), st.sampled_from(["text", 5]))
USUAL_ITEMS = st.one_of(st.none(), st.binary(max_size=70))
HEADERS = st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=70)), max_size=3)
TIMES = st.one_of(st.integers(900, 1100), st.sampled_from([-1, -2, 0, 2**62, -(2**63), "now", None, 2**63]))


@st.composite
def calls(draw: st.DrawFn) -> naive.Call:
    count = draw(st.sampled_from([1, 1, 2, 5, 0]))
    items = draw(st.sampled_from([USUAL_ITEMS, USUAL_ITEMS, ITEMS]))
    column = st.one_of(st.none(), st.lists(items, min_size=count, max_size=count), st.lists(items, max_size=count))
    producer = draw(st.sampled_from([(-1, -1, -1), (7, 0, 0), (7, 0, 1), (7, 1, 0), (8, 0, 2), (9, 0, -1)]))
    return naive.Call(
        draw(st.lists(items, min_size=count, max_size=count)),
        draw(column),
        draw(st.none() | st.lists(TIMES, min_size=count, max_size=count)),
        *producer,
        is_transactional=producer[0] >= 0 and draw(st.booleans()),
        now_ms=draw(st.integers(1000, 1100)),
        headers=draw(st.none() | st.lists(HEADERS, min_size=count, max_size=count) | st.lists(HEADERS, max_size=count)),
    )


class Lying(bytes):
    """Bytes that say that there are more of them."""

    def __len__(self) -> int:
        return super().__len__() + 1


@given(TOPICS, st.lists(calls(), max_size=12))
def test_batches_are_the_twins_and_the_rest_is_left_to_the_slow_path(
    topic: naive.Topic, script: list[naive.Call]
) -> None:
    topic.batch_size_max = min(topic.batch_size_max, OUT_CAPACITY)
    forms, log = TopicForms(topic), naive.Log()
    for call in script:
        before, written = forms.unchanged(), len(forms.written)
        expected = naive.prepared(topic, log, call, LEADER_EPOCH)
        status = forms.append_records(call)
        if expected is None:
            assert status == kinds.NOT_FOR_FAST_PATH
            assert (forms.unchanged(), len(forms.written)) == (before, written)
            continue
        assert status == kinds.APPENDED
        assert forms.written[written:] == [(5, expected)]
        first_offset, max_timestamp = log.end_offset, int(forms.fast.row[fields.MAX_TIMESTAMP, 0])
        naive.committed(log, call, expected, max_timestamp)
        request = forms.request
        assert (request.first_offset, request.last_offset) == (first_offset, log.end_offset - 1)
        assert (request.max_timestamp, request.offset_count) == (max_timestamp, len(call.values))
        assert request.log_append_time == (call.now_ms if topic.is_log_append_time else -1)
        assert_counts(forms, log)


def test_records_of_all_sizes_are_copied_and_nothing_behind_them_is_touched() -> None:
    for size in range(OUT_CAPACITY - 61 - 10):
        value = bytes(number % 251 + 1 for number in range(size))
        forms, call = TopicForms(naive.Topic()), naive.Call([value])
        expected = naive.prepared(naive.Topic(), naive.Log(), call, LEADER_EPOCH)
        assert expected is not None
        assert forms.append_records(call) == kinds.APPENDED
        assert forms.batch == expected
        assert forms.fast.out.tobytes() == expected + bytes(OUT_CAPACITY - len(expected))


@given(TOPICS, st.lists(calls(), max_size=12))
def test_a_batch_that_was_built_is_appended_the_same(topic: naive.Topic, script: list[naive.Call]) -> None:
    """What the records themselves may be was looked at; here room and producers decide."""
    topic.batch_size_max = OUT_CAPACITY
    forms, other, log = TopicForms(topic), TopicForms(topic), naive.Log()
    for call in script:
        batch = naive.batch_of(topic, log, call, LEADER_EPOCH)
        status = other.append_records(call)
        if batch is None:
            continue
        assert forms.append_built(batch, now_ms=call.now_ms) == status
        if status:
            naive.committed(log, call, batch, int(forms.fast.row[fields.MAX_TIMESTAMP, 0]))
            assert_counts(forms, log)
    assert forms.unchanged() == other.unchanged()
    assert forms.written == other.written


def test_a_batch_that_was_built_for_another_offset_gets_the_logs_end() -> None:
    forms, log = TopicForms(naive.Topic()), naive.Log()
    batch = naive.batch_of(naive.Topic(), log, naive.Call([b"v"]), LEADER_EPOCH)
    assert batch is not None
    assert forms.append_built(batch) == forms.append_built(batch) == kinds.APPENDED
    assert [written[:8] for _, written in forms.written] == [bytes(8), bytes(7) + b"\1"]
    for position in (15, 22):  # leader epoch, and the bit of a control batch
        other = bytearray(batch)
        other[position] ^= 0x20
        assert forms.append_built(bytes(other)) == kinds.NOT_FOR_FAST_PATH


def test_items_of_other_types_and_columns_of_other_lengths_are_left_to_the_slow_path() -> None:
    forms = TopicForms(naive.Topic())
    for call in (
        naive.Call(["text"]),
        naive.Call([b"v"], None, [2**70]),
        naive.Call([b"v"], None, list(np.array([5]))),
        naive.Call([Lying(b"v"), b"w"]),
        naive.Call([b"v", b"w"], [b"only one"]),
    ):
        assert forms.append_records(call) == kinds.NOT_FOR_FAST_PATH
    assert forms.append_records(naive.Call([b"v"])) == kinds.APPENDED


@pytest.mark.parametrize("answer", [-1, 0, 30])
def test_batch_that_was_written_in_part_counts_when_the_rest_is_written(answer: int) -> None:
    forms = TopicForms(naive.Topic())
    forms.write_by(lambda _, data: answer)
    before = forms.unchanged()
    call = naive.Call([b"v"], producer_id=7, epoch=0, sequence=0)
    assert forms.append_records(call) == kinds.UNFINISHED
    assert (forms.request.written_size, forms.log.unfinished_size) == (max(answer, 0), 69)
    forms.log.unfinished_size = 0
    after = forms.unchanged()
    assert (after["log"], after["indexes"], after["producers"], after["end"]) == (
        before["log"],
        before["indexes"],
        before["producers"],
        before["end"],
    )
    forms.log.unfinished_size = 69
    assert forms.append_records(call) == kinds.NOT_FOR_FAST_PATH, "nothing may be written behind it"
    assert forms.finish() == kinds.APPENDED
    assert (forms.log.log_end_offset, len(forms.producers.entries)) == (1, 1)
    assert forms.finish() == kinds.NOT_FOR_FAST_PATH


@pytest.mark.parametrize(
    ("struct", "name", "value"),
    [
        ("fast", "is_bound", 0),
        ("log", "unfinished_size", 1),
        ("log", "log_start_offset", 1),
    ],
)
def test_a_log_that_is_not_as_it_was_bound_is_left_to_the_slow_path(struct: str, name: str, value: int) -> None:
    forms = TopicForms(naive.Topic())
    assert forms.append_records(naive.Call([b"v"], producer_id=7, epoch=0, sequence=0, is_transactional=True))
    setattr(getattr(forms, struct), name, value)
    call = naive.Call([b"v"], producer_id=7, epoch=0, sequence=1, is_transactional=True)
    assert forms.append_records(call) == kinds.NOT_FOR_FAST_PATH


def test_a_request_for_another_end_is_left_to_the_slow_path() -> None:
    """A signal handler may append between the request and the call."""
    forms = TopicForms(naive.Topic())
    forms.columns.take([b"v"], None, None, None)
    usual = {"kind": kinds.RECORDS, "record_count": 1, "data_size": 1}
    assert forms.append(b"v", log_end_offset=1, **usual) == kinds.NOT_FOR_FAST_PATH
    assert forms.append(b"v", leader_epoch=LEADER_EPOCH + 1, **usual) == kinds.NOT_FOR_FAST_PATH


def test_state_of_a_batch_that_was_not_finished_is_forgotten() -> None:
    """`SlowPath` may be interrupted between a producer's update and its end."""
    forms = TopicForms(naive.Topic())
    call = naive.Call([b"v"], producer_id=7, epoch=0, sequence=0, is_transactional=True)
    forms.write_by(lambda _, data: -1)
    assert forms.append_records(call) == kinds.UNFINISHED
    forms.log.unfinished_size = 0
    forms.write_by(lambda _, data: len(data))
    assert forms.append_records(naive.Call([b"other"])) == kinds.APPENDED
    assert (len(forms.producers.entries), forms.log.first_unstable_offset) == (0, -1)
    assert forms.append_records(call) == kinds.APPENDED
    assert (len(forms.producers.entries), forms.log.first_unstable_offset) == (1, 1)


def test_a_flush_that_is_due_is_told() -> None:
    forms = TopicForms(naive.Topic())
    forms.fast.flush_message_count = 2
    assert [forms.append_records(naive.Call([b"v"])) for _ in range(2)] == [kinds.APPENDED, kinds.FLUSH_IS_DUE]
    forms.log.recovery_point = 2
    assert forms.append_records(naive.Call([b"v"])) == kinds.APPENDED
