"""Interrupts each call before each of its lines, in a process of its own, so that what hangs is a finding.

    python -m tests.crash.interrupt_runs [NAME …]

prints for each call how often it was interrupted and how often something was wrong then, and what, by line.

| variable | says |
|---|---|
| `LOGSTORE_INTERRUPT_CALL` | part of the names of the calls to interrupt |
| `LOGSTORE_INTERRUPT_STEP` | only before every so manieth line, from one on that is drawn |
| `LOGSTORE_INTERRUPT_SIGNALS` | so many signals in all, at random moments, in place of lines |
| `LOGSTORE_INTERRUPT_SEED` | what is drawn, again |
| `LOGSTORE_INTERRUPT_KEEP` | a directory for those that something is wrong in |
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from tests.crash.handled_calls import HANDLED
from tests.crash.interrupted_calls import CALLS, Interrupted, nothing
from tests.crash.interrupted_world import World, described
from tests.crash.reentrant_calls import REENTRANT
from tests.support.interrupts import Alarm, Interrupt, LineTracer

HANGING_S = 30.0
HANGING_AT_FIRST_S = 900.0  # in a process that still imports and maybe compiles, beside others
AGAIN_COUNT = 3
SIGNALS_OF_WORLD = 20
TRIES_PER_SIGNAL = 5  # at most
STACK_LINES = 12  # of a process that hangs
_PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Outcome:
    """What came of interrupting one call.

    Attributes:
        count: interrupts.
        wrong: by line of product code what was wrong, in the order of the lines.
    """

    count: int = 0
    wrong: dict[str, list[str]] = field(default_factory=dict)


# -- in the process of its own --------------------------------------------------------------------------------------


def interrupted(
    what: Interrupted, root: Path, interrupts: Iterable[Interrupt], say: Callable[[dict[str, Any]], object] = dict
) -> World:
    """A world in which a call was interrupted, which was used then, closed, opened again and looked at.

    Args:
        interrupts: one after the other in the same world, as long as it refuses nothing.
        say: is told of each that came.
    """
    root.mkdir(parents=True)
    world = what.make(root)
    for _ in range(what.warm_count):
        what.before(world)
        what.call(world)
    last = None
    for interrupt in interrupts:
        if last is not None:
            _use(what, world, last, 1)
            if world.refusals or world.problems:
                break
        last = interrupt
        what.before(world)
        try:
            interrupt.run(partial(_call, what, world, interrupt))
            if interrupt.was_swallowed:
                world.problems.append("the interrupt was swallowed")
        except Exception as error:
            world.problems.append(f"the call itself raised {described(error)}")
        say({"line": interrupt.place})
    assert last is not None
    _use(what, world, last, AGAIN_COUNT)
    world.close()
    world.look()
    world.problems = [problem.replace(f"{root}/", "") for problem in world.problems]
    return world


def _call(what: Interrupted, world: World, interrupt: Interrupt) -> None:
    """Make a call, again and again until an alarm comes if it can be."""
    what.call(world)
    while isinstance(interrupt, Alarm) and what.before is nothing and what.warm_count and not interrupt.place:
        what.call(world)


def _use(what: Interrupted, world: World, interrupt: Interrupt, count: int) -> None:
    """Make the same call and others behind an interrupt, so often."""
    for number in range(count):
        if number or not interrupt.was_interrupted:
            world.attempt("what goes before it", partial(what.before, world))
        for name, call in (("the same call", what.call), *_named(what)):
            world.attempt(name, partial(call, world))


def _named(what: Interrupted) -> Iterator[tuple[str, Any]]:
    for call in what.others:
        yield getattr(call, "__name__", "another"), call


def _work() -> None:
    """Answer each line with lines of JSON: {"at"} before each try, {"line"}, {"places", "problems"}, {} at the end."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    place = Path(tempfile.mkdtemp(prefix="logstore-interrupts-", dir=_PLACE))
    tried: set[str] = set()
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line) | {"dry_s": HANGING_S if number else HANGING_AT_FIRST_S}
        _answer(asked, place, tried, lambda answer: print(json.dumps(answer), file=answers, flush=True))
    shutil.rmtree(place, ignore_errors=True)
    answers.flush()
    os._exit(0)  # what an interrupt left open is not closed


