"""The quick append against a slow twin: what it writes, what it leaves to the long way, and what it counts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.columns import batch_table
from logstore.folds.producer_buffers import ProducerBuffers
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels import append_slots as slot
from logstore.kernels import producer_slots, scan
from logstore.kernels.append_records import commit_append, prepare_append, prepare_placed
from logstore.layout.batch import TRANSACTIONAL_FLAG
from logstore.log.append_request import RequestRows
from tests.naive import append as naive
from tests.unit.kernel_forms import run_both

LEADER_EPOCH = 3
OUT_CAPACITY = 600
ITEMS = st.one_of(st.none(), st.binary(max_size=70), st.binary(max_size=3), st.sampled_from(["text", 5]))
USUAL_ITEMS = st.one_of(st.none(), st.binary(max_size=70))
TIMES = st.one_of(st.integers(900, 1100), st.sampled_from([-1, -2, 0, 2**62, -(2**63), "now", None, 2**63]))
TOPICS = st.builds(
    naive.Topic,
    batch_size_max=st.sampled_from([100, 200, 10_000]),
    needs_keys=st.sampled_from([False, False, True]),
    is_log_append_time=st.booleans(),
    before_max_ms=st.sampled_from([50, 2**62]),
    after_max_ms=st.sampled_from([50, 2**62]),
    segment_size_max=st.sampled_from([300, 2**20]),
    age_max_ms=st.sampled_from([40, 2**40]),
    created_ms=st.sampled_from([0, 990]),
)


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
    )


class Quick:
    """The two kernels over the arrays that a log has; `follow` does not look at what the twin says."""

    def __init__(self, topic: naive.Topic) -> None:
        self.slots = np.zeros(slot.SLOT_COUNT, np.int64)
        self.columns = np.zeros((scan.COLUMN_COUNT, 1), np.int64)
        self.out = np.zeros(OUT_CAPACITY, np.uint8)
        self.indexes = SegmentIndexes(0, index_interval_bytes=150)
        self.indexes.reserve(64)
        self.producers = ProducerBuffers()
        self.slots[slot.BATCH_SIZE_MAX] = topic.batch_size_max
        self.slots[slot.NEEDS_KEYS] = topic.needs_keys
        self.slots[slot.IS_LOG_APPEND_TIME] = topic.is_log_append_time
        self.slots[slot.TIMESTAMP_BEFORE_MAX_MS] = topic.before_max_ms
        self.slots[slot.TIMESTAMP_AFTER_MAX_MS] = topic.after_max_ms
        self.slots[slot.SEGMENT_SIZE_MAX] = topic.segment_size_max
        self.slots[slot.AGE_MAX_MS] = topic.age_max_ms
        self.slots[slot.CREATED_MS] = topic.created_ms
        self.slots[slot.OUT_CAPACITY] = OUT_CAPACITY
        self.slots[slot.LEADER_EPOCH] = LEADER_EPOCH
        self.slots[slot.FIRST_TIMESTAMP] = -1
        self.slots[slot.IS_VERIFIED] = 1
        self.request = RequestRows()
        self.slots[[slot.OFFSET_ENTRY_ROOM, slot.TIME_ENTRY_ROOM]] = 64
        self.file = np.array([0, 5], np.int64)

    def prepare(self, call: naive.Call) -> int:
        columns: Any = (call.values, call.keys, call.timestamps)
        data = self.request.take(*columns, call.now_ms)
        if data is None:
            return 0
        flags = TRANSACTIONAL_FLAG if call.is_transactional else 0
        fields = (self.request.count, call.now_ms, call.producer_id, call.epoch, call.sequence, flags)
        self.slots[: slot.CALL_SLOT_COUNT] = fields
        arrays = (self.out, self.columns, self.indexes.slots, *self.indexes.buffers, *self.producer_arrays())
        given = np.frombuffer(data + b"\0", np.uint8)[: len(data)]
        return run_both(prepare_append, given, self.request.rows, self.slots, self.file, *arrays)

    def write_by(self, write: Callable[[int, bytes], int]) -> None:
        """Let this be called with the descriptor and the bytes; what it returns is what the system says."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        self._write = prototype(lambda descriptor, data, size: write(descriptor, ctypes.string_at(data, size)))
        self.file[slot.WRITE_ADDRESS] = ctypes.cast(self._write, ctypes.c_void_p).value

    def prepare_placed(self, batch: bytes) -> int:
        """Of a batch as a validator leaves it."""
        data = np.frombuffer(batch, np.uint8)
        self.columns[:] = batch_table.scan(data).matrix[:, :1]
        arrays = (self.indexes.slots, *self.indexes.buffers, *self.producer_arrays()[:8])
        return run_both(prepare_placed, self.slots, data, self.columns, *arrays)

    def commit(self) -> int:
        return run_both(commit_append, self.slots, self.columns, *self.producer_arrays())

    def producer_arrays(self) -> tuple[Any, ...]:
        """In the order of `ProducerBuffers.arguments`, but always arrays."""
        buffers, transactions = self.producers, self.producers.transactions
        return (
            buffers.slots,
            buffers._entries,
            buffers._index,
            buffers._updates,
            buffers._update_index,
            buffers._started,
            buffers._completed,
            transactions.slots,
            transactions.ongoing,
            transactions.unreplicated,
        )


