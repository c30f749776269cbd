"""The calls that are interrupted, each with what is done before it, and what after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.interrupted_log import COMPACTED, LogWorld
from tests.crash.interrupted_store import (
    CommittingConsumerWorld,
    ConsumerWorld,
    EagerProducerWorld,
    ProducerWorld,
    StoreWorld,
    TransactionWorld,
)
from tests.crash.interrupted_world import World

Action = Callable[[Any], object]


def nothing(world: World) -> None:
    """For calls that need nothing before."""


@dataclass(frozen=True)
class Interrupted:
    """A call.

    Attributes:
        make: its world, in an empty directory.
        call: what is interrupted, and done three times more then.
        before: done before each call, not interrupted.
        others: done after each call.
        warm_count: calls that are made before.
    """

    make: Callable[[Path], World]
    call: Action
    before: Action = nothing
    others: tuple[Action, ...] = ()
    warm_count: int = 3


def _append(count: int) -> Action:
    return lambda world: world.append(count)


def _abort(world: LogWorld) -> None:
    world.append_marker(is_commit=False)


_COMPACTED = partial(LogWorld, config=COMPACTED)
_ROLLED = LogWorld.append_and_roll
_log = partial(Interrupted, LogWorld, others=(_append(2), LogWorld.read))

LOG_CALLS: dict[str, Interrupted] = {
    **{f"log append of {count}": _log(_append(count)) for count in (1, 10, 1000)},
    "log append of 1 cold": _log(_append(1), before=LogWorld.roll),
    "log append of columns": _log(LogWorld.append_columns),
    "log append of a batch": _log(LogWorld.append_batch),
    "log append idempotent": _log(LogWorld.append_idempotent),
    "log append verified": _log(LogWorld.append_verified, before=LogWorld.append_marker),
    "log marker commit": _log(LogWorld.append_marker, before=LogWorld.append_verified),
    "log marker abort": _log(_abort, before=LogWorld.append_verified),
    "log roll": _log(LogWorld.roll, before=_append(1)),
    "log flush": _log(LogWorld.flush, before=_append(1)),
    "log flush of closed segments": _log(LogWorld.flush, before=_ROLLED),
    "log retention": _log(LogWorld.delete_old_segments, before=_ROLLED),
    "log delete records": _log(LogWorld.delete_records, before=_ROLLED),
    "log clean": replace(_log(LogWorld.clean, before=_ROLLED, warm_count=1), make=_COMPACTED),
    "log remove deleted files": replace(
        _log(LogWorld.remove_deleted_files, before=lambda world: (_ROLLED(world), world.clean())), make=_COMPACTED
    ),
    "log read": _log(LogWorld.read, before=_append(2)),
    "log close": _log(LogWorld.close_log, before=_append(1), warm_count=0),
    "log open": _log(LogWorld.open, before=LogWorld.close_log, warm_count=1),
}

_SENT = (ProducerWorld.send, ProducerWorld.flush, ProducerWorld.send_keyed)
_SEND = ProducerWorld.send_some
_producer = partial(Interrupted, ProducerWorld, others=_SENT)
_eager_producer = partial(Interrupted, EagerProducerWorld, others=_SENT)

PRODUCER_CALLS: dict[str, Interrupted] = {
    "send": _producer(ProducerWorld.send),
    "send with key": _producer(ProducerWorld.send_keyed),
    "send with headers": _producer(ProducerWorld.send_with_headers),
    "send cold": _producer(ProducerWorld.send, before=ProducerWorld.flush),
    "send at once": _eager_producer(ProducerWorld.send),
    "send with key at once": _eager_producer(ProducerWorld.send_keyed),
    "send columns": _producer(ProducerWorld.send_columns, before=_SEND),
    "producer flush": _producer(ProducerWorld.flush, before=_SEND),
    "producer close": _producer(ProducerWorld.close_producer, before=ProducerWorld.new_producer, warm_count=1),
}

_TRANSACTIONS = (TransactionWorld.finish, TransactionWorld.transact)
_BEGIN, _BEGIN_AND_FLUSH = TransactionWorld.begin, TransactionWorld.begin_and_flush
_transaction = partial(Interrupted, TransactionWorld, others=_TRANSACTIONS)

TRANSACTION_CALLS: dict[str, Interrupted] = {
    "commit": _transaction(TransactionWorld.commit, before=_BEGIN),
    "commit of what is flushed": _transaction(TransactionWorld.commit, before=_BEGIN_AND_FLUSH),
    "commit with offsets": _transaction(
        TransactionWorld.commit, before=lambda world: (world.begin(), world.send_offsets())
    ),
    "abort": _transaction(TransactionWorld.abort, before=_BEGIN_AND_FLUSH),
    "begin and send in a transaction": _transaction(_BEGIN, before=TransactionWorld.finish),
    "send offsets to transaction": _transaction(
        TransactionWorld.send_offsets,
        before=lambda world: (world.finish(), world.begin()),
        others=(TransactionWorld.commit, *_TRANSACTIONS),
    ),
    "init transactions": _transaction(TransactionWorld.init),
    "init transactions behind an open one": _transaction(
        TransactionWorld.init, before=lambda world: (world.finish(), world.begin_and_flush())
    ),
}

_CONSUMED = (ConsumerWorld.poll, ConsumerWorld.commit)
_consumer = partial(Interrupted, ConsumerWorld, others=_CONSUMED)
_iteration = partial(
    Interrupted, ConsumerWorld, ConsumerWorld.iterate, others=(ConsumerWorld.iterate, ConsumerWorld.commit)
)
_committing_consumer = partial(Interrupted, CommittingConsumerWorld, others=_CONSUMED)
_CLOSE: dict[str, Any] = {"before": ConsumerWorld.poll, "others": (ConsumerWorld.again,), "warm_count": 0}

CONSUMER_CALLS: dict[str, Interrupted] = {
    "poll": _consumer(ConsumerWorld.poll),
    "poll that fetches": _consumer(ConsumerWorld.poll, before=ConsumerWorld.seek),
    "poll that joins": _consumer(ConsumerWorld.poll, warm_count=0),
    "poll that commits": _committing_consumer(ConsumerWorld.poll),
    "iteration": _iteration(),
    "iteration that fetches": _iteration(before=ConsumerWorld.seek),
    "commit of positions": _consumer(ConsumerWorld.commit, before=ConsumerWorld.poll),
    "commit of offsets": _consumer(ConsumerWorld.commit_some, before=ConsumerWorld.poll),
    "consumer close": _consumer(ConsumerWorld.close_consumer, **_CLOSE),
    "close of one that commits": _committing_consumer(ConsumerWorld.close_consumer, **_CLOSE),
}

_store = partial(Interrupted, StoreWorld, others=(StoreWorld.append, StoreWorld.use_topics))

STORE_CALLS: dict[str, Interrupted] = {
    "create topic": _store(StoreWorld.create_topic),
    "delete topic": _store(StoreWorld.delete_topic, before=StoreWorld.create_topic),
    "alter topic": _store(StoreWorld.alter_topic),
    "add partitions": _store(StoreWorld.add_partition),
    "store close": _store(StoreWorld.close_store, before=StoreWorld.use_topics, warm_count=0),
    "store close with clients": _transaction(StoreWorld.close_store, before=_BEGIN, warm_count=0),
    "store open": _store(StoreWorld.open, before=lambda world: world.store.close(), warm_count=1),
}

#: every call by its name
CALLS: dict[str, Interrupted] = {**LOG_CALLS, **PRODUCER_CALLS, **TRANSACTION_CALLS, **CONSUMER_CALLS, **STORE_CALLS}