def _answer(asked: dict[str, Any], place: Path, tried: set[str], say: Callable[[dict[str, Any]], object]) -> None:
    what = {**CALLS, **REENTRANT, **HANDLED}[asked["name"]]
    dry_count = 1 if asked["is_dry"] else 2  # the first imports and compiles
    for _ in range(0 if asked.get("signals") and asked["name"] in tried else dry_count):
        say({"at": -1})
        dry = LineTracer()
        faulthandler.dump_traceback_later(asked["dry_s"], exit=True)
        world = interrupted(what, place / "dry", [dry])
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(place / "dry")
        if world.problems:
            say({"places": ["without an interrupt"], "problems": world.problems})
    tried.add(asked["name"])
    if asked["is_dry"]:
        say({})
        return
    tries = _lines(asked, dry.line_count) if asked["signals"] == 0 else _moments(asked, what, place)
    came = asked["came"]
    for number, interrupts in tries:
        if asked["signals"] and came >= asked["signals"]:
            break
        root = place / f"{number}"
        say({"at": number})
        faulthandler.dump_traceback_later(HANGING_S, exit=True)
        world = interrupted(what, root, interrupts, partial(_go_on, say))
        faulthandler.cancel_dump_traceback_later()
        places = [each.place for each in interrupts if each.was_interrupted]
        came += len(places)
        if places:
            say({"places": places, "problems": world.problems})
        if asked["keep"] and (world.problems or asked["keep_all"]):
            kept = Path(asked["keep"]) / f"{asked['name']} {number}".replace(" ", "-")
            shutil.rmtree(kept, ignore_errors=True)  # a short call may be asked for the same line twice
            shutil.copytree(root, kept)
        shutil.rmtree(root)
    say({})


def _go_on(say: Callable[[dict[str, Any]], object], answer: dict[str, Any]) -> None:
    """Say it, and give the next interrupt of the world the whole time again."""
    say(answer)
    faulthandler.dump_traceback_later(HANGING_S, exit=True)


def _lines(asked: dict[str, Any], count: int) -> Iterator[tuple[int, list[Interrupt]]]:
    first = asked["start"] % min(asked["step"], count)  # of a short call one line at least
    for number in range(first, count, asked["step"]):
        if number >= asked["from"]:
            yield number, [LineTracer(number)]


def _moments(asked: dict[str, Any], what: Interrupted, place: Path) -> Iterator[tuple[int, list[Interrupt]]]:
    """Signals for one world after the other, some for each whose call can be made again; not all come in time."""
    duration_s = _duration_s(what, place)
    count = SIGNALS_OF_WORLD if what.warm_count else 1
    for number in range(asked["from"], asked["signals"] * TRIES_PER_SIGNAL):
        dice = random.Random(f"{asked['start']} {number}")
        yield number, [Alarm(max(dice.random() * duration_s, 1e-6)) for _ in range(count)]


def _duration_s(what: Interrupted, place: Path) -> float:
    """How long the call takes."""
    timer = _Timer()
    interrupted(what, place / "timed", [timer])
    shutil.rmtree(place / "timed")
    return timer.seconds * 1.1 + 10e-6


class _Timer(Interrupt):
    """Never comes, and takes the time of the call."""

    seconds = 0.0

    @contextmanager
    def _armed(self) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        self.seconds = time.perf_counter() - began_s


# -- in the other ---------------------------------------------------------------------------------------------------


