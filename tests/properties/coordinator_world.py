"""A world so small that all of it can be seen: one transactional id, two producers that both think it is theirs, two
partitions, and a coordinator that may stop after every step.

A `World` is a value. `successors` are the worlds one step later: every request of either producer, every record or
marker written, a timeout, a crash before and after a record is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from logstore.coordinator.transactions import transitions
from logstore.coordinator.transactions.ending import EndTransaction, fence_and_abort
from logstore.coordinator.transactions.outcomes import (
    Answer,
    Append,
    Context,
    Outcome,
    ProducerIdentity,
    TransactionRules,
    marker_of,
)
from logstore.coordinator.transactions.requests import AddPartitions, InitProducerId, verify_partition
from logstore.coordinator.transactions.transaction import Transaction, from_record, log_record
from logstore.errors import LogstoreError, Recovery
from logstore.model import TopicPartition
from tests.naive.transactions import Partition, Tag

ID = "x"
NAMES = (TopicPartition("t", 0), TopicPartition("t", 1))
INITS_MAX, TRANSACTIONS_MAX = 2, 2
COORDINATOR = -1

#: ("init", 0), ("add", partition) or ("end", is_commit)
Request = tuple[str, int]


@dataclass(frozen=True)
class Client:
    """A producer. `asked` is its request without an answer: it may only repeat that one."""

    identity: ProducerIdentity | None = None
    inits: int = 0
    transactions: int = 0
    added: frozenset[int] = frozenset()
    asked: Request | None = None
    is_closed: bool = False


@dataclass(frozen=True)
class World:
    version: int
    next_producer_id: int = 1
    current: Transaction | None = None
    log: tuple[bytes, bytes] | None = None
    held: tuple[int, Append] | None = None
    ongoing: Tag | None = None
    clients: tuple[Client, Client] = (Client(), Client())
    partitions: tuple[Partition, Partition] = (Partition(), Partition())
    acknowledged: frozenset[tuple[Tag, bool]] = frozenset()
    zombie_wrote: bool = field(default=False)

    def successors(self) -> Iterator[tuple[str, World]]:
        for number, client in enumerate(self.clients):
            if not client.is_closed:
                yield from self._requests(number, client)
        yield from self._coordinator_steps()
        if self.log is not None:
            yield "crash", self.restarted()

    def _requests(self, number: int, client: Client) -> Iterator[tuple[str, World]]:
        if client.asked is None and client.identity is not None:
            for index in client.added:
                yield f"write {number} {index}", self._write(number, index)
        if self.held is not None:  # the coordinator takes one request at a time
            return
        if client.asked is not None:
            yield f"{client.asked[0]} again {number}", self._ask(number, client.asked)
            return
        if client.inits < INITS_MAX and not client.added:
            yield f"init {number}", self._ask(number, ("init", 0), inits=client.inits + 1)
        if client.identity is None:
            return
        for index in range(len(NAMES)):
            if index in client.added:
                continue
            if client.added:
                yield f"add {number} {index}", self._ask(number, ("add", index))
            elif client.transactions < TRANSACTIONS_MAX:
                begun = self._ask(number, ("add", index), transactions=client.transactions + 1)
                yield f"begin {number} {index}", begun
        if client.added:
            yield f"commit {number}", self._ask(number, ("end", 1))
            yield f"abort {number}", self._ask(number, ("end", 0))

    def _ask(self, number: int, request: Request, **changes: int) -> World:
        world = self._with(number, replace(self.clients[number], asked=request, **changes))
        kind, detail = request
        if kind == "init":
            return world._outcome(number, world._init())
        identity = world._identity(number)
        if kind == "add":
            return world._outcome(number, world._add(identity, detail))
        return world._outcome(number, world._end(identity, is_commit=bool(detail)))

    def _coordinator_steps(self) -> Iterator[tuple[str, World]]:
        if self.held is not None:
            yield "append", self._appended(is_answer_lost=False)
            yield "append, answer lost", self._appended(is_answer_lost=True)
            yield "append fails", replace(self, held=None)
            yield "append, then crash", replace(self, log=self._record(self.held[1].following)).restarted()
            return
        current = self.current
        if current is not None and current.state in transitions.PREPARED:
            for index, name in enumerate(NAMES):
                if name in current.partitions:
                    yield f"marker {index}", self._marked(index)
            if not current.partitions:
                yield "complete", self._completed()
        if current is not None and current.state == transitions.ONGOING:
            outcome = fence_and_abort(current, Answer(), self._context())
            yield "timeout", self._outcome(COORDINATOR, outcome)

    # -- requests ---------------------------------------------------------------------------------------------------

    def _init(self) -> Outcome:
        return InitProducerId(ID, 1000).decide(self.current, self._context())

    def _add(self, identity: ProducerIdentity, index: int) -> Outcome:
        request = AddPartitions(ID, identity, [NAMES[index]], self._client_version())
        return request.decide(self.current, self._context())

    def _end(self, identity: ProducerIdentity, is_commit: bool) -> Outcome:
        request = EndTransaction(ID, identity, is_commit, self._client_version())
        return request.decide(self.current, self._context())

    def _context(self) -> Context:
        return Context(self._rules(), self._allocate, 0)

    def _write(self, number: int, index: int) -> World:
        """The partition asks the coordinator, then takes the batch: no marker comes in between (verification guard)."""
        identity, client = self._identity(number), self.clients[number]
        error = verify_partition(self.current, ID, identity, NAMES[index])
        if error is not None:
            return self._heard(number, error)
        assert self.current is not None
        is_zombie = identity.producer_epoch < self.current.producer_epoch
        tag = (number, client.transactions)
        partition = self.partitions[index].append(identity.producer_id, identity.producer_epoch, tag)
        return replace(self._with_partition(index, partition), zombie_wrote=self.zombie_wrote or is_zombie)

    # -- the coordinator ----------------------------------------------------------------------------------------------

    def _outcome(self, number: int, outcome: Outcome) -> World:
        if not isinstance(outcome, Append):
            return self._heard(number, outcome)
        # the epoch of a new producer id in its answer was taken from this world's counter
        used = max(outcome.following.producer_id, outcome.following.next_producer_id)
        return replace(self, held=(number, outcome), next_producer_id=max(self.next_producer_id, used + 1))

    def _appended(self, is_answer_lost: bool) -> World:
        assert self.held is not None
        number, append = self.held
        current = append.following
        world = replace(self, current=current, log=self._record(current), held=None)
        if current.state == transitions.ONGOING and world.ongoing is None:
            world = replace(world, ongoing=(number, self.clients[number].transactions))
        if current.state in transitions.PREPARED:
            world = replace(world, ongoing=None)
        return world if is_answer_lost else world._heard(number, append.answer)

    def _marked(self, index: int) -> World:
        assert self.current is not None
        marker = marker_of(self.current, coordinator_epoch=0)
        partition = self.partitions[index].mark(
            marker.producer_id, marker.producer_epoch, marker.is_commit, marker.transaction_version
        )
        current = self.current._replace(partitions=self.current.partitions - {NAMES[index]})
        return replace(self._with_partition(index, partition), current=current)

    def _completed(self) -> World:
        assert self.current is not None
        current = transitions.prepare_complete(self.current, now_ms=0)
        return replace(self, current=current, log=self._record(current))

    def restarted(self) -> World:
        """The coordinator stops and starts: it knows what its log says, and carries on with what was decided."""
        assert self.log is not None
        current = from_record(*self.log)
        ongoing = self.ongoing if current.state == transitions.ONGOING else None
        if current.state == transitions.ONGOING and ongoing is None and self.held is not None:
            ongoing = (self.held[0], self.clients[self.held[0]].transactions)
        return replace(self, current=current, held=None, ongoing=ongoing)

    def at_rest(self) -> World:
        """What remains after a crash when the coordinator has finished all that was decided."""
        world = self if self.log is None else self.restarted()
        while world.current is not None and world.current.state in transitions.PREPARED:
            left = [index for index, name in enumerate(NAMES) if name in world.current.partitions]
            world = world._marked(left[0]) if left else world._completed()
        return world

    # -- the producers ------------------------------------------------------------------------------------------------

    def _heard(self, number: int, answer: Answer | LogstoreError) -> World:
        """An answer to what the producer asked, or to its write; to be tried again, it stays as it is."""
        if number == COORDINATOR:
            return self
        client = self.clients[number]
        if isinstance(answer, LogstoreError):
            is_closed = client.is_closed or answer.recovery is not Recovery.RETRY
            return self._with(number, replace(client, is_closed=is_closed))
        assert client.asked is not None
        kind, detail = client.asked
        world = self
        if kind == "add":
            client = replace(client, added=client.added | {detail})
        elif kind == "end":
            told = ((number, client.transactions), bool(detail))
            world = replace(world, acknowledged=world.acknowledged | {told})
            client = replace(client, added=frozenset())
        identity = client.identity if answer.identity is None else answer.identity
        return world._with(number, replace(client, identity=identity, asked=None))

    # -- parts --------------------------------------------------------------------------------------------------------

    def _rules(self) -> TransactionRules:
        return TransactionRules(transaction_version=self.version)

    def _client_version(self) -> int:
        return 2 if self.version >= 2 else 0

    def _allocate(self) -> int:
        return self.next_producer_id

    def _record(self, transaction: Transaction) -> tuple[bytes, bytes]:
        return log_record(transaction, version=min(self.version, 1))

    def _identity(self, number: int) -> ProducerIdentity:
        identity = self.clients[number].identity
        assert identity is not None
        return identity

    def _with(self, number: int, client: Client) -> World:
        pair = (client, self.clients[1]) if number == 0 else (self.clients[0], client)
        return replace(self, clients=pair)

    def _with_partition(self, index: int, partition: Partition) -> World:
        pair = (partition, self.partitions[1]) if index == 0 else (self.partitions[0], partition)
        return replace(self, partitions=pair)
