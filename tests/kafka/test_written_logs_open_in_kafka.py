"""Logs that ours wrote, closed or killed, opened by the real UnifiedLog: not a warning, nothing repaired, the same log.

What a log knew last is not always what it knows when it is opened: producers expire, stray snapshots are removed, the
end of a transaction needs no replicas any more, a preallocated file that nobody closed is cut. So whatever is told of
a log of ours must be told, in the same words, of the one that Kafka itself wrote of the same workload.

Of one that was closed there may be no warning at all.

`LOGSTORE_ORACLE_CASES` says how many, `LOGSTORE_ORACLE_SEED` makes a run again
(`tests.support.sampling`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.errors import LogstoreError
from logstore.log.load.loader import LoadSettings
from tests.kafka.judge import Asked, Judge
from tests.kafka.workload_log import WorkloadLog, described
from tests.kafka.workloads import workload
from tests.recovery.comparison import Answer, UnsyncedSeam, files
from tests.support.encoder import Batch, Rec
from tests.support.judges import judged_config, told
from tests.support.logs import open_log
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=15, whole=60)
SEED = seed_of("ORACLE")
KILLED_EVERY = 3  # cases
OUTLIVING = (
    "topicId",
    "logStartOffset",
    "logEndOffset",
    "lastStableOffset",
    "highWatermark",
    "leaderEpochs",
    "producers",
)
OUTLIVING_OF_SEGMENTS = ("base", "bytes", "next", "abortedTxns")  # indexes get their last entries on close


class Openings:
    """Opens what was written, by the real log and by ours.

    Attributes:
        spotless_count: logs of which there was nothing to tell.
        told_alike_count: logs of which the same was told as of Kafka's own.
    """

    def __init__(self, judge: Judge, check: Callable[[dict[str, Any]], Any]) -> None:
        self.judge = judge
        self.check = check
        self.spotless_count = 0
        self.told_alike_count = 0

    def problems(self, work: dict[str, Any], place: Path) -> list[str]:
        """What is wrong with our log of a workload, which is written below `place`."""
        ours = place / "ours" / "t-0"
        ours.parent.mkdir(parents=True)
        end = WorkloadLog(work, ours).run()["end"]
        if end is None:
            return []  # it did not open on the way, and neither does Kafka's, see test_append_against_kafka
        question = how_opened(work, end, ours)
        expected = open_again(question, place / "again" / "t-0")
        answer, told = self._opened(question, end)
        problems = list(differences("ours opens it otherwise", expected["state"], answer["state"]))
        problems += differences("ours leaves other files", expected["files"], answer["files"])
        if work["isClosedAfter"]:
            problems += answer["warnings"]
        if told:
            told_of_kafkas = self._told_of_kafkas(work, place / "theirs" / "t-0")
            problems += [f"only of ours: {line}" for line in told if line not in told_of_kafkas]
            problems += [f"only of Kafka's: {line}" for line in told_of_kafkas if line not in told]
            self.told_alike_count += told == told_of_kafkas
        self.spotless_count += not told
        return problems

    def _told_of_kafkas(self, work: dict[str, Any], directory: Path) -> list[str]:
        directory.parent.mkdir()
        end = self.judge.real(work, directory)["end"]
        return self._opened(how_opened(work, end, directory), end)[1]

    def _opened(self, question: dict[str, Any], end: Answer) -> tuple[Answer, list[str]]:
        """LogCheck's answer, and what of it is other than the log that wrote had it."""
        directory = Path(question["directory"])
        before = files(directory)
        answer = self.check(question)
        told = [warning.replace(str(directory.parent), "@PARENT@") for warning in answer["warnings"]]
        if "error" in answer:
            return refused(answer["error"]) | answer, [*told, answer["error"]]
        told += differences("the log that wrote", outliving(end), outliving(answer["state"]))
        if question["clean"]:
            told += differences("a file", before, answer["files"])
        return answer, told


