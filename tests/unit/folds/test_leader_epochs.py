"""Leader epochs are assigned, truncated and asked for as `LeaderEpochFileCache` does."""

from __future__ import annotations

import pytest

from logstore.errors import UsageError
from logstore.folds import leader_epochs
from logstore.folds.leader_epochs import LeaderEpochs
from tests.properties.fold_stories import scanned
from tests.support.encoder import Batch, Rec

ENTRIES = [(1, 0), (2, 10), (5, 30)]


def batches(*epochs_and_offsets: tuple[int, int]) -> list[Batch]:
    return [Batch(offset, [Rec()], leader_epoch=epoch) for epoch, offset in epochs_and_offsets]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ((5, 40), ENTRIES),
        ((5, 25), [(1, 0), (2, 10), (5, 25)]),
        ((6, 30), [(1, 0), (2, 10), (6, 30)]),
        ((6, 40), [*ENTRIES, (6, 40)]),
        ((6, 5), [(1, 0), (6, 5)]),
        ((3, 40), [(1, 0), (2, 10), (3, 40)]),
        ((0, 0), [(0, 0)]),
    ],
)
def test_an_entry_drops_those_that_do_not_fit_below_it(entry: tuple[int, int], expected: list[tuple[int, int]]) -> None:
    state = LeaderEpochs(ENTRIES)
    assert state.assign(*entry) == (expected != ENTRIES)
    assert state.entries == expected
    assert state.is_changed == (expected != ENTRIES)


@pytest.mark.parametrize("entry", [(-1, 5), (5, -1)])
def test_a_negative_entry_is_refused(entry: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="Received invalid partition leader epoch entry EpochEntry"):
        LeaderEpochs().assign(*entry)


@pytest.mark.parametrize(
    ("end_offset", "expected"),
    [(31, ENTRIES), (30, ENTRIES[:2]), (10, ENTRIES[:1]), (0, []), (-1, ENTRIES)],
)
def test_truncation_from_the_end_drops_what_starts_there(end_offset: int, expected: list[tuple[int, int]]) -> None:
    state = LeaderEpochs(ENTRIES)
    state.truncate_from_end(end_offset)
    assert (state.entries, state.is_changed) == (expected, expected != ENTRIES)


@pytest.mark.parametrize(
    ("start_offset", "expected"),
    [(-1, ENTRIES), (0, ENTRIES), (5, [(1, 5), (2, 10), (5, 30)]), (10, ENTRIES[1:]), (99, [(5, 99)])],
)
def test_truncation_from_the_start_moves_the_epoch_that_is_there(
    start_offset: int, expected: list[tuple[int, int]]
) -> None:
    state = LeaderEpochs(ENTRIES)
    assert state.truncate_from_start(start_offset) == (start_offset >= 0)
    assert state.entries == expected


def test_an_append_takes_any_epoch_and_a_recovery_only_higher_ones() -> None:
    _, table = scanned(batches((3, 0), (3, 4), (1, 8), (4, 9), (4, 7)))
    appended, recovered = LeaderEpochs(), LeaderEpochs()
    leader_epochs.step(appended, table, 0, len(table))
    leader_epochs.step_recovered(recovered, table, 0, len(table))
    assert appended.entries == [(4, 7)]
    assert recovered.entries == [(3, 0), (4, 9)]


def test_rows_give_the_same_one_by_one() -> None:
    _, table = scanned(batches((3, 0), (3, 4), (2, 8), (4, 9), (4, 9), (5, 12)))
    whole, single = LeaderEpochs(), LeaderEpochs()
    leader_epochs.step(whole, table, 0, len(table))
    for row in range(len(table)):
        leader_epochs.step(single, table, row, row + 1)
    assert whole.entries == single.entries != []


def test_a_batch_without_an_epoch_is_passed_over_in_recovery_and_refused_in_an_append() -> None:
    _, table = scanned(batches((3, 0), (-1, 4)))
    state = LeaderEpochs()
    leader_epochs.step_recovered(state, table, 0, 2)
    assert state.entries == [(3, 0)]
    with pytest.raises(UsageError, match="epoch=-1, startOffset=4"):
        leader_epochs.step(state, table, 0, 2)


def test_an_append_of_magic_1_clears_the_epochs() -> None:
    _, table = scanned(batches((3, 0), (3, 4)))
    table.magic[1] = 1
    state, recovered = LeaderEpochs(), LeaderEpochs()
    leader_epochs.step(state, table, 0, 2)
    leader_epochs.step_recovered(recovered, table, 0, 2)
    assert (state.entries, state.latest_epoch, state.is_changed) == ([], None, True)
    assert recovered.entries == [(3, 0)]
