"""Calls in the middle of which a signal handler makes other calls of the same thread.

The handler runs before lines of the product that are chosen by their number: the first ones, and ever fewer behind.
What it calls is done, or refused with an error that says why. What is acknowledged to either of them is there in the
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from types import FrameType
from typing import Any

from logstore.errors import LogstoreError
from tests.crash.interrupted_calls import CALLS, Interrupted
from tests.crash.interrupted_log import LogWorld
from tests.crash.interrupted_store import ConsumerWorld, ProducerWorld, StoreWorld, TransactionWorld
from tests.crash.interrupted_world import World, described
from tests.support.interrupts import place_of, traced

GROWTH = 1.15  # of the number of the line before which the handler runs next
SKIPPED = 2  # lines at least between two runs of the handler

Call = Callable[[Any], object]


class Handler:
    """Runs calls one after the other before lines that another call comes to, as a signal handler may.

    Attributes:
        count: how often it ran.
    """

    def __init__(self, world: World, calls: list[Call]) -> None:
        self.count = 0
        self._world, self._calls = world, cycle(calls)
        self._line_count = self._next = 0

    def on_line(self, frame: FrameType) -> None:
        """Make the next call if it is time."""
        self._line_count += 1
        if self._line_count > self._next:
            self._next = max(self._line_count + SKIPPED, int(self._line_count * GROWTH))
            self._run(frame)

    def _run(self, frame: FrameType) -> None:
        """Make the next call; Python traces no lines of it."""
        self.count += 1
        try:
            next(self._calls)(self._world)
        except LogstoreError as error:
            self._world.refusals.append(described(error))
        except Exception as error:
            self._world.problems.append(f"a handler at {place_of(frame)} raised {described(error)}")


def _handled(outer: Interrupted, inner: list[Call], world: World) -> None:
    outer.before(world)
    handler = Handler(world, inner)
    try:
        with traced(handler.on_line):
            outer.call(world)
    except LogstoreError as error:
        world.refusals.append(described(error))
    if not handler.count:
        world.problems.append("no handler ran")


def _store_log(world: StoreWorld) -> Any:
    return world.store.log("a", 0)


#: by the kind of world what handlers call in turn, and what ends the world, each for itself
INNER: dict[str, tuple[list[Call], dict[str, Call]]] = {
    "log": (
        [
            lambda world: world.append(1),
            LogWorld.roll,
            LogWorld.flush,
            LogWorld.read,
            lambda world: world.append(2),
            LogWorld.delete_records,
            LogWorld.delete_old_segments,
            LogWorld.append_columns,
            lambda world: world.log.size,
            LogWorld.remove_deleted_files,
        ],
        {"close": LogWorld.close_log},
    ),
    "producer": (
        [
            ProducerWorld.send,
            ProducerWorld.flush_some,
            ProducerWorld.append,
            ProducerWorld.send_keyed,
            lambda world: _store_log(world).roll(),
            ProducerWorld.send_columns,
            lambda world: world.producer.partitions_for("a"),
        ],
        {"close": ProducerWorld.close_producer, "close of the store": ProducerWorld.close_store},
    ),
    "transaction": (
        [
            lambda world: world.producer.flush(5),
            TransactionWorld.append,
            TransactionWorld.commit,
            lambda world: _store_log(world).roll(),
            TransactionWorld.send_offsets,
            TransactionWorld.abort,
            TransactionWorld.begin,
        ],
        {"close of the store": TransactionWorld.close_store},
    ),
    "consumer": (
        [
            ConsumerWorld.append,
            lambda world: world.consumer.position(("in", 0)),
            lambda world: world.store.log("in", 0).roll(),
            lambda world: world.consumer.committed(("in", 0)),
            ConsumerWorld.commit,
        ],
        {"close": lambda world: world.consumer.close(), "close of the store": ConsumerWorld.close_store},
    ),
    "store": (
        [
            StoreWorld.append,
            StoreWorld.create_topic,
            StoreWorld.alter_topic,
            lambda world: world.store.next_producer_id(),
            lambda world: world.store.run_due(),
            StoreWorld.use_topics,
        ],
        {"close of the store": StoreWorld.close_store},
    ),
}
OUTER = {
    "log": (
        "log append of 1,log append of 1 cold,log append of columns,log append idempotent,log marker commit,log roll,"
        "log flush of closed segments,log retention,log delete records,log clean,log read,log close"
    ),
    "producer": "send,send with key,send cold,send at once,send columns,producer flush,producer close",
    "transaction": "commit,commit with offsets,abort,begin and send in a transaction,send offsets to transaction",
    "consumer": "poll,iteration,commit of offsets,consumer close,close of one that commits",
    "store": "create topic,delete topic,alter topic,add partitions,store close",
}


def _all() -> Iterator[tuple[str, Interrupted]]:
    for kind, names in OUTER.items():
        together, apart = INNER[kind]
        for name in names.split(","):
            outer = CALLS[name]
            if outer.call is ProducerWorld.flush:  # a handler's record may come behind it
                outer = replace(outer, call=ProducerWorld.flush_some)
            for inner_name, inner in {"others": together, **{key: [call] for key, call in apart.items()}}.items():
                call = partial(_handled, outer, inner)
                yield (
                    f"{name}, a handler makes {inner_name}",
                    Interrupted(outer.make, call, others=outer.others, warm_count=0),
                )


#: each by the call and what a handler calls in its middle
HANDLED: dict[str, Interrupted] = dict(_all())
