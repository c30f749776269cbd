"""Draws what clients and administrators do with brokers, step by step, as `BrokerWork.java` does it."""

from __future__ import annotations

from typing import Any

from tests.silence.topic_settings import CODECS, TIERED_SETTINGS, topic_settings
from tests.support.dice import Dice

Step = dict[str, Any]
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
KINDS = (
    *("send",) * 30,
    *("transaction",) * 40,
    *("poll", "poll", "leave", "reset", "reset", "forget", "forget-offsets", "share", "streams"),
    *("trim", "trim", "remake", "alter", "alter", "grow", "move", "elsewhere", "abort-hanging", "create", "create"),
)


class Steps:
    """What is drawn next goes by what was drawn before, whether a broker did it or not.

    Attributes:
        topics: from name to number of partitions.
        open: transactional producers within a transaction.
    """

    def __init__(
        self, dice: Dice, replicas: int, directories: list[str], version: int, *, is_tiered: bool = False
    ) -> None:
        self.dice, self.replicas, self.directories, self.version = dice, replicas, directories, version
        self.is_tiered = is_tiered
        self.topics: dict[str, int] = {}
        self.open: set[str] = set()
        self._made = 0

    def first(self) -> list[Step]:
        """What every session begins with: segments of internal topics are small, so that the cleaner has something."""
        steps = [self._topic(), self._topic(), self._topic(), self._record("plain", "none")]
        producer = self._producer()
        steps += [
            {"do": "begin", **producer},
            {"do": "offsets", **producer, **self._processed(producer["producer"])},
            {"do": "commit", **producer},
        ]
        for topic in INTERNAL_TOPICS:
            config = {"internal.segment.bytes": str(self.dice.choose((500, 2000, 20_000)))}
            config |= {"segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"} if self.dice.chance(50) else {}
            steps.append({"do": "alter", "type": "TOPIC", "topic": topic, "config": config})
        return steps

    def next(self) -> list[Step]:
        """One thing or a few that belong together."""
        kind = self.dice.choose(KINDS)
        made: list[Step] = getattr(self, f"_{kind.replace('-', '_')}")()
        return made

    def _create(self) -> list[Step]:
        return [self._topic()]

    def _topic(self, name: str = "") -> Step:
        dice = self.dice
        if not name:
            self._made += 1
            name = f"topic-{self._made}"
        self.topics[name] = dice.choose((1, 1, 2))
        partitions = self.topics[name]
        return {
            "do": "create",
            "topic": name,
            "partitions": partitions,
            "replicas": self.replicas,
            "config": topic_settings(dice) | (TIERED_SETTINGS if self.is_tiered and name[-1] in "13579" else {}),
        }

    def _place(self) -> Step:
        topic = self.dice.choose(sorted(self.topics))
        return {"topic": topic, "partition": self.dice.below(self.topics[topic])}

    def _producer(self) -> Step:
        timeout = str(self.dice.choose((1000, 20_000, 20_000)))
        return {"producer": f"tx-{self.dice.below(4)}", "timeout": timeout, "codec": self.dice.choose(CODECS)}

    def _record(self, producer: str, codec: str, timeout: str = "20000") -> Step:
        step = {"do": "send", "producer": producer, "codec": codec, "timeout": timeout, **self._place()}
        dice = self.dice
        step |= {"records": dice.choose((1, 1, 2, 5, 20)), "size": dice.choose((0, 10, 100, 600))}
        return step | {"key": dice.below(20), "isTombstone": dice.chance(15)}

    def _send(self) -> list[Step]:
        return [self._record(self.dice.choose(("plain", "idempotent-0", "idempotent-1")), self.dice.choose(CODECS))]

    def _transaction(self) -> list[Step]:
        """Go on with a transactional producer: its next record, its end, or another begins in its place."""
        dice, producer = self.dice, self._producer()
        name = producer["producer"]
        steps: list[Step] = []
        if name not in self.open:
            self.open.add(name)
            steps.append({"do": "begin", **producer})
        for _ in range(dice.choose((0, 1, 1, 2, 4))):
            steps.append(self._record(name, producer["codec"], producer["timeout"]))
        if dice.chance(35):
            steps.append({"do": "offsets", **producer, **self._processed(name)})
        if dice.chance(65):
            self.open.discard(name)
            steps.append({"do": dice.choose(("commit", "commit", "abort", "abort", "vanish")), **producer})
        return steps

    def _processed(self, producer: str) -> Step:
        """The group of a producer has processed some more of its input."""
        topic = sorted(self.topics)[0]
        return {"group": f"group-of-{producer}", "topic": topic, "partition": 0, "offset": self.dice.below(4)}

    def _poll(self) -> list[Step]:
        group, protocol = self.dice.choose((("classic", "classic"), ("new", "consumer")))
        return [{"do": "poll", "group": group, "protocol": protocol, "topic": self.dice.choose(sorted(self.topics))}]

    def _leave(self) -> list[Step]:
        return [{"do": "leave", "group": self.dice.choose(("classic", "new"))}]

    def _reset(self) -> list[Step]:
        """An operator resets a group to the beginning: one that commits within transactions, or one that does not."""
        group = self.dice.choose(("classic", "by-hand"))
        return [
            {
                "do": "reset",
                **self.dice.choose((self._processed(f"tx-{self.dice.below(4)}"), {"group": group, **self._place()})),
            }
        ]

    def _forget(self) -> list[Step]:
        return [{"do": "forget", "group": self.dice.choose(("group-of-tx-1", "new", "by-hand"))}]

    def _forget_offsets(self) -> list[Step]:
        return [{"do": "forget-offsets", "group": self.dice.choose(("group-of-tx-0", "by-hand")), **self._place()}]

    def _share(self) -> list[Step]:
        return [{"do": "share", "group": "shared", "topic": self.dice.choose(sorted(self.topics))}]

    def _streams(self) -> list[Step]:
        return [{"do": "streams", "group": "streamed", "topic": self.dice.choose(sorted(self.topics))}]

    def _trim(self) -> list[Step]:
        return [{"do": "trim", **self._place(), "offset": self.dice.choose((-1, 1, 3, 10, 30))}]

    def _remake(self) -> list[Step]:
        """A topic goes, and mostly comes again, another one of the same name."""
        topic = self.dice.choose(sorted(self.topics))
        step: Step = {"do": "delete", "topic": topic}
        if len(self.topics) > 2 and self.dice.chance(30):
            del self.topics[topic]
            return [step]
        return [step, self._topic(topic)]

    def _alter(self) -> list[Step]:
        config = self.dice.choose(
            (
                {"cleanup.policy": "compact"},
                {"cleanup.policy": "delete"},
                {"cleanup.policy": "compact,delete", "retention.ms": "1000"},
                {"retention.ms": "500"},
                {"retention.ms": "-1"},
                {"internal.segment.bytes": "700"},
                {"delete.retention.ms": "0"},
            )
        )
        return [{"do": "alter", "type": "TOPIC", "topic": self.dice.choose(sorted(self.topics)), "config": config}]

    def _grow(self) -> list[Step]:
        topic = self.dice.choose(sorted(self.topics))
        self.topics[topic] += 1
        return [{"do": "grow", "topic": topic, "partitions": self.topics[topic]}]

    def _move(self) -> list[Step]:
        return [{"do": "move", **self._place(), "directory": self.dice.choose(self.directories)}]

    def _elsewhere(self) -> list[Step]:
        what = self.dice.choose(("acl", "scram", "quota", "version"))
        return [
            {
                "do": "elsewhere",
                "what": what,
                "level": self.dice.between(1, 2),
                "topic": self.dice.choose(sorted(self.topics)),
            }
        ]

    def _abort_hanging(self) -> list[Step]:
        """Only a transaction that nobody is within: else what an administrator does is a fault of his own."""
        return [] if self.open else [{"do": "abort-hanging", **self._place()}]
