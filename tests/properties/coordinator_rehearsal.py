"""A transaction coordinator without files: its log is a list, its markers are sent to nobody, time stands still.

A step is a dict as `tests/kafka/java/Coordinations.java` reads it. Every step says what was answered, appended and
sent, so that the real coordinator can be asked the same. That one keeps a transition as pending until its record is
written; ours is asked by nobody in between, and knows nothing of it before.
"""

from __future__ import annotations

from itertools import starmap
from typing import Any

from logstore.coordinator.transactions.ending import AbortTimedOut, EndTransaction
from logstore.coordinator.transactions.outcomes import (
    Answer,
    Append,
    Context,
    ProducerIdentity,
    TransactionRules,
    marker_of,
)
from logstore.coordinator.transactions.requests import (
    AddPartitions,
    InitProducerId,
    Request,
    verify_partition,
)
from logstore.coordinator.transactions.table import TransactionTable
from logstore.coordinator.transactions.transaction import Transaction
from logstore.coordinator.transactions.transitions import PREPARED, prepare_complete
from logstore.errors import ConcurrentTransactionsError, IllegalTransitionError, LogstoreError
from logstore.model import TopicPartition
from logstore.topics.transaction_state import encode_key

Step = dict[str, Any]
COORDINATOR_EPOCH = 5


class Rehearsal:
    """The coordinator's table, the appends that wait for the log, the completions that wait for markers.

    Attributes:
        completions: what decided transactions become when their markers are written.
    """

    def __init__(self, version: int) -> None:
        self.rules = TransactionRules(transaction_version=version)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 0
        self.next_producer_id = 0
        self.events: list[list[Any]] = []
        self.answers: dict[str, str] = {}
        self.appends: dict[str, Append] = {}
        self.completions: dict[str, Transaction] = {}
        self.table = TransactionTable(self.rules, coordinator_epoch=COORDINATOR_EPOCH)

    def step(self, step: Step) -> list[list[Any]]:
        self.events = []
        try:
            getattr(self, f"_{step['do']}")(step)
        except IllegalTransitionError as error:
            self.events.append(["broken", error.java_class])
        return self.events

    def known(self) -> list[list[Any]]:
        """All that is known of every transactional id; nothing while something waits for the log."""
        if self.appends:
            return []
        return [self._row(one) for one in sorted(self.table, key=lambda one: one.transactional_id)]

    def may_fail(self, name: str) -> bool:
        """Whether a failed append leaves nothing; Kafka keeps a new id, and an epoch that was raised to fence."""
        is_fence = self.answers[name] == "timeout" or isinstance(self.appends[name].answer, ConcurrentTransactionsError)
        return self.table.get(name) is not None and (self.rules.transaction_version >= 2 or not is_fence)

    def _allocate(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def _load(self, step: Step) -> None:
        self.log.append((encode_key(step["id"]), bytes.fromhex(step["value"])))

    def _restart(self, step: Step) -> None:
        self.appends, self.completions = {}, {}
        self.table = TransactionTable(self.rules, coordinator_epoch=COORDINATOR_EPOCH)
        for key, value in self.log:
            self.table.replay(key, value)
        for one in list(self.table):
            if one.state in PREPARED:
                self._sent(one)

    def _time(self, step: Step) -> None:
        self.now_ms += step["ms"]

    def _ids(self, step: Step) -> None:
        self.next_producer_id = step["next"]

    def _init(self, step: Step) -> None:
        expected = _identity(step) if "pid" in step else None
        self._ask(step, InitProducerId(step["id"], step["timeout"], expected))

    def _add(self, step: Step) -> None:
        partitions = list(starmap(TopicPartition, step["partitions"]))
        self._ask(step, AddPartitions(step["id"], _identity(step), partitions, step["client"]))

    def _verify(self, step: Step) -> None:
        partitions = [(topic, partition) for topic, partition in step["partitions"]]
        current = self.table.get(step["id"])
        identity = _identity(step)
        errors = {place: verify_partition(current, step["id"], identity, place) for place in partitions}
        lines = [f"{name}-{partition} {_name(error)}" for (name, partition), error in errors.items()]
        self.events.append(["verify", *sorted(lines)])

    def _end(self, step: Step) -> None:
        self._ask(step, EndTransaction(step["id"], _identity(step), step["commit"], step["client"]))

    def _timeouts(self, step: Step) -> None:
        for transactional_id in self.table.timed_out(now_ms=self.now_ms):
            self._ask({"do": "timeout", "id": transactional_id}, AbortTimedOut(transactional_id))

    def _written(self, step: Step) -> None:
        append = self.appends.pop(step["id"])
        self.log.append(self.table.record(append.following))
        self.table.put(append.following)
        self._answered(self.answers.pop(step["id"]), append.answer)
        if append.following.state in PREPARED:
            self._sent(append.following)

    def _failed(self, step: Step) -> None:
        del self.appends[step["id"]]
        self.events.append([self.answers.pop(step["id"]), step["error"], -1, -1])

    def _marker(self, step: Step) -> None:
        self.table.marker_written(step["id"], (step["topic"], step["partition"]))

    def _complete(self, step: Step) -> None:
        completion = self.completions.pop(step["id"])
        key, value = self.table.record(completion)
        self.events.append(["append", step["id"], value.hex()])
        self.log.append((key, value))
        self.table.put(completion)

    def _ask(self, step: Step, request: Request) -> None:
        context = Context(self.rules, self._allocate, self.now_ms)
        outcome = request.decide(self.table.get(request.transactional_id), context)
        if isinstance(outcome, Append):
            self.events.append(["append", step["id"], self.table.record(outcome.following)[1].hex()])
            self.appends[step["id"]], self.answers[step["id"]] = outcome, step["do"]
        else:
            self._answered(step["do"], outcome)

    def _answered(self, name: str, answer: Answer | LogstoreError) -> None:
        identity = answer.identity if isinstance(answer, Answer) else None
        error = None if isinstance(answer, Answer) else answer
        pair = [-1, -1] if identity is None else [identity.producer_id, identity.producer_epoch]
        self.events.append([name, _name(error), *pair])

    def _sent(self, decided: Transaction) -> None:
        marker = marker_of(decided, coordinator_epoch=self.table.coordinator_epoch)
        self.completions[decided.transactional_id] = prepare_complete(decided, now_ms=self.now_ms)
        row = [marker.coordinator_epoch, marker.is_commit, marker.producer_id, marker.producer_epoch]
        names = sorted(f"{topic}-{partition}" for topic, partition in decided.partitions)
        self.events.append(["sent", decided.transactional_id, *row, marker.transaction_version, names])

    def _row(self, one: Transaction) -> list[Any]:
        completion = self.completions.get(one.transactional_id)
        return [
            *(one.transactional_id, one.producer_id, one.previous_producer_id, one.next_producer_id),
            *(one.producer_epoch, one.last_producer_epoch, one.timeout_ms, one.state.name),
            *(None if completion is None else completion.state.name, one.start_timestamp_ms),
            *(one.last_update_timestamp_ms, one.client_transaction_version, False),  # no failed fence
            sorted(f"{topic}-{partition}" for topic, partition in one.partitions),
        ]


def _name(error: LogstoreError | None) -> str:
    return "NONE" if error is None else str(error.kafka_name)


def _identity(step: Step) -> ProducerIdentity:
    return ProducerIdentity(step["pid"], step["epoch"])
