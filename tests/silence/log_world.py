"""Log managers of Kafka that work at random in a JVM without a broker, and snapshots of their directories."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from tests.kafka.judge import Asked
from tests.silence.log_steps import Steps
from tests.silence.snapshots import Snapshot, taken
from tests.support.dice import Dice
from tests.support.oracle import Oracle

ROUNDS = 8
STEPS_MAX = 40  # of a round


def snapshots(oracle: Oracle, place: Path, seed: str) -> Generator[Snapshot]:
    """World after world, without end."""
    with Asked(oracle, place, "LogWork") as work, ThreadPoolExecutor(1) as pool:
        for number in count():
            yield from _World(work, pool, place / str(number), f"{seed}-log-{number}").snapshots()
            shutil.rmtree(place / str(number))


class _World:
    def __init__(self, work: Asked, pool: ThreadPoolExecutor, place: Path, seed: str) -> None:
        self.work, self.pool, self.place, self.seed, self.dice = work, pool, place, seed, Dice(seed)
        dice = self.dice
        hosts = ["one", "two"] if dice.chance(50) else ["one"]
        self.roots = [
            [place / f"{host}{log_dir}" for log_dir in ("", "-b")[: dice.choose((1, 1, 2))]] for host in hosts
        ]
        self.steps = Steps(dice, [[str(root) for root in roots] for roots in self.roots])
        self.kind = f"log manager, transactions of version {self.steps.version}"

    def snapshots(self) -> Iterator[Snapshot]:
        """Copies between steps, in the midst of them, and after a stop."""
        dice = self.dice
        self._do(self.steps.first())
        for number in range(ROUNDS):
            steps = [step for _ in range(dice.below(STEPS_MAX)) for step in self.steps.next()]
            how = dice.choose(("as killed", "as killed", "at rest"))
            pids = [self.work.pid] if how == "as killed" else []
            done = self.pool.submit(self._do, steps)
            if how == "at rest":
                done.result()
            time.sleep(dice.below(10) / 1000)
            yield from taken(self._roots, self.place / "copies" / str(number), how, self.kind, self.seed, dice, pids)
            done.result()
        self._do([{"do": "stop", "host": number} for number in range(len(self.roots))])
        yield from taken(self._roots, self.place / "copies" / "last", "stopped", self.kind, self.seed, dice)

    @property
    def _roots(self) -> list[Path]:
        return [root for roots in self.roots for root in roots]

    def _do(self, steps: list[dict[str, object]]) -> None:
        refused = self.work.ask(steps)
        if os.environ.get("LOGSTORE_SILENCE_TRACE"):
            print(*(f"{self.seed} {one}" for one in refused), sep="\n", flush=True)
