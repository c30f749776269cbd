"""Brokers that work at random over directories which live through several of them, and snapshots of those.

    with Session(oracle, place, seed) as session:
        for snapshot in session.snapshots(): …

A snapshot is a copy while the brokers work, a copy of what would lie there after SIGKILL (the brokers stand still
meanwhile), after a real SIGKILL, or after a stop in order; of all log dirs, one of two, or a single partition.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.kafka.judge import Asked
from tests.silence.broker_steps import Steps
from tests.silence.snapshots import Snapshot, taken
from tests.support.broker import Broker, remote_storage
from tests.support.dice import Dice
from tests.support.oracle import Oracle

LIVES = 4
ROUNDS = 8  # of each life
STEPS_OF_ROUND = 6
STARTING_MS, STOPPING_MS = 12_000, 2_000
OLD_METADATA = (21, 16, 7)  # 4.0, 3.7, 3.3; the older two have no transaction version 1, none has 2
_SKIPPED = re.compile("Couldn't find leader endpoint for partitions (.*?) while trying to send transaction markers")


class Session:
    """One broker or a pair, and clients of them."""

    def __init__(self, oracle: Oracle, place: Path, seed: str) -> None:
        self.oracle, self.place, self.seed, self.dice = oracle, place, seed, Dice(seed)
        dice = self.dice
        self.version = dice.below(3)
        self.is_pair, has_two_dirs = dice.chance(40), dice.chance(30)
        root = place / "one"
        self.directories = [[root, place / "one-b"] if has_two_dirs else [root]]
        settings = self._settings() | {"log.dirs": ",".join(map(str, self.directories[0]))}
        self._forgets_producers = "producer.id.expiration.ms" in settings
        is_tiered = not has_two_dirs and Dice(f"{seed} tiered").chance(30)  # another dice: others fall as ever
        if is_tiered:
            settings |= remote_storage(place / "remote", replication_factor=2 if self.is_pair else 1)
        features = [f"transaction.version={self.version}"]
        old = () if has_two_dirs else OLD_METADATA[: (3, 1, 0)[self.version]]
        if old and dice.chance(40):
            features.append(f"metadata.version={dice.choose(old)}")
        self.brokers = [Broker(oracle, root, settings, features)]
        if self.is_pair:
            second = {**settings, **self.brokers[0].quorum, "process.roles": "broker", "node.id": "2"}
            self.directories.append([place / "two"])
            self.brokers.append(Broker(oracle, place / "two", second | {"log.dirs": str(place / "two")}, features))
        moves = [str(one) for one in self.directories[0]]
        self.steps = Steps(dice, len(self.brokers), moves, self.version, is_tiered=is_tiered)
        self._count, self._skipped = 0, set[str]()
        self.name = f"transactions of version {self.version}, {'a pair' if self.is_pair else 'one broker'}"
        self.name += ", two log dirs" if has_two_dirs else ", tiered" if is_tiered else ""

    def _settings(self) -> dict[str, str]:
        dice = self.dice
        replicas = "2" if self.is_pair else "1"
        settings = {
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "log.cleaner.backoff.ms": str(dice.choose((50, 200, 1000))),
            "log.retention.check.interval.ms": str(dice.choose((200, 1000, 300_000))),
            "log.initial.task.delay.ms": "100",
            "log.flush.offset.checkpoint.interval.ms": str(dice.choose((100, 2000, 60_000))),
            "log.flush.start.offset.checkpoint.interval.ms": str(dice.choose((100, 2000, 60_000))),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "300",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
            "replica.lag.time.max.ms": "2000",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "group.streams.initial.rebalance.delay.ms": "0",
        }
        rare = {
            "producer.id.expiration.ms": str(dice.choose((500, 3000))),
            "producer.id.expiration.check.interval.ms": "200",
            "transactional.id.expiration.ms": "3000",
            "metadata.log.max.record.bytes.between.snapshots": "1500",
            "metadata.log.segment.ms": "1000",
            "metadata.max.retention.bytes": "2000",
            "offsets.retention.minutes": "1",
            "log.cleaner.enable": "false",
            "unclean.leader.election.enable": "true",
        }
        return settings | {key: value for key, value in rare.items() if dice.chance(25)}

    def snapshots(self) -> Iterator[Snapshot]:
        """Live several times over the same directories."""
        for life in range(LIVES):
            end = self.dice.choose((signal.SIGKILL, signal.SIGTERM))
            with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
                starting = pool.submit(self._start, stack, end)
                yield from self._meanwhile(starting, STARTING_MS)
                work = starting.result()
                if life == 0:
                    for step in self.steps.first():
                        self._do(work, step)
                for number in range(ROUNDS):
                    if self.is_pair and number == ROUNDS // 2 and self.dice.chance(40):
                        self._kill_one()
                    done = pool.submit(self._round, work)
                    yield from self._taken(self.dice.choose(("live", "as killed")))
                    done.result()
                    yield from self._taken("as killed")
                yield from self._meanwhile(pool.submit(stack.close), STOPPING_MS)
            yield from self._taken("killed" if end is signal.SIGKILL else "stopped")

    def _start(self, stack: contextlib.ExitStack, end: signal.Signals) -> Asked:
        bootstrap = ",".join([stack.enter_context(broker.running(end)) for broker in self.brokers])
        return stack.enter_context(Asked(self.oracle, self.place, "BrokerWork", bootstrap))

    def _meanwhile(self, doing: Future[Any], limit_ms: int) -> Iterator[Snapshot]:
        """A copy at some moment while brokers start or stop."""
        time.sleep(self.dice.below(limit_ms) / 1000)
        if not doing.done():
            yield from self._taken("as killed")
        doing.result()

    def _kill_one(self) -> None:
        """The one that is no controller: it is behind, and what is made again meanwhile is stray in its next life."""
        process = self.brokers[1].process
        assert process is not None
        process.kill()
        process.wait()

    def _round(self, work: Asked) -> None:
        for _ in range(STEPS_OF_ROUND):
            for step in self.steps.next():
                self._do(work, step)

    def _do(self, work: Asked, step: dict[str, object]) -> None:
        answer = work.answer(step)
        if os.environ.get("LOGSTORE_SILENCE_TRACE"):
            print(answer.strip()[:150], step, flush=True)

    def _taken(self, how: str) -> Iterator[Snapshot]:
        """Copies of all log dirs."""
        self._count += 1
        running = [one.process for one in self.brokers if one.process is not None and one.process.poll() is None]
        pids = [process.pid for process in running] if how == "as killed" else []
        roots = [directory for directories in self.directories for directory in directories]
        place = self.place / "copies" / str(self._count)
        for snapshot in taken(roots, place, how, self.name, self.seed, self.dice, pids):
            yield replace(snapshot, unmarked=self._unmarked(), forgets_producers=self._forgets_producers)

    def _unmarked(self) -> frozenset[str]:
        """What brokers said of partitions, in all their lives so far."""
        for broker in self.brokers:
            for told in _SKIPPED.findall(broker.log.read_text() if broker.log.exists() else ""):
                self._skipped.update(re.findall(r"[\w-]+-\d+", told))
        return frozenset(self._skipped)