class Runs:
    """The process that interrupts; another one when it hangs."""

    def __init__(self, *, keep: str = "", keep_all: bool = False) -> None:
        """`keep`: a directory for those that something is wrong in, or for all."""
        self._keep, self._keep_all = keep, keep_all
        self._process: subprocess.Popen[str] | None = None
        self._stacks: IO[str] | None = None

    def run(self, name: str, *, step: int = 1, start: int = 0, signals: int = 0) -> Outcome:
        """Interrupt a call before every `step`th line from `start` on, or by so many signals."""
        outcome, at = Outcome(), 0
        asked = {"name": name, "step": step, "start": start, "signals": signals, "is_dry": False}
        asked |= {"keep": self._keep, "keep_all": self._keep_all}
        while at >= 0:
            at = self._ask({**asked, "from": at, "came": outcome.count}, outcome)
        return outcome

    def try_out(self, name: str) -> list[str]:
        """Make a call without an interrupt; what is wrong afterwards."""
        outcome = Outcome()
        self._ask({"name": name, "is_dry": True, "from": -1}, outcome)
        return [problem for problems in outcome.wrong.values() for problem in problems]

    def _ask(self, asked: dict[str, Any], outcome: Outcome) -> int:
        """Returns where to go on if the process ended on the way, else -1."""
        process, at, has_begun, place = self._started(), asked["from"], False, ""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if not answer:
                return -1
            at, place, has_begun = answer.get("at", at), answer.get("line", place), True
            if "places" in answer:
                outcome.count += len(answer["places"])
                if answer["problems"]:
                    outcome.wrong.setdefault(" | ".join(answer["places"]), []).extend(answer["problems"])
        end = self._end()
        if not has_begun or (at < 0 and not asked["is_dry"]):
            raise RuntimeError(f"{asked['name']} cannot be done:\n{end}")
        outcome.count += 1
        outcome.wrong.setdefault(place, []).append(f"hangs, or ends the process:\n{end}")
        return at + 1

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._stacks = tempfile.TemporaryFile("w+")  # noqa: SIM115 - until the process ends
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from tests.crash.interrupt_runs import _work; _work()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stacks,
                text=True,
            )
        return self._process

    def _end(self) -> str:
        """Let the process end; what it said last."""
        if self._process is None or self._stacks is None:
            return ""
        self._process.communicate()
        self._process = None
        with self._stacks as stacks:
            stacks.seek(0)
            said = stacks.read()
        calls = [line.strip() for line in said.rpartition("Thread ")[2].splitlines()]
        return "\n".join(calls[:STACK_LINES])

    def close(self) -> None:
        """Let the process end."""
        self._end()


def _alike(problems: list[str]) -> Iterator[str]:
    """The first of those that differ in numbers only, and how many there are."""
    counts = Counter(re.sub(r"\d+", "0", problem) for problem in problems)
    for problem in problems:
        count = counts.pop(re.sub(r"\d+", "0", problem), 0)
        if count:
            yield problem if count == 1 else f"{problem} ({count} like it)"


def _main(names: list[str]) -> int:
    part, seed = os.environ.get("LOGSTORE_INTERRUPT_CALL", ""), os.environ.get("LOGSTORE_INTERRUPT_SEED")
    step, signals = (
        int(os.environ.get(f"LOGSTORE_INTERRUPT_{name}", least)) for name, least in (("STEP", 1), ("SIGNALS", 0))
    )
    start = int(seed) if seed else random.randrange(1000)
    chosen = names or [name for name in CALLS if part in name]
    print(f"LOGSTORE_INTERRUPT_SEED={start}", flush=True)
    runs, totals = Runs(keep=os.environ.get("LOGSTORE_INTERRUPT_KEEP", "")), Counter[str]()
    for name in chosen:
        outcome = runs.run(name, step=step, start=start, signals=-(-signals // len(chosen)))
        print(
            f"{name:40} {outcome.count:6} interrupts, after {len(outcome.wrong):4} lines of them something wrong",
            flush=True,
        )
        for place, problems in outcome.wrong.items():
            print(f"    {place}", *_alike(problems), sep="\n        ", flush=True)
        totals += Counter(interrupts=outcome.count, wrong=len(outcome.wrong))
    runs.close()
    print(f"{totals['interrupts']} interrupts, {totals['wrong']} lines with something wrong")
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
