"""The calls that are interrupted, each with what is done before it, and what after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
_USED = (_append(2), LogWorld.read)

LOG_CALLS: dict[str, Interrupted] = {
    **{f"log append of {count}": Interrupted(LogWorld, _append(count), others=_USED) for count in (1, 10, 1000)},
    "log append of 1 cold": Interrupted(LogWorld, _append(1), before=LogWorld.roll, others=_USED),
    "log append of columns": Interrupted(LogWorld, LogWorld.append_columns, others=_USED),
    "log append of a batch": Interrupted(LogWorld, LogWorld.append_batch, others=_USED),
    "log append idempotent": Interrupted(LogWorld, LogWorld.append_idempotent, others=_USED),
    "log append verified": Interrupted(LogWorld, LogWorld.append_verified, before=LogWorld.append_marker, others=_USED),
    "log marker commit": Interrupted(LogWorld, LogWorld.append_marker, before=LogWorld.append_verified, others=_USED),
    "log marker abort": Interrupted(LogWorld, _abort, before=LogWorld.append_verified, others=_USED),
    "log roll": Interrupted(LogWorld, LogWorld.roll, before=_append(1), others=_USED),
    "log flush": Interrupted(LogWorld, LogWorld.flush, before=_append(1), others=_USED),
    "log flush of closed segments": Interrupted(LogWorld, LogWorld.flush, before=_ROLLED, others=_USED),
    "log retention": Interrupted(LogWorld, LogWorld.delete_old_segments, before=_ROLLED, others=_USED),
    "log delete records": Interrupted(LogWorld, LogWorld.delete_records, before=_ROLLED, others=_USED),
    "log clean": Interrupted(_COMPACTED, LogWorld.clean, before=_ROLLED, others=_USED, warm_count=1),
    "log remove deleted files": Interrupted(
        _COMPACTED, LogWorld.remove_deleted_files, before=lambda world: (_ROLLED(world), world.clean()), others=_USED
    ),
    "log read": Interrupted(LogWorld, LogWorld.read, before=_append(2), others=_USED),
    "log close": Interrupted(LogWorld, LogWorld.close_log, before=_append(1), others=_USED, warm_count=0),
    "log open": Interrupted(LogWorld, LogWorld.open, before=LogWorld.close_log, others=_USED, warm_count=1),
}

_SENT = (ProducerWorld.send, ProducerWorld.flush, ProducerWorld.send_keyed)
_SEND = ProducerWorld.send_some
PRODUCER_CALLS: dict[str, Interrupted] = {
    "send": Interrupted(ProducerWorld, ProducerWorld.send, others=_SENT),
    "send with key": Interrupted(ProducerWorld, ProducerWorld.send_keyed, others=_SENT),
    "send with headers": Interrupted(ProducerWorld, ProducerWorld.send_with_headers, others=_SENT),
    "send cold": Interrupted(ProducerWorld, ProducerWorld.send, before=ProducerWorld.flush, others=_SENT),
    "send at once": Interrupted(EagerProducerWorld, ProducerWorld.send, others=_SENT),
    "send with key at once": Interrupted(EagerProducerWorld, ProducerWorld.send_keyed, others=_SENT),
    "send columns": Interrupted(ProducerWorld, ProducerWorld.send_columns, before=_SEND, others=_SENT),
    "producer flush": Interrupted(ProducerWorld, ProducerWorld.flush, before=_SEND, others=_SENT),
    "producer close": Interrupted(
        ProducerWorld, ProducerWorld.close_producer, before=ProducerWorld.new_producer, others=_SENT, warm_count=1
    ),
}

_TRANSACTIONS = (TransactionWorld.finish, TransactionWorld.transact)
_BEGIN, _BEGIN_AND_FLUSH = TransactionWorld.begin, TransactionWorld.begin_and_flush


def _begin_and_offsets(world: TransactionWorld) -> None:
    world.begin()
    world.send_offsets()


TRANSACTION_CALLS: dict[str, Interrupted] = {
    "commit": Interrupted(TransactionWorld, TransactionWorld.commit, before=_BEGIN, others=_TRANSACTIONS),
    "commit of what is flushed": Interrupted(
        TransactionWorld, TransactionWorld.commit, before=_BEGIN_AND_FLUSH, others=_TRANSACTIONS
    ),
    "commit with offsets": Interrupted(
        TransactionWorld, TransactionWorld.commit, before=_begin_and_offsets, others=_TRANSACTIONS
    ),
    "abort": Interrupted(TransactionWorld, TransactionWorld.abort, before=_BEGIN_AND_FLUSH, others=_TRANSACTIONS),
    "begin and send in a transaction": Interrupted(
        TransactionWorld, _BEGIN, others=_TRANSACTIONS, before=TransactionWorld.finish
    ),
    "send offsets to transaction": Interrupted(
        TransactionWorld,
        TransactionWorld.send_offsets,
        before=lambda world: (world.finish(), world.begin()),
        others=(TransactionWorld.commit, *_TRANSACTIONS),
    ),
    "init transactions": Interrupted(TransactionWorld, TransactionWorld.init, others=_TRANSACTIONS),
    "init transactions behind an open one": Interrupted(
        TransactionWorld,
        TransactionWorld.init,
        before=lambda world: (world.finish(), world.begin_and_flush()),
        others=_TRANSACTIONS,
    ),
}

_CONSUMED = (ConsumerWorld.poll, ConsumerWorld.commit)
CONSUMER_CALLS: dict[str, Interrupted] = {
    "poll": Interrupted(ConsumerWorld, ConsumerWorld.poll, others=_CONSUMED),
    "poll that fetches": Interrupted(ConsumerWorld, ConsumerWorld.poll, before=ConsumerWorld.seek, others=_CONSUMED),
    "poll that joins": Interrupted(ConsumerWorld, ConsumerWorld.poll, others=_CONSUMED, warm_count=0),
    "poll that commits": Interrupted(CommittingConsumerWorld, ConsumerWorld.poll, others=_CONSUMED),
    "iteration": Interrupted(
        ConsumerWorld, ConsumerWorld.iterate, others=(ConsumerWorld.iterate, ConsumerWorld.commit)
    ),
    "iteration that fetches": Interrupted(
        ConsumerWorld,
        ConsumerWorld.iterate,
        before=ConsumerWorld.seek,
        others=(ConsumerWorld.iterate, ConsumerWorld.commit),
    ),
    "commit of positions": Interrupted(
        ConsumerWorld, ConsumerWorld.commit, before=ConsumerWorld.poll, others=_CONSUMED
    ),
    "commit of offsets": Interrupted(
        ConsumerWorld, ConsumerWorld.commit_some, before=ConsumerWorld.poll, others=_CONSUMED
    ),
    "consumer close": Interrupted(
        ConsumerWorld,
        ConsumerWorld.close_consumer,
        before=ConsumerWorld.poll,
        others=(ConsumerWorld.again,),
        warm_count=0,
    ),
    "close of one that commits": Interrupted(
        CommittingConsumerWorld,
        ConsumerWorld.close_consumer,
        before=ConsumerWorld.poll,
        others=(ConsumerWorld.again,),
        warm_count=0,
    ),
}

_ASKED = (StoreWorld.append, StoreWorld.use_topics)
STORE_CALLS: dict[str, Interrupted] = {
    "create topic": Interrupted(StoreWorld, StoreWorld.create_topic, others=_ASKED),
    "delete topic": Interrupted(StoreWorld, StoreWorld.delete_topic, before=StoreWorld.create_topic, others=_ASKED),
    "alter topic": Interrupted(StoreWorld, StoreWorld.alter_topic, others=_ASKED),
    "add partitions": Interrupted(StoreWorld, StoreWorld.add_partition, others=_ASKED),
    "store close": Interrupted(
        StoreWorld, StoreWorld.close_store, before=StoreWorld.use_topics, others=_ASKED, warm_count=0
    ),
    "store close with clients": Interrupted(
        TransactionWorld, StoreWorld.close_store, before=_BEGIN, others=_TRANSACTIONS, warm_count=0
    ),
    "store open": Interrupted(
        StoreWorld, StoreWorld.open, before=lambda world: world.store.close(), others=_ASKED, warm_count=1
    ),
}

#: every call by its name
CALLS: dict[str, Interrupted] = {**LOG_CALLS, **PRODUCER_CALLS, **TRANSACTION_CALLS, **CONSUMER_CALLS, **STORE_CALLS}
