"""The calls of a producer in any order beside those of the Java client's: what each throws, to the word.

Stories, written and by chance, are told to the real KafkaProducer with a real broker and to ours; a story is a list of
calls of one or two producers. `LOGSTORE_ORACLE_CASES` stories by chance are drawn from
`LOGSTORE_ORACLE_SEED`.
"""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.errors import LogstoreError
from tests.support.broker import Broker
from tests.support.dice import Dice
from tests.support.oracle import Oracle
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=1, whole=24)
SEED = seed_of("ORACLE")
STEP_COUNT = 14
TIMEOUT_TOO_LONG_MS = 900_001  # over transaction.max.timeout.ms

Call = list[Any]
_PRODUCER_ID = re.compile(r"producerId=\d+")
#: what the Java client makes of an error code; ours has the words of the log, which a broker keeps to itself
WORDS_OF_CODES = (
    "org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce with an old epoch.",
    "org.apache.kafka.common.errors.RecordTooLargeException: "
    "The request included a message larger than the max message size the server will accept.",
)
#: an answer that the Java client did not think of, and ours has the name of
UNEXPECTED = "org.apache.kafka.common.KafkaException: Unexpected error in InitProducerIdResponse; "
TIMEOUT_TOO_LONG = "org.apache.kafka.common.errors.InvalidTxnTimeoutException: "


def opened(name: str, transactional_id: str | None = "x", **config: Any) -> Call:
    values = {key.replace("_", "."): str(value).lower() for key, value in config.items()}
    return ["open", name, {**values, **({"transactional.id": transactional_id} if transactional_id else {})}]


def send(name: str, size: int = 10, partition: int = 0) -> Call:
    return ["send", name, partition, size]


def offsets(name: str, offset: int = 7, generation: int = -1, member: str = "") -> Call:
    return ["offsets", name, "g", offset, generation, member]


def calls(name: str, *methods: str) -> list[Call]:
    return [[method, name] for method in methods]


#: all transactional methods, and what else there is to call
ALL = ("init", "begin", "commit", "abort", "flush")
STORIES: dict[str, list[Call]] = {
    "idempotence is taken away from a transactional id": [opened("a", enable_idempotence=False)],
    "without all acknowledgements there is no transaction": [opened("a", acks="1")],
    "without retries there is no transaction": [opened("a", retries=0)],
    "idempotence is asked for without acknowledgements": [opened("a", None, enable_idempotence=True, acks="0")],
    "idempotence is asked for without retries": [opened("a", None, enable_idempotence=True, retries=0)],
    "too much at once for idempotence": [opened("a", None, max_in_flight_requests_per_connection=6)],
    "an empty transactional id": [["open", "a", {"transactional.id": ""}]],
    "neither idempotent nor transactional": [
        *[opened("a", None, enable_idempotence=False), *calls("a", *ALL), offsets("a"), send("a")],
        *[*calls("a", "close", "init", "begin"), send("a"), offsets("a"), *calls("a", "close", "flush")],
    ],
    "idempotent and not transactional": [
        *[opened("a", None), *calls("a", *ALL), offsets("a"), send("a")],
        *[*calls("a", "close", "commit"), send("a"), offsets("a")],
    ],
    "not initialized": [
        *[opened("a"), *calls("a", "begin"), offsets("a"), *calls("a", "commit", "abort")],
        *[*calls("a", "init", "begin", "commit"), opened("a"), send("a")],
    ],
    "not begun": [
        *[opened("a"), *calls("a", "init"), offsets("a"), *calls("a", "commit", "abort", "init")],
        *[*calls("a", "begin"), send("a"), *calls("a", "commit", "commit", "abort"), send("a")],
    ],
    "begun twice": [opened("a"), *calls("a", "init", "begin", "begin", "init"), send("a"), *calls("a", "commit")],
    "after the end": [
        *[opened("a"), *calls("a", "init", "begin"), send("a"), *calls("a", "close", *ALL), send("a"), offsets("a")],
        *calls("a", "close"),
    ],
    "closed before anything": [opened("a"), *calls("a", "close", *ALL), send("a"), offsets("a")],
    "a zombie sends": [
        *[opened("a"), *calls("a", "init", "begin"), send("a"), opened("b"), *calls("b", "init"), send("a"), send("a")],
        *[offsets("a"), *calls("a", "begin", "commit", "abort", "begin", "init"), send("a"), *calls("a", "close")],
        *[*calls("b", "begin"), send("b"), *calls("b", "commit")],
    ],
    "a zombie commits": [
        *[opened("a"), *calls("a", "init", "begin"), send("a"), opened("b"), *calls("b", "init", "begin"), send("b")],
        *[*calls("a", "commit", "commit", "abort", "begin", "init"), send("a"), offsets("a"), *calls("a", "close")],
        *calls("b", "commit"),
    ],
    "a zombie aborts": [
        *[opened("a"), *calls("a", "init", "begin"), send("a"), opened("b"), *calls("b", "init")],
        *[*calls("a", "abort", "abort", "begin"), *calls("a", "close")],
    ],
    "a zombie commits offsets": [
        *[opened("a"), *calls("a", "init", "begin"), opened("b"), *calls("b", "init"), offsets("a"), offsets("a")],
        *calls("a", "commit", "abort", "close"),
    ],
    "a zombie begins": [
        *[opened("a"), *calls("a", "init"), opened("b"), *calls("b", "init"), *calls("a", "begin"), send("a")],
        *calls("a", "commit", "abort", "close"),
    ],
    "a zombie does nothing in its transaction": [
        *[opened("a"), *calls("a", "init", "begin"), opened("b"), *calls("b", "init"), *calls("a", "commit", "begin")],
        *[send("a"), *calls("a", "abort")],
    ],
    "a record is too large": [
        *[opened("a", max_request_size=500), *calls("a", "init", "begin"), send("a"), send("a", 1000), send("a")],
        *[offsets("a"), *calls("a", "begin", "commit", "init", "abort", "begin"), send("a"), *calls("a", "commit")],
    ],
    "a record is too large for the topic": [
        *[opened("a"), *calls("a", "init", "begin"), send("a", 1_100_000), send("a"), *calls("a", "commit", "abort")],
        *[*calls("a", "begin"), send("a"), *calls("a", "commit")],
    ],
    "a record is too large, and nothing is transactional": [
        *[opened("a", None, max_request_size=500), send("a", 1000), send("a"), opened("b", None), send("b", 1_100_000)],
        send("b"),
    ],
    "offsets in an order that does not fit": [
        *[opened("a"), *calls("a", "init"), offsets("a"), *calls("a", "begin"), offsets("a", -1), offsets("a")],
        *[offsets("a", generation=3), offsets("a", generation=3, member="m"), offsets("a"), *calls("a", "commit")],
        *[*calls("a", "abort", "begin"), offsets("a", member="m"), *calls("a", "abort", "begin"), offsets("a")],
        *calls("a", "commit"),
    ],
    "a timeout that is too long": [
        *[opened("a", transaction_timeout_ms=TIMEOUT_TOO_LONG_MS), *calls("a", "init", "init", "begin"), send("a")],
        *calls("a", "close"),
    ],
}