def how_opened(work: dict[str, Any], end: Answer, directory: Path) -> dict[str, Any]:
    """The question to LogCheck: as a broker would open it next, by its checkpoints."""
    is_closed = work["isClosedAfter"]
    return {
        "directory": str(directory),
        "clean": is_closed,
        "logStart": end["logStartOffset"],
        "recoveryPoint": end["logEndOffset" if is_closed else "recoveryPoint"],
        "now": work["now"] + sum(step["plus"] for step in work["steps"] if step["op"] == "time"),
        "config": work["config"],
    }


def open_again(question: dict[str, Any], copy: Path) -> Answer:
    """What ours makes of a copy of the directory, in the form of LogCheck's answers."""
    shutil.copytree(question["directory"], copy)
    config = judged_config(question["config"])
    settings = LoadSettings(question["clean"], question["recoveryPoint"], question["logStart"], question["now"], config)
    try:
        log = open_log(copy, settings, seam=UnsyncedSeam(), now_ms=lambda: question["now"])
    except LogstoreError as error:
        return refused(told(error).replace(str(copy), "@DIR@"))
    state = described(log)
    log.close()
    return {"state": state, "files": files(copy)}


def refused(error: str) -> Answer:
    """The answer when a log does not open: what that leaves is only to be looked at."""
    return {"state": {"error": error}, "files": {}}


def outliving(state: Answer) -> Answer:
    """What of a state is to outlive the process, as one level of names."""
    found = {name: state[name] for name in OUTLIVING}
    for segment in state["segments"]:
        found |= {f"{name} of segment {segment['base']}": segment[name] for name in OUTLIVING_OF_SEGMENTS}
    return found


def differences(what: str, ours: Answer, theirs: Answer) -> Iterator[str]:
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            yield f"{what}: {name}: {ours.get(name)}, opened by Kafka {theirs.get(name)}"


@pytest.fixture
def openings(asked: Callable[..., Asked], tmp_path: Path) -> Openings:
    return Openings(Judge(asked("Workloads"), tmp_path), asked("LogCheck", "--warnings").ask)


def test_the_real_log_opens_what_ours_wrote_and_finds_nothing_wrong(openings: Openings, tmp_path: Path) -> None:
    for number in range(CASE_COUNT):
        work = {**workload(f"{SEED} written {number}"), "isClosedAfter": number % KILLED_EVERY != 0}
        place = tmp_path / str(number)
        assert openings.problems(work, place) == [], f"workload {number} of LOGSTORE_ORACLE_SEED={SEED}"
        shutil.rmtree(place)
    assert openings.spotless_count > 0.4 * CASE_COUNT
    assert openings.spotless_count + openings.told_alike_count > 0.9 * CASE_COUNT


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_damaged_log_is_told(is_closed: bool, openings: Openings, tmp_path: Path) -> None:
    """Otherwise the test above would tell nothing: bytes are lost between the log that wrote and the one that opens."""
    batches = Batch(0, [Rec(b"k", b"v" * 30)]).to_bytes().hex()
    append = {"op": "append", "batches": batches, "epoch": 0, "origin": "CLIENT", "version": -1, "begin": None}
    work = {**workload("any"), "config": {}, "steps": [append, append], "isClosedAfter": is_closed}
    assert openings.problems(work, tmp_path / "whole") == []
    assert openings.spotless_count == 1
    ask = openings.check
    openings.check = lambda question: ask(question) if "theirs" in question["directory"] else ask(torn(question))
    told = "\n".join(openings.problems(work, tmp_path / "torn"))
    assert "ours opens it otherwise: logEndOffset: 2, opened by Kafka 1" in told
    assert "the log that wrote: bytes of segment 0" in told
    assert ("a file: 00000000000000000000.log" in told) == is_closed
    assert ("Corruption found in segment 0, truncating to offset 1" in told) == (not is_closed)


def torn(question: dict[str, Any]) -> dict[str, Any]:
    """The question, when the log it asks about has lost its last bytes."""
    path = Path(question["directory"], f"{0:020}.log")
    path.write_bytes(path.read_bytes()[:-5])
    return question
