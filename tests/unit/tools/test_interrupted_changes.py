"""A command that is ended before or behind any call that changes files leaves nothing half-written.

A copy or a page is whole or not there, and what is mended in place ends, when the command runs again, as if it had
never been ended.
"""

from __future__ import annotations

import itertools
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from logstore.audit.directory_verify import verify_directory
from logstore.replay.metadata_state import read_metadata
from tests.support.dice import Dice
from tests.support.golden import Golden
from tests.support.sampling import sampled, seed_of
from tests.support.signalled_commands import Ended, SignalledCommands

SIGNALS = ((signal.SIGINT, 130, "logstore: interrupted\n"), (signal.SIGTERM, 143, "logstore: terminated\n"))
METADATA = "__cluster_metadata-0"
BASE = "000000000000000000{}"
MADE_FROM_LOG = {".index", ".timeindex", ".txnindex", ".snapshot"}
PAGE, PROPERTIES = "report.html", "server.properties"
DRAWN_COUNT = 1
LONG_COUNT = 40  # of the moments, of which a recovery of a directory has some hundreds

Files = dict[str, bytes | None]


def damaged(data: Path) -> None:
    """A directory that a broker did not close: a bad batch before others, a torn tail, side files gone or wrong."""
    rolled, orders = data / "rolled-0", data / "orders-0" / f"{BASE.format('00')}.log"
    content = bytearray((rolled / f"{BASE.format(33)}.log").read_bytes())
    content[-200] ^= 4
    (rolled / f"{BASE.format(33)}.log").write_bytes(content)
    (rolled / f"{BASE.format(16)}.index").unlink()
    (rolled / f"{BASE.format(49)}.snapshot").write_bytes(b"no snapshot")
    (rolled / f"{BASE.format('07')}.log.deleted").write_bytes(b"of another time")
    (rolled / f"{BASE.format(90)}.log.cleaned").write_bytes(b"of a cleaning that was not finished")
    orders.write_bytes(orders.read_bytes()[:-10])
    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint").unlink()


def moved(data: Path) -> None:
    """The same without the directory of a partition, and with one that is another topic's."""
    damaged(data)
    shutil.rmtree(data / "orders-1")
    metadata = data / "payments-0" / "partition.metadata"
    text, known, topic_id = metadata.read_text().partition("topic_id: ")
    metadata.write_text(f"{text}{known}AAAA{topic_id[4:]}")


def of_nobody(data: Path) -> None:
    """The same without owner and metadata log, and a topic whose id nobody knows."""
    damaged(data)
    for name in ("meta.properties", "bootstrap.checkpoint", "payments-0/partition.metadata"):
        (data / name).unlink()
    shutil.rmtree(data / METADATA)


@dataclass(frozen=True)
class Case:
    """A command, and the directory that it has work in.

    Attributes:
        output: the file that it writes whole.
        mends: it works in place.
    """

    words: str
    lay_out: Callable[[Path], None] = damaged
    output: str | None = None
    mends: bool = False


CASES = {
    "salvage": Case("salvage data/rolled-0 copies"),
    "repair": Case("repair data/orders-0 copies"),
    "sample": Case("sample data/rolled-0 copies --redact"),
    "report": Case(f"report data --output {PAGE}", output=PAGE),
    "new report": Case("report data --output another.html", output="another.html"),
    "recover": Case("recover data/rolled-0 --yes", mends=True),
    "import": Case("import data --yes", moved, mends=True),
    "promote": Case(f"promote data --yes --out {PROPERTIES}", of_nobody, PROPERTIES, mends=True),
}


class Rehearsal:
    """A command that was run without a signal, and can be run again from the same files."""

    def __init__(self, case: Case, golden: Golden, commands: SignalledCommands, place: Path) -> None:
        self.case, self._commands = case, commands
        self._start, self.root = place / "start", place / "work" / "all"
        shutil.copytree(golden("transactions"), self._start / "data")
        (self._start / "copies").mkdir()
        (self._start / PAGE).write_text("<!DOCTYPE html>an old page")
        case.lay_out(self._start / "data")
        self.before = contents(self._start)
        self.whole = self.run()
        self.after, self.state = contents(self.root), self.mended()

    def run(self, number: int | None = None, change: int | None = None) -> Ended:
        """Run it in a fresh copy of the directory."""
        shutil.rmtree(self.root.parent, ignore_errors=True)
        shutil.copytree(self._start, self.root)
        return self.again(number, change)

    def again(self, number: int | None = None, change: int | None = None) -> Ended:
        """Run it where it was run before."""
        return self._commands.run(self.case.words.split(), self.root, number, change=change)

    def mended(self) -> Any:
        """What must not depend on interruptions.

        A recovery alone depends on nothing else. A store that opens goes on with a log that it has begun: its metadata
        log may have more epochs, and what recovery makes from the records that another run has appended, as the index
        of a marker, lies elsewhere, and is right if verify finds nothing.
        """
        data, files = self.root / "data", contents(self.root)
        if self.case.lay_out is damaged:
            return files
        logs = {name: content for name, content in files.items() if Path(name).suffix not in MADE_FROM_LOG}
        findings = {(one.rule, one.place) for one in verify_directory(str(data)).findings}
        if self.case.lay_out is moved:
            return logs, findings
        image = read_metadata(str(data / METADATA)).image
        known = image.topics, image.configs, image.features, image.next_producer_id, set(image.brokers)
        is_clean = logs.pop("data/.kafka_cleanshutdown", None) is not None
        rest = {name: content for name, content in logs.items() if METADATA not in name}
        return rest, findings, known, is_clean