def by_chance(dice: Dice) -> list[Call]:
    """Calls of two producers of one transactional id, more often those that go on than those that do not fit.

    No `send` outside a transaction: it leaves its record in the Java client, where it waits for a later one.
    """
    story = [opened("a"), opened("b"), *calls("a", "init", "begin"), offsets("a"), *calls("a", "commit")]
    stages = {"a": "begin", "b": "init"}
    following = {"init": "begin", "begin": "commit", "commit": "begin", "abort": "begin"}
    for _ in range(STEP_COUNT):
        name = dice.choose("aaab")
        kind = dice.below(20)
        if kind < 12:
            fitting = {"commit": ("commit", "abort")}.get(stages[name], (stages[name],))
            method = dice.choose(fitting if dice.chance(70) else tuple(following))
            if method in fitting:
                stages[name] = following[method]
            story.append([method, name])
        elif kind < 16 and stages[name] == "commit":
            story.append(send(name))
        elif kind < 18:
            story.append(offsets(name))
        elif kind == 18:
            story.append(offsets(name, generation=2, member="m"))
        elif kind == 19:
            stages[name] = "init"
            story.append(opened(name) if dice.chance(70) else ["close", name])
    return story


class OurProducers:
    """What `ProducerCalls.java` is, with ours."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.producers: dict[str, Producer] = {}

    def told(self, story: list[Call]) -> list[str]:
        answers = []
        for method, name, *arguments in story:
            try:
                self.call(method, name, arguments)
                answers.append("ok")
            except LogstoreError as error:
                answers.append(f"{error.java_class}: {error.message}")
        return answers

    def call(self, method: str, name: str, arguments: list[Any]) -> None:
        if method == "open":
            values = {"linger.ms": "20000", "batch.size": "1000000", "max.request.size": "4000000", **arguments[0]}
            self.producers[name] = self.store.producer(**values)
            return
        producer = self.producers[name]
        if method == "send":
            partition, size = arguments
            future = producer.send("t", bytes(size), partition=partition)
            producer.flush()
            future.get()
        elif method == "offsets":
            group_id, offset, generation, member = arguments
            group = ConsumerGroupMetadata(group_id, generation, member)
            producer.send_offsets_to_transaction({("t", 0): offset}, group)
        else:
            names = {"init": "init_transactions"} | {one: f"{one}_transaction" for one in ("begin", "commit", "abort")}
            getattr(producer, names.get(method, method))()


def apart(story: list[Call], number: int) -> list[Call]:
    """The story with a transactional id and a group of its own."""
    told: list[Call] = json.loads(re.sub(r'"([xg])"', rf'"\g<1>{number}"', json.dumps(story)))
    return told


def comparable(answers: list[str]) -> list[str]:
    return [_PRODUCER_ID.sub("producerId=N", answer) for answer in answers]


def is_same(java: str, ours: str) -> bool:
    if java in WORDS_OF_CODES:
        return java.partition(": ")[0] == ours.partition(": ")[0]
    return java == ours or java.replace(UNEXPECTED, TIMEOUT_TOO_LONG) == ours


@pytest.mark.slow
def test_every_order_of_calls_is_answered_as_by_the_java_client(oracle: Oracle, tmp_path: Path) -> None:
    dice = Dice(SEED)
    drawn = {f"by chance {number}": by_chance(dice) for number in range(CASE_COUNT)}
    stories = [apart(story, number) for number, story in enumerate([*STORIES.values(), *drawn.values()])]
    broker = Broker(oracle, tmp_path / "kafka", {}, [])
    with broker.running(signal.SIGTERM) as address:
        theirs = list(map(comparable, oracle.answers("ProducerCalls", address, questions=stories, cwd=tmp_path)))
    with logstore.open(tmp_path / "ours") as store:
        store.create_topic("t", partitions=2)
        ours = [comparable(OurProducers(store).told(story)) for story in stories]
    different = [
        (name, number, call, {"java": java, "ours": our})
        for name, story, java_answers, our_answers in zip([*STORIES, *drawn], stories, theirs, ours, strict=True)
        for number, (call, java, our) in enumerate(zip(story, java_answers, our_answers, strict=True))
        if not is_same(java, our)
    ]
    assert different == [], f"LOGSTORE_ORACLE_SEED={SEED}"
