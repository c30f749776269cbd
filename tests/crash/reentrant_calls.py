"""Calls whose arguments run Python of their own, which appends, sends, rolls or closes before the call is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from logstore.columns.any_columns import record_columns
from logstore.errors import LogstoreError
from tests.crash.interrupted_calls import Interrupted
from tests.crash.interrupted_log import IDEMPOTENT, PLACE, LogWorld
from tests.crash.interrupted_store import PLACES, ConsumerWorld, EagerProducerWorld, ProducerWorld
from tests.crash.interrupted_world import World
from tests.support.encoder import SOME_TIME

Outer = Callable[[Any, Callable[[], object]], object]


class Strange:
    """An int, bytes or a list of values for all who ask politely; the first who asks has `inner` called."""

    def __init__(self, inner: Callable[[], object], value: Any) -> None:
        self._inner: Callable[[], object] | None = inner
        self._value = value

    def _called(self) -> Any:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner()
        return self._value

    def __index__(self) -> int:
        return int(self._called())

    __int__ = __index__

    def __len__(self) -> int:
        return len(self._called())

    def __bytes__(self) -> bytes:
        return bytes(self._called())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._called())

    def __getitem__(self, index: Any) -> Any:
        return self._called()[index]


class StrangeBytes(bytes):
    """Bytes that have `inner` called when their length is asked for in Python."""

    inner: Callable[[], object] | None = None

    def __len__(self) -> int:
        inner, self.inner = self.inner, None
        if inner is not None:
            inner()
        return super().__len__()


# -- a log ------------------------------------------------------------------------------------------------------------


def _append(world: LogWorld, strange: Callable[[list[bytes]], dict[str, Any]]) -> None:
    """Three records with what `strange` makes of them as arguments."""
    values = world.tried(3)
    info = world.log.append_records(**{"values": values, **strange(values)})
    world.acknowledged.tell(values, PLACE, info.first_offset)


def _strange_values(values: list[bytes], inner: Callable[[], object]) -> list[bytes]:
    strange = StrangeBytes(values[1])
    strange.inner = inner
    return [values[0], strange, values[2]]


def _clock(world: LogWorld, inner: Callable[[], object]) -> None:
    clock, calls = world.log.state.host.now_ms, [inner]

    def now_ms() -> int:
        if calls:
            calls.pop()()
        return clock()

    world.log.state.host = world.log.state.host._replace(now_ms=now_ms)
    try:
        _append(world, lambda values: {})
    finally:
        world.log.state.host = world.log.state.host._replace(now_ms=clock)


def _columns(world: LogWorld, inner: Callable[[], object]) -> None:
    values = world.tried(3)
    columns = record_columns(values=values)
    info = world.log.append_columns(columns, leader_epoch=Strange(inner, 0))  # type: ignore[arg-type]
    world.acknowledged.tell(values, PLACE, info.first_offset)


def _producer(world: LogWorld, inner: Callable[[], object], strange: str) -> dict[str, Any]:
    """A producer of its own for each call, since the same sequence again would be a repetition."""
    producer_id = IDEMPOTENT + 5 + len(world.acknowledged.told)
    given: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    return given | {strange: Strange(inner, given[strange])}


LOG_OUTER: dict[str, Outer] = {
    "timestamp": lambda world, inner: _append(
        world, lambda values: {"timestamps": [SOME_TIME, Strange(inner, SOME_TIME), SOME_TIME]}
    ),
    "timestamps": lambda world, inner: _append(world, lambda values: {"timestamps": Strange(inner, [SOME_TIME] * 3)}),
    "value": lambda world, inner: _append(world, lambda values: {"values": _strange_values(values, inner)}),
    "values": lambda world, inner: _append(world, lambda values: {"values": Strange(inner, values)}),
    "keys": lambda world, inner: _append(world, lambda values: {"keys": Strange(inner, [b"k"] * 3)}),
    "leader_epoch": lambda world, inner: _append(world, lambda values: {"leader_epoch": Strange(inner, 0)}),
    "producer_id": lambda world, inner: _append(world, lambda values: _producer(world, inner, "producer_id")),
    "producer_epoch": lambda world, inner: _append(world, lambda values: _producer(world, inner, "producer_epoch")),
    "base_sequence": lambda world, inner: _append(world, lambda values: _producer(world, inner, "base_sequence")),
    "clock": _clock,
    "columns": _columns,
}
LOG_INNER: dict[str, Callable[[Any], object]] = {
    "append": lambda world: world.append(2),
    "roll": LogWorld.roll,
    "flush": LogWorld.flush,
    "retention": LogWorld.delete_old_segments,
    "close": LogWorld.close_log,
}

# -- a producer and a consumer --------------------------------------------------------------------------------


def _send(world: ProducerWorld, *, producer: Any = None, **strange: Any) -> None:
    (value,) = world.tried(1)
    future = (producer or world.producer).send(**{"topic": "a", "value": value, **strange})
    world.sent(value, future)


def _send_serialized(world: ProducerWorld, inner: Callable[[], object]) -> None:
    calls = [inner]

    def serializer(value: bytes) -> bytes:
        if calls:
            calls.pop()()
        return value

    _send(world, producer=world.store.producer(value_serializer=serializer, linger_ms=0))


def _send_with_callback(world: ProducerWorld, inner: Callable[[], object]) -> None:
    (value,) = world.tried(1)
    world.sent(value, world.producer.send("a", value).add_callback(lambda metadata: inner()))
    world.producer.flush(5)


def _deserialize(world: ConsumerWorld, inner: Callable[[], object]) -> None:
    calls = [inner]

    def deserializer(value: bytes) -> bytes:
        if calls:
            calls.pop()()
        return value

    consumer = world.store.consumer(value_deserializer=deserializer)
    consumer.assign([("in", 0)])
    consumer.seek_to_beginning(("in", 0))
    world.consumer = consumer
    world.rewind()
    for _ in range(3):
        for records in consumer.poll(100).values():
            for record in records:
                world.handed_out(record.offset)


PRODUCER_OUTER: dict[str, Outer] = {
    "serializer": _send_serialized,
    "callback": _send_with_callback,
    "headers": lambda world, inner: _send(world, headers=Strange(inner, [("h", b"1")])),
    "partition": lambda world, inner: _send(world, partition=Strange(inner, 1)),
    "timestamp_ms": lambda world, inner: _send(world, timestamp_ms=Strange(inner, SOME_TIME)),
    "key": lambda world, inner: _send(world, key=Strange(inner, b"key")),
}
PRODUCER_INNER: dict[str, Callable[[Any], object]] = {
    "send": ProducerWorld.send_some,
    "flush": ProducerWorld.flush_some,
    "close": ProducerWorld.close_producer,
    "append": ProducerWorld.append,
    "roll": lambda world: world.store.log(*PLACES[0]).roll(),
    "close of the store": ProducerWorld.close_store,
}
CONSUMER_INNER: dict[str, Callable[[Any], object]] = {
    "poll": ConsumerWorld.poll,
    "iteration": ConsumerWorld.iterate,
    "close": lambda world: world.consumer.close(),
    "append": ConsumerWorld.append,
}


def _refused_or_not(outer: Outer, inner: Callable[[Any], object], world: World) -> None:
    try:
        outer(world, partial(inner, world))
    except (LogstoreError, TypeError, ValueError) as error:
        world.refusals.append(repr(error))


def _all(
    kind: str, make: type[World], outers: dict[str, Outer], inners: dict[str, Callable[[Any], object]]
) -> Iterator[tuple[str, Interrupted]]:
    use = {LogWorld: (lambda world: world.append(2), LogWorld.read)}.get(make, (ProducerWorld.append,))
    for outer_name, outer in outers.items():
        for inner_name, inner in inners.items():
            call = partial(_refused_or_not, outer, inner)
            yield f"{kind} {outer_name} runs {inner_name}", Interrupted(make, call, others=use, warm_count=0)  # type: ignore[arg-type]


#: each by what runs code and what that does
REENTRANT: dict[str, Interrupted] = {
    **dict(_all("log", LogWorld, LOG_OUTER, LOG_INNER)),
    **dict(_all("send", ProducerWorld, PRODUCER_OUTER, PRODUCER_INNER)),
    **dict(_all("send at once", EagerProducerWorld, PRODUCER_OUTER, PRODUCER_INNER)),
    **dict(_all("consumer", ConsumerWorld, {"deserializer": _deserialize}, CONSUMER_INNER)),
}
