"""The memory of the cleaner's map: slots and marks share one budget, and the keys have theirs first."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.columns.record_table import RecordTable
from logstore.kernels.decode import records as decode
from logstore.kernels.table import offset_map as fields
from logstore.log.cleaner.offset_map import SLOT_SIZE, OffsetMap
from logstore.log.cleaner.rounds import put_table
from logstore.log.cleaner.segment_batches import CleanedTransactions
from tests.naive import legacy
from tests.support.dice import Dice
from tests.support.encoder import Batch, Rec

MIB = 1 << 20


def memory(offset_map: OffsetMap) -> tuple[int, int]:
    """Bytes of slots and of marks."""
    return offset_map._table.nbytes, int(offset_map._state[fields.MARK_COUNT])


@pytest.mark.parametrize("record_count", [10**5, 10**8, 2 * 10**9])
def test_marks_are_part_of_the_budget(record_count: int) -> None:
    offset_map = OffsetMap(record_count, buffer_size=MIB, end_offset=record_count)
    assert memory(offset_map) == (MIB // SLOT_SIZE * SLOT_SIZE, 0)
    assert offset_map._marks.nbytes == 1
    assert offset_map.entry_count_max == int(MIB // SLOT_SIZE * 0.9)


def test_slots_that_keys_can_do_without_are_given_up_for_marks() -> None:
    count = 37_500  # of 43,690 slots; twice as many would be roomy
    slots_size, mark_count = memory(OffsetMap(count, buffer_size=MIB, end_offset=count))
    assert mark_count == count
    assert MIB - SLOT_SIZE < slots_size + mark_count <= MIB
    assert memory(OffsetMap(count, buffer_size=MIB, end_offset=4 * count)) == (43_690 * SLOT_SIZE, 0)


def test_a_budget_with_room_for_all_is_not_used_up() -> None:
    assert memory(OffsetMap(1000, buffer_size=MIB, end_offset=4000)) == (2001 * SLOT_SIZE, 4000)
    assert memory(OffsetMap(1000, buffer_size=MIB, first_offset=7, end_offset=4008)) == (2001 * SLOT_SIZE, 0)


def test_the_usual_budget_has_room_for_the_marks_of_some_million_records() -> None:
    count = 4_800_000
    slots_size, mark_count = memory(OffsetMap(count, end_offset=count))
    assert mark_count == count
    assert slots_size + mark_count <= 128 * MIB


def test_whatever_is_asked_for_fits_and_takes_as_many_keys_as_it_says() -> None:
    for number in range(300):
        dice = Dice(f"offset map {number}")
        buffer_size, count = dice.between(60, 5000), dice.between(1, 300)
        load_factor = dice.choose([0.5, 0.8, 0.9, 0.99])
        end_offset = dice.choose([0, count, 2 * count, 4 * count])
        offset_map = OffsetMap(count, buffer_size=buffer_size, load_factor=load_factor, end_offset=end_offset)
        slots_size, mark_count = memory(offset_map)
        where = f"case {number}"
        assert slots_size + mark_count <= buffer_size, where
        assert mark_count in (0, end_offset), where
        state = offset_map._state
        assert min(count, offset_map.entry_count_max) <= state[fields.ENTRY_COUNT_MAX] < state[fields.SLOT_COUNT], where


def test_a_map_with_few_slots_finds_what_it_has() -> None:
    """As many keys as it was made for, at the highest load that marks may bring it to."""
    count = 37_500
    offset_map = OffsetMap(count, buffer_size=MIB, end_offset=count)
    data = np.frombuffer(b"".join(b"%08d" % number for number in range(count)), np.uint8)
    matrix = np.zeros((decode.COLUMN_COUNT, count), np.int64)
    matrix[decode.OFFSET] = np.arange(count)
    matrix[decode.KEY_POSITION], matrix[decode.KEY_SIZE] = np.arange(count) * 8, 8
    records = RecordTable(data, matrix, count)
    assert offset_map.put(records) == count
    assert offset_map.entry_count == count
    assert np.array_equal(offset_map.find(records), np.arange(count))
    assert offset_map.is_latest(records).all()


def test_a_record_with_an_empty_key_that_was_not_put_has_no_mark() -> None:
    """Else it would count as an older one of its key, and go."""
    offset_map = OffsetMap(2, buffer_size=MIB, end_offset=2)
    matrix = np.zeros((decode.COLUMN_COUNT, 2), np.int64)
    matrix[decode.OFFSET] = [0, 1]
    matrix[decode.KEY_SIZE] = [1, 0]
    both, first = (RecordTable(np.zeros(1, np.uint8), matrix, count) for count in (2, 1))
    assert offset_map.put(first) == 1
    assert offset_map.is_latest(both).all()


def test_a_buffer_above_what_java_can_allocate_counts_as_that() -> None:
    """Kafka allocates it as one array (`SkimpyOffsetMap`)."""
    sizes = 2**31 - 1, 2**31, 2**40
    assert {OffsetMap(1, first_offset=0, end_offset=0, buffer_size=size).entry_count_max for size in sizes} == {
        int((2**31 - 1) // SLOT_SIZE * 0.9)
    }


def test_a_map_that_is_full_behind_a_batch_ends_with_that_batch() -> None:
    """Records of it that were cleaned away are behind its last one (`Cleaner.buildOffsetMapForSegment`)."""
    full = Batch(10, [Rec(b"a", b""), Rec(b"b", b"", offset_delta=1)], last_offset_delta=3)
    data = np.frombuffer(full.to_bytes() + Batch(14, [Rec(b"c", b"")]).to_bytes(), np.uint8)
    offset_map = OffsetMap(3, first_offset=10, end_offset=0, buffer_size=3 * SLOT_SIZE)
    assert offset_map.entry_count_max == 2
    assert not put_table(offset_map, CleanedTransactions(), data, scan(data), 10)
    assert offset_map.latest_offset == 13


def test_a_map_that_one_batch_fills_ends_with_that_batch() -> None:
    data = np.frombuffer(
        b"".join(Batch(offset, [Rec(b"%d" % offset, b"")]).to_bytes() for offset in (10, 11)), np.uint8
    )
    offset_map = OffsetMap(2, first_offset=10, end_offset=0, buffer_size=2 * SLOT_SIZE)
    assert offset_map.entry_count_max == 1
    assert not put_table(offset_map, CleanedTransactions(), data, scan(data), 10)
    assert offset_map.latest_offset == 10


@pytest.mark.parametrize(("offsets", "has_marks"), [((10, 11), True), ((10, 10), False), ((11, 10), False)])
def test_offsets_that_do_not_ascend_turn_marks_off(offsets: tuple[int, int], has_marks: bool) -> None:
    data = np.frombuffer(b"".join(Batch(offset, [Rec(b"k", b"")]).to_bytes() for offset in offsets), np.uint8)
    offset_map = OffsetMap(2, first_offset=10, end_offset=12, buffer_size=MIB)
    offset_map.begin_table(scan(data))
    assert (memory(offset_map)[1] > 0) == has_marks


def test_old_messages_turn_marks_off() -> None:
    """Those inside of a compressed one have the offset of the last."""
    old = [legacy.message_set(1, [legacy.Message(offset, 0, b"k", b"v")]) for offset in (10, 11)]
    offset_map = OffsetMap(2, first_offset=10, end_offset=12, buffer_size=MIB)
    offset_map.begin_table(scan(np.frombuffer(b"".join(old), np.uint8)))
    assert memory(offset_map)[1] == 0


def test_a_map_that_is_full_inside_a_batch_ends_with_the_last_record_in_it() -> None:
    records = [Rec(key, b"", offset_delta=delta) for delta, key in enumerate([b"a", b"b", b"c"])]
    data = np.frombuffer(Batch(10, records, last_offset_delta=2).to_bytes(), np.uint8)
    offset_map = OffsetMap(3, first_offset=10, end_offset=0, buffer_size=3 * SLOT_SIZE)
    assert not put_table(offset_map, CleanedTransactions(), data, scan(data), 10)
    assert offset_map.latest_offset == 11