@given(TOPICS, st.lists(calls(), max_size=12), st.booleans())
def test_batches_are_the_twins_and_the_rest_is_left_to_the_long_way(
    topic: naive.Topic, script: list[naive.Call], is_written: bool
) -> None:
    topic.batch_size_max = min(topic.batch_size_max, OUT_CAPACITY)
    quick, log = Quick(topic), naive.Log()
    written: list[tuple[int, bytes]] = []
    if is_written:
        quick.write_by(lambda descriptor, data: written.append((descriptor, data)) or len(data))  # type: ignore[func-returns-value]
    for call in script:
        before = (quick.indexes.slots.copy(), quick.producers.slots.copy())
        expected = naive.prepared(topic, log, call, LEADER_EPOCH)
        size = quick.prepare(call)
        assert quick.out[: abs(size)].tobytes() == (expected or b"")
        if expected is None:
            assert size == 0
            _assert_untouched(quick, before)
            continue
        naive.committed(log, call, expected, int(quick.columns[scan.MAX_TIMESTAMP, 0]))
        if is_written:
            assert written[-2:] == [(5, expected)] * 2  # by both forms
        assert (size < 0) == is_written
        assert is_written or quick.commit() == log.end_offset
        assert quick.slots[slot.LOG_END_OFFSET] == log.end_offset
        assert quick.slots[slot.SEGMENT_SIZE] == log.size
        assert quick.producers.slots[producer_slots.MAP_END_OFFSET] == log.end_offset
    assert {row[0]: row[1] for row in quick.producers.entries.tolist()} == {
        producer_id: epoch for producer_id, (epoch, _, _) in log.producers.items()
    }


def test_records_of_all_sizes_are_copied_and_nothing_behind_them_is_touched() -> None:
    for size in range(OUT_CAPACITY - 61 - 10):
        value = bytes(number % 251 + 1 for number in range(size))
        quick, call = Quick(naive.Topic()), naive.Call([value])
        expected = naive.prepared(naive.Topic(), naive.Log(), call, LEADER_EPOCH)
        assert expected is not None
        assert quick.prepare(call) == len(expected)
        assert quick.out.tobytes() == expected + bytes(OUT_CAPACITY - len(expected))


@given(TOPICS, st.lists(calls(), max_size=12))
def test_a_batch_that_has_its_offsets_is_prepared_the_same(topic: naive.Topic, script: list[naive.Call]) -> None:
    """What the records themselves may be, a validator has looked at; here room and producers decide."""
    topic.batch_size_max = OUT_CAPACITY
    quick, other, log = Quick(topic), Quick(topic), naive.Log()
    for call in script:
        size = other.prepare(call)
        batch = naive.batch_of(topic, log, call, LEADER_EPOCH)
        if batch is None:
            continue
        quick.slots[slot.NOW_MS] = call.now_ms
        assert quick.prepare_placed(batch) == size
        if size:
            assert quick.commit() == other.commit()
            naive.committed(log, call, batch, int(quick.columns[scan.MAX_TIMESTAMP, 0]))
    assert (quick.producers.entries == other.producers.entries).all()
    assert (quick.indexes.slots[:-1] == other.indexes.slots[:-1]).all()


def test_a_batch_of_another_place_is_not_prepared() -> None:
    quick, log = Quick(naive.Topic()), naive.Log()
    batch = naive.batch_of(naive.Topic(), log, naive.Call([b"v"]), LEADER_EPOCH)
    assert batch is not None
    assert quick.prepare_placed(batch) == len(batch)
    for position in (7, 15, 22):  # base offset, leader epoch, and the bit of a control batch
        other = bytearray(batch)
        other[position] ^= 0x20
        assert quick.prepare_placed(bytes(other)) == 0


def _assert_untouched(quick: Quick, before: tuple[Any, Any]) -> None:
    """But for where the last look stopped."""
    indexes, producers = before
    assert (quick.indexes.slots[:-1] == indexes[:-1]).all()
    assert (quick.producers.slots[: producer_slots.UPDATE_COUNT] == producers[: producer_slots.UPDATE_COUNT]).all()
    for number in (producer_slots.UPDATE_COUNT, producer_slots.STARTED_COUNT, producer_slots.COMPLETED_COUNT):
        assert quick.producers.slots[number] == 0


def test_items_of_other_types_and_columns_of_other_lengths_are_left_to_the_long_way() -> None:
    quick = Quick(naive.Topic())
    assert quick.prepare(naive.Call(["text"])) == 0
    assert quick.prepare(naive.Call([b"v"], None, [2**70])) == 0
    assert quick.prepare(naive.Call([b"v"], None, list(np.array([5])))) == 0
    assert quick.prepare(naive.Call([type("Mine", (bytes,), {})(b"v")])) == 0
    assert quick.prepare(naive.Call([b"v", b"w"], [b"only one"])) == 0
    assert quick.prepare(naive.Call([b"v"])) > 61


@pytest.mark.parametrize("answer", [-1, 0, 30])
def test_what_the_system_did_not_write_is_left_to_the_caller(answer: int) -> None:
    quick = Quick(naive.Topic())
    quick.write_by(lambda _, data: answer)
    call = naive.Call([b"v"], producer_id=7, epoch=0, sequence=0)
    assert quick.prepare(call) == 69
    assert quick.slots[slot.WRITTEN_SIZE] == max(answer, 0)
    assert (quick.slots[slot.LOG_END_OFFSET], len(quick.producers.entries)) == (0, 0)
    assert quick.commit() == 1
    assert len(quick.producers.entries) == 1
