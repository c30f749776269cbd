"""What a request to the transaction coordinator leads to, and the settings that decide it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import CoordinatorError, LogstoreError
from .transaction_states import Transition

#: gives a producer id that was never given; may raise a CoordinatorError
Allocate = Callable[[], int]


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """The settings of a coordinator; `transaction_version` is the feature level of `transaction.version`."""

    transaction_version: int = 2
    timeout_max_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000

    @property
    def record_version(self) -> int:
        """The version of the values in `__transaction_state`."""
        return min(self.transaction_version, 1)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id and its epoch, as requests name it and answers give it."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Success; the producer goes on as `identity` where the answer has one."""

    identity: ProducerIdentity | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """The record of `transition.next` has to be logged; `answer` is given when it is.

    `is_epoch_fence`: the transition shuts out a producer whose transaction is aborted.
    """

    transition: Transition
    answer: Answer | LogstoreError
    is_epoch_fence: bool = False


Outcome = Answer | LogstoreError | Append


def allocated(allocate: Allocate, use: Callable[[int], Outcome]) -> Outcome:
    """What `use` makes of a new producer id, or the error of getting one."""
    try:
        producer_id = allocate()
    except CoordinatorError as error:
        return error
    return use(producer_id)
