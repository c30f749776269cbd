"""Producer state, open and aborted transactions against slow twins, over whatever producers may do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.batch_table import Int64Array
from logstore.errors import InvalidProducerEpochError, InvalidTxnStateError, LogstoreError
from logstore.folds import producer_update
from logstore.folds.producer_state import ProducerState
from logstore.folds.producer_update import AppendOrigin, Duplicate, ProducerUpdate
from logstore.kernels.fold import producer_entries
from logstore.kernels.fold.producer_entries import ENTRY_WIDTH, index_entries
from logstore.layout.producer_snapshot import parse_producer_snapshot
from tests.naive import fold_producers as naive
from tests.properties.fold_stories import PRODUCER_IDS, both_forms, scanned, stories
from tests.support.encoder import Batch
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

PARTITION = "t-0"
NOW = 40_000
EXPIRATION = 20_000


@pytest.fixture(autouse=True, scope="module")
def _both_forms() -> Iterator[None]:
    with both_forms():
        yield


def completed_rows(completed: Int64Array) -> list[naive.Completed]:
    return [
        naive.Completed(pid, first, last, bool(aborted), lso) for pid, first, last, aborted, lso in completed.tolist()
    ]


def assert_same(state: ProducerState, twin: naive.State) -> None:
    """Everything that can be asked of the two."""
    found = {
        entry.producer_id: naive.Producer(
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.current_txn_first_offset,
            [naive.Remembered(b.last_sequence, b.last_offset, b.offset_delta, b.timestamp) for b in entry.batches],
        )
        for entry in state
    }
    assert found == dict(twin.producers.items())
    assert state.transactions.ongoing_entries().tolist() == [list(pair) for pair in sorted(twin.ongoing.items())]
    assert state.transactions.last_stable_offset(2**62, 0) == twin.last_stable_offset(2**62)
    assert state.to_snapshot_bytes() == twin.snapshot()


def assert_refused_alike(error: LogstoreError, refused: naive.RefusedError) -> None:
    name, text = refused.args
    assert (error.java_class or "").endswith("." + name)
    assert not text or error.message == text


@given(stories(), st.data())
def test_a_recovered_segment_leaves_what_the_twin_keeps(batches: list[Batch], draw: st.DataObject) -> None:
    data, table = scanned(batches)
    state, twin = ProducerState(PARTITION), naive.State(PARTITION)
    done = 0
    while done < len(batches):
        end = draw.draw(st.integers(done + 1, len(batches)))
        try:
            completed = producer_update.step(state, data, table, done, end)
        except LogstoreError as error:
            row = int(np.flatnonzero(table.position == error.position)[0])
            expected = naive.replay(twin, batches[done:row])
            assert completed_rows(state.buffers.take_completed()) == expected
            with pytest.raises(naive.RefusedError) as refused:
                naive.replay(twin, [batches[row]])
            assert_refused_alike(error, refused.value)
            break
        assert completed_rows(completed) == naive.replay(twin, batches[done:end])
        assert state.map_end_offset == table.last_offset[end - 1] + 1
        done = end
    assert_same(state, twin)


@given(stories(), st.lists(st.integers(1, 12), max_size=6))
def test_a_rebuilt_segment_counts_at_its_end(batches: list[Batch], sizes: Sequence[int]) -> None:
    data, table = scanned(batches)
    state, twin = ProducerState(PARTITION), naive.State(PARTITION)
    row = 0
    for size in [*sizes, len(batches)]:
        end = min(row + size, len(batches))
        update, group = ProducerUpdate(state, AppendOrigin.REPLICATION), naive.Group(twin)
        try:
            middle = (row + end) // 2
            assert update.step(data, table, row, middle) is None
            assert update.step(data, table, middle, end) is None
        except InvalidTxnStateError as error:
            with pytest.raises(naive.RefusedError) as refused:
                naive.analyze_all(group, batches[row:end])
            assert_refused_alike(error, refused.value)
            break
        naive.analyze_all(group, batches[row:end])
        assert completed_rows(update.commit()) == naive.commit(group)
        row = end
    assert_same(state, twin)


@settings(max_examples=examples(200))
@given(
    stories(),
    st.sampled_from([AppendOrigin.CLIENT, AppendOrigin.CLIENT, AppendOrigin.COORDINATOR]),
    st.integers(0, 2),
    st.data(),
)
def test_an_append_is_analyzed_as_the_twin_analyzes_it(
    batches: list[Batch], origin: AppendOrigin, version: int, draw: st.DataObject
) -> None:
    """A story is appended batch by batch, some batches twice; what is refused leaves nothing behind."""
    data, table = scanned(batches)
    requires_verification = draw.draw(st.booleans())
    state = ProducerState(PARTITION, requires_verification=requires_verification)
    twin = naive.State(PARTITION)
    for row, batch in enumerate(batches):
        for _ in range(draw.draw(st.sampled_from([1, 1, 2]))):
            guard = None
            if requires_verification and draw.draw(st.booleans()):
                guard = begin_verification(state, twin, batch, draw.draw(st.booleans()))
            shown = {batch.producer_id} if guard is not None or not requires_verification else set()
            group = naive.Group(twin, origin.name.lower(), version, shown.__contains__)
            update = ProducerUpdate(state, origin, transaction_version=version, guard=guard)
            try:
                found = update.step(data, table, row, row + 1)
            except LogstoreError as error:
                with pytest.raises(naive.RefusedError) as refused:
                    naive.analyze(group, batch)
                assert_refused_alike(error, refused.value)
                assert len(update.commit()) == 0
                continue
            assert repeated(found) == naive.analyze(group, batch)
            assert completed_rows(update.commit()) == naive.commit(group)
    assert_same(state, twin)


def begin_verification(state: ProducerState, twin: naive.State, batch: Batch, supports_epoch_bump: bool) -> object:
    known = twin.producers.get(batch.producer_id)
    is_old = known is not None and batch.producer_epoch < known.epoch
    guard: object = None
    with pytest.raises(InvalidProducerEpochError) if is_old else nullcontext():
        guard = state.begin_verification(
            batch.producer_id,
            sequence=batch.base_sequence,
            producer_epoch=batch.producer_epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=NOW,
        )
    if guard is None:
        return None
    fresh = naive.Verification(batch.base_sequence, supports_epoch_bump, batch.producer_epoch)
    known_verification = twin.verification.setdefault(batch.producer_id, fresh)
    if batch.producer_epoch == known_verification.epoch:
        known_verification.lowest_sequence = min(known_verification.lowest_sequence, batch.base_sequence)
    elif batch.producer_epoch > known_verification.epoch:
        known_verification.epoch = batch.producer_epoch
        known_verification.lowest_sequence = batch.base_sequence
    return guard


def repeated(duplicate: Duplicate | None) -> object:
    """A duplicate as a thing that compares with what the twin remembers of a batch."""
    return None if duplicate is None else _Repeated(duplicate)


class _Repeated:
    def __init__(self, duplicate: Duplicate) -> None:
        self.duplicate = duplicate

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, naive.Remembered):
            return False
        answer = Duplicate(other.last_offset - other.offset_delta, other.last_offset, other.timestamp)
        return self.duplicate == answer


@given(stories(is_honest=True), stories(is_honest=True))
def test_a_snapshot_brings_back_all_but_the_older_batches(before: list[Batch], after: list[Batch]) -> None:
    """What was saved and loaded goes on as what was not, except that a load forgets the expired."""
    data, table = scanned(before)
    state, twin = ProducerState(PARTITION, expiration_ms=EXPIRATION), naive.State(PARTITION)
    naive.replay(twin, before)
    producer_update.step(state, data, table, 0, len(table))
    state.drop_expired(NOW)
    twin.drop_expired(NOW, EXPIRATION)
    assert_same(state, twin)
    saved = parse_producer_snapshot(state.to_snapshot_bytes())
    loaded = ProducerState(PARTITION, expiration_ms=EXPIRATION)
    loaded.load(saved, state.map_end_offset, NOW)
    reloaded = naive.State(PARTITION)
    for producer_id, producer in twin.producers.items():
        producer.batches = [
            naive.Remembered(b.last_sequence, b.last_offset, b.offset_delta, producer.timestamp)
            for b in producer.batches[-1:]
        ]
        reloaded.producers[producer_id] = producer
        if producer.first_offset is not None:
            reloaded.ongoing[producer.first_offset] = producer_id
    assert loaded.map_end_offset == state.map_end_offset
    assert_same(loaded, reloaded)


@given(
    st.lists(st.sampled_from(PRODUCER_IDS) | st.integers(-(2**63), 2**63 - 1), unique=True, max_size=60),
    st.integers(0, 2**62 - 1),
)
def test_every_producer_is_found_through_its_index(producer_ids: list[int], seed: int) -> None:
    bits = (2 * max(len(producer_ids), 1)).bit_length()
    entries = np.zeros((max(len(producer_ids), 1), ENTRY_WIDTH), np.int64)
    entries[: len(producer_ids), producer_entries.PRODUCER_ID] = producer_ids
    index = np.zeros(1 << bits, np.int64)
    assert run_both(index_entries, entries, len(producer_ids), index, bits, seed) == len(producer_ids)
    places = naive.rows_by_producer(producer_ids)
    flat = entries.reshape(-1)
    for producer_id in {*producer_ids, 3, 4}:
        row = producer_entries.find_entry(producer_id, flat, index, bits, seed)
        assert (row if row >= 0 else None) == places.get(producer_id)
    assert sorted(index[index != 0].tolist()) == [row + 1 for row in range(len(producer_ids))]
