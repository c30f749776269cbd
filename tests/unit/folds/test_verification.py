"""Which accepted batches use up the guard of a producer's next transaction."""

from __future__ import annotations

import pytest

from logstore.folds.verification import VerificationStates
from logstore.layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG

MARKER = TRANSACTIONAL_FLAG | CONTROL_FLAG


@pytest.mark.parametrize(
    ("supports_epoch_bump", "attributes", "epoch", "is_kept"),
    [
        (True, MARKER, 5, True),  # of the transaction before, which gave the producer this epoch
        (True, MARKER, 6, False),
        (True, MARKER, 4, False),
        (False, MARKER, 5, False),
        (True, TRANSACTIONAL_FLAG, 5, False),
        (True, 0, 5, True),
        (True, 4, 5, True),  # compressed
    ],
)
def test_a_batch_of_the_transaction_uses_up_its_guard(
    supports_epoch_bump: bool, attributes: int, epoch: int, is_kept: bool
) -> None:
    states = VerificationStates()
    for producer_id in (7, 8):
        states.begin(producer_id, sequence=0, epoch=5, supports_epoch_bump=supports_epoch_bump, now_ms=0, end_offset=0)
    states.accepted(7, epoch, attributes)
    states.accepted(9, epoch, attributes)
    assert (states.get(7) is not None, states.get(8) is not None) == (is_kept, True)


def test_the_lowest_sequence_is_of_the_highest_epoch() -> None:
    """A batch of an epoch that is over says nothing of where its producer goes on."""
    states = VerificationStates()
    tried = [(3, 5), (1, 4), (9, 6), (2, 6), (8, 6)]  # sequence and epoch
    found = []
    for sequence, epoch in tried:
        states.begin(7, sequence=sequence, epoch=epoch, supports_epoch_bump=True, now_ms=0, end_offset=0)
        state = states.get(7)
        assert state is not None
        found.append((state.lowest_sequence, state.epoch))
    assert found == [(3, 5), (3, 5), (9, 6), (2, 6), (2, 6)]
