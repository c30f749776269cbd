"""Markers of the append kernel against a slow twin, between records: what is written, left alone, and decided."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.kernels.append import structs as kinds
from logstore.kernels.fold import producer_struct
from logstore.kernels.scan import batches as fields
from logstore.layout.marker import marker_record
from tests.naive import append as naive
from tests.naive import append_marker as twin
from tests.properties.kernel_inputs import TOPICS
from tests.support.append_forms import LEADER_EPOCH, OUT_CAPACITY, TopicForms, assert_counts

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


def append_marker(forms: TopicForms, call: twin.Marker) -> int:
    record = marker_record(int(call.is_commit), call.coordinator_epoch)
    return forms.append(
        record,
        data_size=len(record),
        kind=kinds.MARKER,
        record_count=1,
        now_ms=call.now_ms,
        producer_id=call.producer_id,
        producer_epoch=call.epoch,
        attributes=0x30,
        origin=producer_struct.COORDINATOR,
        transaction_version=call.version,
        coordinator_epoch=call.coordinator_epoch,
        marker_type=int(call.is_commit),
    )


@given(TOPICS, st.lists(PIECES, max_size=12))
def test_markers_are_the_twins_and_the_rest_is_left_to_the_slow_path(topic: naive.Topic, script: list[Any]) -> None:
    topic.batch_size_max = min(topic.batch_size_max, OUT_CAPACITY)
    forms, log, known = TopicForms(topic), naive.Log(), twin.Coordinators()
    for piece in script:
        before = forms.unchanged()
        if isinstance(piece, twin.Marker):
            expected = twin.prepared_marker(topic, log, known, piece, LEADER_EPOCH)
            is_open = log.producers.get(piece.producer_id, (0, 0, False))[2]
            is_taken = expected is not None and (piece.is_commit or not is_open)
            assert append_marker(forms, piece) == (kinds.APPENDED if is_taken else kinds.NOT_FOR_FAST_PATH)
            if expected is not None and is_taken:
                assert forms.batch == expected
                twin.committed_marker(log, known, piece)
        else:
            is_taken = _append(forms, topic, log, piece)
        if not is_taken:
            assert forms.unchanged() == before
        assert_counts(forms, log)
    open_count = sum(is_open for _, _, is_open in log.producers.values())
    assert forms.producers.transactions.ongoing_count == open_count
    assert (forms.log.first_unstable_offset >= 0) == (open_count > 0)


def _append(forms: TopicForms, topic: naive.Topic, log: naive.Log, piece: tuple[int, bool, bool, int]) -> bool:
    """Records of the next sequence, or of the first of the next epoch."""
    producer_id, is_transactional, is_next_epoch, skip = piece
    epoch, sequence, _ = log.producers.get(producer_id, (0, 0, False))
    if is_next_epoch and epoch < twin.EPOCH_MAX:
        epoch, sequence = epoch + 1, 0
    call = naive.Call([b"v"], None, None, producer_id, epoch, sequence + skip // 2, is_transactional)
    expected = naive.prepared(topic, log, call, LEADER_EPOCH)
    assert bool(forms.append_records(call)) == (expected is not None)
    if expected is not None:
        assert forms.batch == expected
        naive.committed(log, call, expected, int(forms.fast.row[fields.MAX_TIMESTAMP, 0]))
    return expected is not None


def test_a_transaction_that_is_not_among_the_open_ones_is_left_to_the_slow_path() -> None:
    forms = TopicForms(naive.Topic())
    assert forms.append_records(naive.Call([b"v"], None, None, 7, 0, 0, True))
    forms.producers.transactions.clear()
    before = forms.unchanged()
    assert append_marker(forms, twin.Marker(7, 0, True, 0, 0)) == kinds.NOT_FOR_FAST_PATH
    assert forms.unchanged() == before


@pytest.mark.parametrize("capacity", [77, 78])
def test_a_marker_has_78_bytes(capacity: int) -> None:
    forms = TopicForms(naive.Topic())
    forms.fast.out_size = capacity
    assert append_marker(forms, twin.Marker(7, 0, True, 0, 0)) == int(capacity == 78)
    assert [len(batch) for _, batch in forms.written] == ([twin.MARKER_SIZE] if capacity == 78 else [])
