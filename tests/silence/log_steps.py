"""Draws what logs go through, step by step, as `LogWork.java` does it: LogManager and cleaner, without a broker."""

from __future__ import annotations

from typing import Any

from tests.silence.topic_settings import CODECS, topic_settings
from tests.support.dice import Dice

Step = dict[str, Any]
TASKS = ("log-retention", "log-flusher", "recovery-point-checkpoint", "log-start-offset-checkpoint", "delete-logs")
KINDS = (
    *("send",) * 30,
    *("end",) * 14,
    *("replicate",) * 24,
    *("clean",) * 8,
    *("task",) * 8,
    *("late", "trim", "trim", "roll", "flush", "flush", "expire", "time", "time", "epoch", "alter", "remake"),
    *("future",) * 4,
)


class Steps:
    """A world of its own: one log manager or two, and topics of theirs."""

    def __init__(self, dice: Dice, roots: list[list[str]]) -> None:
        self.dice, self.roots = dice, roots
        self.version = dice.below(3)
        self.topics: dict[str, int] = {}

    def first(self) -> list[Step]:
        """What every world begins with."""
        dice = self.dice
        begin = {"do": "begin", "roots": self.roots, "dedupe": dice.choose((2000, 100_000))}
        begin["expirationMs"] = dice.choose((86_400_000, 86_400_000, 3000))
        return [begin, *(self._topic(f"topic-{number}") for number in range(dice.choose((1, 2, 3))))]

    def next(self) -> list[Step]:
        """One step, or a few that belong together."""
        kind = self.dice.choose(KINDS)
        return self._remake() if kind == "remake" else [getattr(self, f"_{kind}")()]

    def _topic(self, name: str) -> Step:
        self.topics[name] = self.dice.choose((1, 2))
        return {"do": "topic", "topic": name, "partitions": self.topics[name], "config": topic_settings(self.dice)}

    def _place(self) -> Step:
        topic = self.dice.choose(sorted(self.topics))
        return {
            "topic": topic,
            "partition": self.dice.below(self.topics[topic]),
            "host": self.dice.below(len(self.roots)),
        }

    def _send(self) -> Step:
        dice = self.dice
        producer = dice.choose((-1, 0, 1, 10, 11, 12, 13))
        step = {"do": "send", **self._place(), "producer": producer, "version": self.version if producer >= 10 else -1}
        step |= {"records": dice.choose((1, 1, 2, 5)), "size": dice.choose((0, 10, 100)), "key": dice.below(20)}
        return step | {
            "isTombstone": dice.chance(20),
            "codec": dice.choose(CODECS),
            "late": dice.choose((0, 0, 0, -1000)),
        }

    def _end(self) -> Step:
        dice = self.dice
        step = {"do": "end", "producer": dice.between(10, 13), "version": self.version, "isCommit": dice.chance(50)}
        return step | {"isFenced": dice.chance(10), "isFailover": dice.chance(10), "isTwice": dice.chance(5)}

    def _replicate(self) -> Step:
        return {"do": "replicate", **self._place(), "bytes": self.dice.choose((1, 300, 1000, 100_000))}

    def _host(self, what: str) -> Step:
        return {"do": what, "host": self.dice.below(len(self.roots))}

    def _clean(self) -> Step:
        return self._host("clean")

    def _task(self) -> Step:
        return self._host("task") | {"name": f"kafka-{self.dice.choose(TASKS)}"}

    def _late(self) -> Step:
        return self._host("late")

    def _trim(self) -> Step:
        return {"do": "trim", **self._place(), "offset": self.dice.choose((1, 5, 20, 2**40))}

    def _roll(self) -> Step:
        return {"do": "roll", **self._place()}

    def _flush(self) -> Step:
        return {"do": "flush", **self._place()}

    def _expire(self) -> Step:
        return {"do": "expire", **self._place()}

    def _future(self) -> Step:
        return {"do": "future", **self._place()}

    def _time(self) -> Step:
        return {"do": "time", "ms": self.dice.choose((1, 100, 5000, 100_000))}

    def _epoch(self) -> Step:
        """Another leader, or the same one of a new epoch; or a manager that starts anew, after a stop or a crash."""
        kind = self.dice.choose(("switch", "epoch", "restart", "restart"))
        return {**self._host(kind), "isClean": self.dice.chance(50), "lost": self.dice.choose((0, 1, 5))}

    def _alter(self) -> Step:
        config = self.dice.choose(
            ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}, {"retention.ms": "1000"})
        )
        return {"do": "alter", "topic": self.dice.choose(sorted(self.topics)), "config": config}

    def _remake(self) -> list[Step]:
        """A topic is deleted, or goes astray, and is made again."""
        topic, is_stray = self.dice.choose(sorted(self.topics)), self.dice.chance(30)
        gone = [
            {"do": "delete", "topic": topic, "partition": number, "isStray": is_stray}
            for number in range(self.topics[topic])
        ]
        return [*gone, self._topic(topic)]
