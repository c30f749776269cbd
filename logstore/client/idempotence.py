"""Who a producer is to the partitions it writes: a producer id and an epoch, and sequences that begin at 0 with both.

Batches of one producer come into a partition one after the other, each before the next is tried, so a sequence is only
used up when the log has taken it: what is refused leaves no gap, and what is tried again is known by its sequence.
"""

from __future__ import annotations

from ..coordinator.transaction import EPOCH_MAX
from ..coordinator.transaction_outcome import ProducerIdentity
from ..layout.batch import NO_PRODUCER_ID, NO_SEQUENCE
from ..layout.record import SEQUENCE_MAX
from ..store.store import Store
from .lanes import Lane

NO_IDENTITY = ProducerIdentity(NO_PRODUCER_ID, -1)


class Idempotence:
    """The identity of one producer.

    Attributes:
        identity: NO_IDENTITY until it is known, and always without `enable.idempotence`.
    """

    def __init__(self, store: Store, *, is_enabled: bool) -> None:
        self.is_enabled = is_enabled
        self.identity = NO_IDENTITY
        self._store = store

    def sequence(self, lane: Lane) -> int:
        """The sequence of the next record in `lane`; with another identity than before they begin anew."""
        if not self.is_enabled:
            return NO_SEQUENCE
        if self.identity is NO_IDENTITY:
            self.identity = ProducerIdentity(self._store.next_producer_id(), 0)
        if lane.identity != self.identity:
            lane.identity, lane.next_sequence = self.identity, 0
        return lane.next_sequence

    def appended(self, lane: Lane, count: int) -> None:
        """The log has taken so many records; 0 follows 2147483647."""
        lane.next_sequence = (lane.next_sequence + count) & SEQUENCE_MAX

    def bump(self) -> None:
        """Begin all sequences anew, with the next epoch (`bumpIdempotentProducerEpoch`)."""
        current = self.identity
        is_exhausted = current.producer_epoch >= EPOCH_MAX
        self.identity = (
            NO_IDENTITY if is_exhausted else ProducerIdentity(current.producer_id, current.producer_epoch + 1)
        )
