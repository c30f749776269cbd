"""Stops logs, cleaning, retention, stores, transactions and recovery before each system call, and counts.

    python -m tests.crash.prove ["KIND NUMBER"]

prints the number of crash points by kind: directories that a crash may have left, no two of a world alike, each opened
and looked at. Those of a recovery after a crash, and of a crash in that recovery, are counted beside the kind. With an
argument it looks at one world of those that a seed makes, as what is wrong names it.

| variable | says |
|---|---|
| `LOGSTORE_CRASH_POINTS` | so many, 1,000,000 if it is not set |
| `LOGSTORE_CRASH_SEED` | what is drawn, again |
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache, partial
from itertools import count, cycle
from multiprocessing import get_context
from pathlib import Path

from tests.crash import (
    cleaning_points,
    closing_points,
    compacting_points,
    log_points,
    recovery_points,
    store_points,
    transaction_points,
)
from tests.crash.points import Point
from tests.golden.archive import unpack
from tests.support.dice import Dice

PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None
KINDS: dict[str, Callable[[str, Path], Iterator[Point]]] = {
    "log": log_points.points,
    "cleaning": cleaning_points.cleaning_points,
    "retention": cleaning_points.retention_points,
    "compacting": compacting_points.points,
    "store": store_points.points,
    "closing": closing_points.points,
    "transactions": transaction_points.points,
}
RECOVERY = "recovery"
TURN = ("log", "cleaning", "log", RECOVERY, "compacting", "retention") * 5 + ("store", "closing", "transactions")
AGAIN_PERCENT = 2  # of the points: recovered from on a lossy disk


def looked_at(
    points: Callable[[str, Path], Iterator[Point]], seed: str, place: Path, *, limit: int = sys.maxsize
) -> Counter[str]:
    """Look at the points of a world, or at `limit` of them by chance; the counts of points, and of those again."""
    counts: Counter[str] = Counter(points=0, again=0)
    world = place / "world"
    world.mkdir()
    chosen, dice = list(points(seed, world)), Dice(f"{seed} chosen")
    while len(chosen) > limit:
        chosen.pop(dice.below(len(chosen)))
    for number, point in enumerate(chosen):
        _look(point, place / "left")
        counts["points"] += 1
        if number == 0 or dice.chance(AGAIN_PERCENT):
            again = list(point.again(place / "recovered", f"{seed} again {number}"))
            shutil.rmtree(place / "recovered")
            for second in again[:limit]:
                _look(second, place / "left")
                counts["again"] += 1
    return counts


def _look(point: Point, place: Path) -> None:
    point.check(place)
    shutil.rmtree(place)


def world(kind: str, seed: str, number: int) -> tuple[Counter[str], str]:
    """Look at one world of a kind; the counts, and what is wrong."""
    place = Path(tempfile.mkdtemp(prefix="crash-", dir=PLACE))
    try:
        points = partial(recovery_points.points, golden) if kind == RECOVERY else KINDS[kind]
        counts = looked_at(points, f"{seed} {kind} {number}", place)
        return Counter({kind: counts["points"], f"{kind} again": counts["again"]}), ""
    except Exception:
        return Counter(), traceback.format_exc()
    finally:
        shutil.rmtree(place)


@cache
def golden(name: str) -> Path:
    """Unpack a golden directory, once in each process."""
    return unpack(name, golden_place())


@cache
def golden_place() -> Path:
    place = tempfile.TemporaryDirectory(prefix="crash-golden-", dir=PLACE)
    atexit.register(place.cleanup)
    return Path(place.name)


def main(worlds: list[str]) -> int:
    seed = os.environ.get("LOGSTORE_CRASH_SEED") or secrets.token_hex(4)
    limit = int(os.environ.get("LOGSTORE_CRASH_POINTS") or 1_000_000)
    print(f"LOGSTORE_CRASH_SEED={seed}", flush=True)
    asked = iter([(kind, int(number)) for kind, number in map(str.split, worlds)]) if worlds else turns()
    counts, wrong_count, began_s = Counter[str](), 0, time.monotonic()
    running: dict[Future[tuple[Counter[str], str]], str] = {}
    processes = os.cpu_count() or 1
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        while True:
            while len(running) < 2 * processes and counts.total() < limit and (turn := next(asked, None)):
                running[pool.submit(world, turn[0], seed, turn[1])] = f"{turn[0]} {turn[1]}"
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                name, (found, wrong) = running.pop(done), done.result()
                counts += found
                if wrong:
                    wrong_count += 1
                    print(f'wrong: LOGSTORE_CRASH_SEED={seed} python -m tests.crash.prove "{name}"', wrong, sep="\n")
    for kind, number in sorted(counts.items()):
        print(f"{kind:20} {number:9,}")
    seconds = time.monotonic() - began_s
    print(f"{counts.total():,} crash points in {seconds:,.0f} s, {wrong_count} worlds with something wrong", flush=True)
    return 1 if wrong_count else 0


def turns() -> Iterator[tuple[str, int]]:
    """Kinds of worlds and their numbers, without end."""
    return zip(cycle(TURN), count(), strict=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
