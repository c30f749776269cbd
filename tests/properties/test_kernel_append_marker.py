"""The quick marker against a slow twin, between appends of records: what it writes, leaves alone, and decides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.kernels import append_slots as slot
from logstore.kernels import producer_slots, scan
from logstore.kernels.append_marker import prepare_marker
from tests.naive import append as naive
from tests.naive import append_marker as twin
from tests.properties.test_kernel_append import LEADER_EPOCH, OUT_CAPACITY, TOPICS, Quick
from tests.unit.kernel_forms import run_both

MARKERS = st.builds(
    twin.Marker,
    producer_id=st.sampled_from([7, 7, 8]),
    epoch=st.sampled_from([0, 0, 1, 2, 32767]),
    is_commit=st.booleans(),
    coordinator_epoch=st.sampled_from([0, 0, 1, 70_000]),
    version=st.sampled_from([0, 1, 2]),
    now_ms=st.sampled_from([1000, 1030, 1100, -1]),
)
PIECES = st.one_of(MARKERS, st.tuples(st.sampled_from([7, 8]), st.booleans(), st.booleans(), st.integers(0, 2)))


class QuickMarkers(Quick):
    """With the kernel of markers over the same arrays."""

    def prepare_marker(self, call: twin.Marker) -> int:
        self.slots[: slot.CALL_SLOT_COUNT] = (1, call.now_ms, call.producer_id, call.epoch, -1, 0x30)
        self.producers.slots[producer_slots.ORIGIN : producer_slots.MARKER_TIMESTAMP + 1] = (
            producer_slots.COORDINATOR,
            call.version,
            0,
            0,
            2**31 - 1,
            0,
            0,
            int(call.is_commit),
            call.coordinator_epoch,
            call.now_ms,
        )
        arrays = (self.out, self.columns, self.indexes.slots, *self.indexes.buffers, *self.producer_arrays()[:9])
        return run_both(prepare_marker, self.slots, *arrays)


@given(TOPICS, st.lists(PIECES, max_size=12))
def test_markers_are_the_twins_and_the_rest_is_left_to_the_long_way(topic: naive.Topic, script: list[Any]) -> None:
    topic.batch_size_max = min(topic.batch_size_max, OUT_CAPACITY)
    quick, log, known = QuickMarkers(topic), naive.Log(), twin.Coordinators()
    decided = []
    for piece in script:
        if isinstance(piece, twin.Marker):
            expected = twin.prepared_marker(topic, log, known, piece, LEADER_EPOCH)
            size = quick.prepare_marker(piece)
            assert quick.out[:size].tobytes() == (expected or b"")
            if expected is not None:
                is_open = log.producers.get(piece.producer_id, (0, 0, False))[2]
                decided += [(piece.producer_id, int(not piece.is_commit), log.end_offset)] if is_open else []
                twin.committed_marker(log, known, piece)
                assert quick.commit() == log.end_offset
        else:
            _append(quick, topic, log, piece)
        assert quick.producers.slots[producer_slots.COMPLETED_COUNT] == len(decided)
    completed = quick.producers.take_completed()
    columns = (completed.producer_ids, completed.is_aborted, completed.last_offsets)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == decided
    open_count = sum(is_open for _, _, is_open in log.producers.values())
    assert quick.producers.transactions.ongoing_count == open_count
    assert {row[0]: row[1] for row in quick.producers.entries.tolist()} == {
        producer_id: epoch for producer_id, (epoch, _, _) in log.producers.items()
    }


def _append(quick: Quick, topic: naive.Topic, log: naive.Log, piece: tuple[int, bool, bool, int]) -> None:
    """Records of the next sequence, or of the first of the next epoch."""
    producer_id, is_transactional, is_next_epoch, skip = piece
    epoch, sequence, _ = log.producers.get(producer_id, (0, 0, False))
    if is_next_epoch and epoch < twin.EPOCH_MAX:
        epoch, sequence = epoch + 1, 0
    call = naive.Call([b"v"], None, None, producer_id, epoch, sequence + skip // 2, is_transactional)
    expected = naive.prepared(topic, log, call, LEADER_EPOCH)
    assert quick.out[: quick.prepare(call)].tobytes() == (expected or b"")
    if expected is not None:
        naive.committed(log, call, expected, int(quick.columns[scan.MAX_TIMESTAMP, 0]))
        assert quick.commit() == log.end_offset


def test_a_transaction_that_is_not_among_the_open_ones_is_left_to_the_long_way() -> None:
    quick = QuickMarkers(naive.Topic())
    assert quick.prepare(naive.Call([b"v"], None, None, 7, 0, 0, True))
    assert quick.commit() == 1
    marker = twin.Marker(7, 0, True, 0, 0)
    quick.producers.transactions.clear()
    assert quick.prepare_marker(marker) == 0
    assert quick.producers.slots[producer_slots.COMPLETED_COUNT] == 0


@pytest.mark.parametrize("capacity", [77, 78])
def test_a_marker_has_78_bytes(capacity: int) -> None:
    quick = QuickMarkers(naive.Topic())
    quick.slots[slot.OUT_CAPACITY] = capacity
    assert quick.prepare_marker(twin.Marker(7, 0, True, 0, 0)) == (twin.MARKER_SIZE if capacity == 78 else 0)
