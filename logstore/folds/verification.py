"""Verification of transactions: which transactional batches may begin one (KIP-890, `VerificationStateEntry`).

The first transactional batch of a producer without open transaction here must have been verified: the transaction
coordinator has confirmed that the partition is in the producer's transaction. A guard stands for that answer. It is
made before the question is asked and shown with the batch, so that an answer from before an abort does not count after
it.

>>> states = VerificationStates()
>>> guard = states.begin(7, sequence=3, epoch=0, supports_epoch_bump=True, now_ms=1000, end_offset=0)
>>> states.get(7).guard is guard, states.get(8) is None
(True, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG


class VerificationGuard:
    """A guard, equal to itself only (`VerificationGuard`)."""

    __slots__ = ()


@dataclass(slots=True)
class VerificationState:
    """Verification of one producer: the guard, the lowest sequence tried since, and its epoch.

    Attributes:
        timestamp: ms; creation time.
        supports_epoch_bump: the producer uses transaction version 2.
        end_offset: of the log at the begin.
    """

    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    end_offset: int
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def lower(self, sequence: int, epoch: int) -> None:
        """Note that another batch was tried (`maybeUpdateLowestSequenceAndEpoch`)."""
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


class VerificationStates:
    """The producers that are being verified; never written to disk."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[int, VerificationState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def get(self, producer_id: int) -> VerificationState | None:
        """Return the verification of a producer; None if none was begun."""
        return self._states.get(producer_id)

    def begin(
        self, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int, end_offset: int
    ) -> VerificationGuard:
        """Return the guard of the producer's pending verification; start one if none is pending."""
        state = self._states.setdefault(
            producer_id, VerificationState(now_ms, sequence, epoch, supports_epoch_bump, end_offset)
        )
        state.lower(sequence, epoch)
        return state.guard

    def accepted(self, producer_id: int, epoch: int, attributes: int) -> None:
        """Note an accepted batch: a transactional one uses up its producer's guard (`UnifiedLog.updateProducers`).

        A marker does not if version 2 has begun the next transaction: it carries the epoch that the guard is for.
        """
        state = self._states.get(producer_id) if attributes & TRANSACTIONAL_FLAG else None
        is_control = attributes & CONTROL_FLAG
        if state is not None and not (state.supports_epoch_bump and is_control and epoch == state.epoch):
            del self._states[producer_id]

    def drop_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget verifications begun `expiration_ms` ago or earlier."""
        expired = [pid for pid, state in self._states.items() if now_ms - state.timestamp >= expiration_ms]
        for producer_id in expired:
            del self._states[producer_id]