def contents(root: Path) -> Files:
    """All files; checkpoints, which threads fill, with their lines sorted."""
    return {str(path.relative_to(root)): content(path) for path in sorted(root.rglob("*"))}


def content(path: Path) -> bytes | None:
    if path.is_dir():
        return None
    data = path.read_bytes()
    return b"".join(sorted(data.splitlines(keepends=True))) if path.name.endswith("offset-checkpoint") else data


@pytest.fixture(scope="module")
def rehearsed(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Rehearsal]]:
    with SignalledCommands() as commands:
        yield cache(lambda name: Rehearsal(CASES[name], golden, commands, tmp_path_factory.mktemp("signalled")))


def wrong(command: Rehearsal, number: int, code: int, line: str, change: int) -> Iterator[str]:
    """Send the signal there, and yield what is wrong then."""
    ended = command.run(number, change)
    if (ended.code, ended.stdout, ended.stderr) != (code, "", line):
        yield f"it ends with {ended[:3]}"
    left = contents(command.root)
    output = command.case.output
    if output is not None:
        if left.pop(output, None) not in (command.before.get(output), command.after[output]):
            yield f"{output} is neither the old one nor the new one"
        if f"{output}.tmp" in left:
            yield "a temporary file is left"
    if not command.case.mends:
        before = {name: data for name, data in command.before.items() if name != output}
        yield from () if left == before else [f"it leaves {differences(before, left)}"]
        return
    if output is not None:
        (command.root / output).unlink(missing_ok=True)
    again = command.again()
    if (again.code, again.stderr) != (command.whole.code, command.whole.stderr):
        yield f"run again, it ends with {again[:3]}"
    if command.mended() != command.state:
        yield f"run again, it leaves {differences(command.after, contents(command.root))}"


def differences(before: Files, after: Files) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name, b"-") != after.get(name, b"-"))


def check(command: Rehearsal, moments: Iterable[tuple[int, tuple[int, int, str]]]) -> None:
    found = []
    for moment, (number, code, line) in moments:
        where = f"{'behind' if moment % 2 else 'before'} {moment // 2} {command.whole.changes[moment // 2]}"
        found += [f"{line.split()[1]} {where}: {one}" for one in wrong(command, number, code, line, moment)]
    assert found == []


@pytest.mark.parametrize("name", sampled(CASES, list(CASES)[::2], pytest.mark.slow))
def test_a_command_that_is_ended_where_it_changes_files_leaves_nothing_half_written(
    name: str, rehearsed: Callable[[str], Rehearsal]
) -> None:
    command, dice = rehearsed(name), Dice(f"{seed_of('INTERRUPT')} {name}")
    last = 2 * len(command.whole.changes) - 1
    drawn = {dice.below(last) for _ in range(DRAWN_COUNT)}
    moments = sorted({1, *drawn, last})
    check(command, zip(moments, itertools.cycle(SIGNALS)))


@pytest.mark.long
@pytest.mark.parametrize("which", SIGNALS, ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("name", CASES)
def test_a_command_that_is_ended_anywhere_leaves_nothing_half_written(
    name: str, which: tuple[int, int, str], rehearsed: Callable[[str], Rehearsal]
) -> None:
    command, dice = rehearsed(name), Dice(f"{seed_of('INTERRUPT')} {name} {which[0]}")
    moments = list(range(2 * len(command.whole.changes)))
    while len(moments) > LONG_COUNT:
        moments.pop(dice.below(len(moments)))
    check(command, ((moment, which) for moment in moments))


@pytest.mark.parametrize("name", CASES)
def test_a_command_has_work_and_changes_files_through_the_seam_only(
    name: str, rehearsed: Callable[[str], Rehearsal]
) -> None:
    command = rehearsed(name)
    assert command.whole.code in (0, 1)
    assert command.after != command.before
    assert set(command.whole.others) <= {"open .lock"}
