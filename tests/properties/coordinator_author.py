"""Writes what producers and time do to a coordinator: mostly sensible, sometimes not, from all kinds of beginnings."""

from __future__ import annotations

import random
from typing import Any

from logstore.topics.transaction_state import TransactionMetadata, TransactionState, encode_value
from tests.properties.coordinator_rehearsal import Rehearsal, Step

STEPS = 60
IDS = ["a", "b"]
PARTITIONS = [["t", 0], ["t", 1], ["__consumer_offsets", 3]]
LOADED_EPOCHS = [0, 1, 7, 32764, 32765, 32766, 32767]


class Author:
    """Writes a workload while rehearsing it, so that most requests make sense and some do not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.version = rng.choice([0, 1, 2, 2])
        self.rehearsal = Rehearsal(self.version)
        self.workload: list[Step] = []
        self.results: list[dict[str, Any]] = []

    def write(self) -> None:
        if self.rng.random() < 0.7:
            self.load()
        self.do({"do": "time", "ms": self.rng.randrange(10_000)})
        for _ in range(STEPS):
            self.do(self.next_step())

    def do(self, step: Step) -> None:
        self.workload.append(step)
        events = self.rehearsal.step(step)
        self.results.append({"events": events, "known": self.rehearsal.known()})

    def load(self) -> None:
        for number, name in enumerate(IDS):
            state = self.rng.choice([state for state in TransactionState if state < TransactionState.DEAD])
            is_open = state in (1, 2, 3)
            epoch = self.rng.choice(LOADED_EPOCHS)
            has_next = epoch == 32767 and state in (2, 3) and self.version > 0
            metadata = TransactionMetadata(
                producer_id=number,
                producer_epoch=epoch,
                state=state,
                transaction_timeout_ms=self.rng.choice([1000, 60_000, 0x7FFFFFFF]),
                partitions=tuple((topic, partition) for topic, partition in self.some()) if is_open else (),
                start_timestamp_ms=-1 if state == 0 else 5,
                last_update_timestamp_ms=5,
                previous_producer_id=number if self.version else -1,
                next_producer_id=10 + number if has_next else -1,
                next_producer_epoch=-1,
                client_transaction_version=self.rng.choice([0, self.version]) if self.version else 0,
            )
            value = encode_value(metadata, version=min(self.version, 1)).hex()
            self.do({"do": "load", "id": name, "value": value})
        self.do({"do": "ids", "next": 20})
        self.do({"do": "restart"})

    def some(self) -> list[list[Any]]:
        return self.rng.sample(PARTITIONS, self.rng.randrange(1, len(PARTITIONS) + 1))

    def next_step(self) -> Step:
        rehearsal, rng = self.rehearsal, self.rng
        waiting = sorted(rehearsal.appends)
        if waiting:
            name = rng.choice(waiting)
            if rng.random() < 0.15 and rehearsal.may_fail(name):
                error = rng.choice(["COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"])
                return {"do": "failed", "id": name, "error": error}
            return {"do": "written", "id": name}
        prepared = sorted(rehearsal.completions)
        if prepared and rng.random() < 0.5:
            return self.marker(rng.choice(prepared))
        chance = rng.random()
        if chance < 0.03:
            return {"do": "restart"}
        if chance < 0.08:
            return {"do": "time", "ms": rng.choice([1, 500, 70_000])}
        return {"do": "timeouts"} if chance < 0.12 else self.request()

    def marker(self, name: str) -> Step:
        current = self.rehearsal.table.get(name)
        assert current is not None
        if not current.partitions:
            return {"do": "complete", "id": name}
        topic, partition = self.rng.choice(sorted(current.partitions))
        return {"do": "marker", "id": name, "topic": topic, "partition": partition}

    def request(self) -> Step:
        rng = self.rng
        name = rng.choice([*IDS, *IDS, "", "unknown"]) if rng.random() < 0.2 else rng.choice(IDS)
        kind = rng.choice(["init", "add", "add", "end", "end", "verify"])
        step: Step = {"do": kind, "id": name}
        current = self.rehearsal.table.get(name)
        pid, epoch = (0, 0) if current is None else (current.producer_id, current.producer_epoch)
        if current is not None and rng.random() < 0.35:
            pid = rng.choice([pid, pid, pid, current.previous_producer_id, pid + 1])
            epoch = rng.choice([epoch - 1, epoch + 1, current.last_producer_epoch, 32766, epoch])
        if kind == "init":
            step["timeout"] = rng.choice([1000, 1000, 60_000, 900_000, 900_001, 0, -1])
        if kind != "init" or rng.random() < 0.4:
            step["pid"], step["epoch"] = pid, epoch
        if kind in ("add", "verify"):
            step["partitions"] = self.some()
        if kind in ("add", "end"):
            step["client"] = rng.choice([0, self.version, self.version])
        if kind == "end":
            step["commit"] = rng.random() < 0.6
        return step
