"""Appends to Kafka's own log and to ours, batch by batch: answers, refusals and every file beside the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from logstore.errors import LogstoreError
from logstore.folds.producer_update import AppendOrigin
from logstore.log.partition_log import PartitionLog
from tests.kafka.judge import Asked
from tests.properties.fold_stories import marker, stories
from tests.recovery.cases import Case
from tests.recovery.comparison import Answer, answer, disagreement
from tests.support.dice import Dice
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec
from tests.support.judges import told
from tests.support.logs import append_batch, open_partition_log
from tests.support.oracle import Oracle
from tests.support.sampling import case_count
from tests.support.snapshots import comparable, sorted_snapshot

pytestmark = pytest.mark.kafka

STORY_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=25, whole=75)
INTERVAL = 200
NOW = 1000
CONFIG = {"index.interval.bytes": str(INTERVAL), "segment.index.bytes": "65536"}
SIDE_FILES = ("index", "timeindex", "txnindex", "snapshot", "leader-epoch-checkpoint")


@dataclass(frozen=True)
class Step:
    """One append; `begin`: None, or whether the producer whose verification begins is one of version 2."""

    batch: Batch
    origin: AppendOrigin
    version: int
    begin: bool | None

    def to_json(self) -> dict[str, Any]:
        data = replace(self.batch, base_offset=0).to_bytes().hex()
        return {"origin": self.origin.name, "version": self.version, "begin": self.begin, "batch": data}


@dataclass(frozen=True)
class Workload:
    steps: list[Step]
    verify: bool

    def to_json(self) -> dict[str, Any]:
        steps = [step.to_json() for step in self.steps]
        return {"interval": INTERVAL, "verify": self.verify, "steps": steps}


def step_of(batch: Batch, dice: Dice) -> Step:
    """A batch of a story as a client or a coordinator sends it: its timestamps are those of its records."""
    time = batch.max_timestamp
    is_control = bool(batch.flags & CONTROL)
    records = [replace(record, timestamp_delta=0) for record in batch.records]
    sent = replace(batch, records=records, base_timestamp=time, max_timestamp=time, codec=0)
    origin = AppendOrigin.COORDINATOR if is_control or dice.chance(10) else AppendOrigin.CLIENT
    begin = dice.choose((None, None, False, True)) if batch.flags & TRANSACTIONAL and not is_control else None
    return Step(sent, origin, dice.choose((0, 1, 2)) if is_control else -1, begin)


def collected(count: int) -> list[list[Batch]]:
    """Stories, the same every time."""
    found: list[list[Batch]] = []

    @settings(max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(stories(size_max=60) | stories(size_max=60, is_honest=True))
    def collect(batches: list[Batch]) -> None:
        found.append(batches)

    collect()
    return found


def workloads(count: int) -> Iterator[Workload]:
    """Stories whose batches are sent, some of them twice."""
    for number, batches in enumerate(collected(count)):
        dice = Dice(f"appends {number}")
        sent = [b for batch in batches if batch.records for b in [batch] * dice.choose((1, 1, 1, 2))]
        sent = [replace(batch, base_sequence=-1 if batch.flags & CONTROL else batch.base_sequence) for batch in sent]
        yield Workload([step_of(batch, dice) for batch in sent], verify=dice.chance(40))


def answer_to(log: PartitionLog, step: Step) -> dict[str, Any]:
    batch, answered = replace(step.batch, base_offset=0), dict[str, Any]()
    try:
        guard = None
        if step.begin is not None:
            guard = log.begin_verification(
                batch.producer_id,
                sequence=batch.base_sequence,
                producer_epoch=batch.producer_epoch,
                supports_epoch_bump=step.begin,
            )
        info = append_batch(log, batch, origin=step.origin, transaction_version=step.version, guard=guard)
        answered |= {"first": info.first_offset, "last": info.last_offset, "time": info.log_append_time}
    except LogstoreError as error:
        answered["error"] = told(error)
    return answered | {"unstable": log.first_unstable_offset}


def test_appends_are_answered_and_kept_as_by_the_real_log(oracle: Oracle, tmp_path: Path) -> None:
    asked = [*workloads(STORY_COUNT), of_many_producers(), fenced()]
    real = oracle.answers("Appends", questions=[workload.to_json() for workload in asked], cwd=tmp_path)
    kinds = set()
    for number, (workload, expected) in enumerate(zip(asked, real, strict=True)):
        directory = tmp_path / str(number) / "t-0"
        directory.parent.mkdir()
        log = open_partition_log(directory, CONFIG, time_ms=NOW, requires_verification=workload.verify)
        for step, said in zip(workload.steps, expected["answers"], strict=True):
            is_repeated = "first" in said and said["first"] < log.log_end_offset
            assert answer_to(log, step) == said, step
            kinds.add(said.get("error", "duplicate: " if is_repeated else "append: ").partition(": ")[0])
        log.close()
        theirs = {suffix: bytes.fromhex(content) for suffix, content in expected["files"].items()}
        theirs["snapshot"] = sorted_snapshot(theirs.get("snapshot", b""))
        ours = {re.sub(r"^[0-9]*\.", "", path.name): comparable(path) for path in directory.iterdir()}
        for suffix in (*SIDE_FILES, "log"):
            assert ours.get(suffix, b"") == theirs.get(suffix, b""), suffix
    assert {kind.rpartition(".")[2] for kind in kinds} == {
        "append",
        "duplicate",
        "OutOfOrderSequenceException",
        "InvalidProducerEpochException",
        "InvalidTxnStateException",
        "TransactionCoordinatorFencedException",
    }


@pytest.mark.slow
def test_recovered_and_rebuilt_logs_have_the_real_files_beside_them(
    asked: Callable[..., Asked], tmp_path: Path
) -> None:
    """Two segments, of whatever a replica may hold: recovered from nothing but their bytes, then opened again without
    the last snapshot, which is rebuilt from the one before."""
    check, stories_of = asked("LogCheck"), collected(STORY_COUNT)
    refused_count = rebuilt_count = 0
    for number, story in enumerate(stories_of):
        case = Case(number, "", "t-0", now=NOW, config=CONFIG)
        directories = [laid_out(tmp_path / who / case.directory, number, story) for who in ("theirs", "ours")]
        expected = opened(check, case, *directories)
        refused_count += "error" in expected
        snapshots = sorted(name for name in expected.get("files", ()) if name.endswith(".snapshot"))
        if len(snapshots) == 2:
            for directory in directories:
                (directory / snapshots[-1]).unlink()
            assert "error" not in opened(check, replace(case, clean=True), *directories)
            rebuilt_count += 1
    assert 0 < refused_count < len(stories_of)
    assert rebuilt_count > 10


def laid_out(directory: Path, number: int, batches: list[Batch]) -> Path:
    """The story cut in two somewhere, each part a `.log`, the second of which begins where the first ends."""
    cut = Dice(f"cut {number}").between(0, len(batches))
    base_offset = batches[0].base_offset
    directory.mkdir(parents=True)
    for part in (part for part in (batches[:cut], batches[cut:]) if part):
        (directory / f"{base_offset:020d}.log").write_bytes(b"".join(batch.to_bytes() for batch in part))
        base_offset = part[-1].base_offset + part[-1].last_offset_delta + 1
    return directory


def opened(check: Asked, case: Case, theirs: Path, ours: Path) -> Answer:
    """Open both, the real log one and ours the other, to the same words, state and files; what the real log says."""
    expected: Answer = check.ask({**case.question(), "directory": str(theirs)})
    found = answer(case, ours)
    assert found.get("error") == expected.get("error")
    assert disagreement(expected, found) == ""
    return expected


def of_many_producers() -> Workload:
    """Producers whose ids come from several blocks of a coordinator, in no order."""
    dice = Dice("many producers")
    ids = list(dict.fromkeys(1000 * dice.below(60) + dice.below(8) for _ in range(300)))
    batches = [Batch(0, [Rec()], max_timestamp=5, producer_id=pid, producer_epoch=0, base_sequence=0) for pid in ids]
    return Workload([step_of(batch, Dice("")) for batch in batches], verify=False)


def fenced() -> Workload:
    """One transactional producer, its coordinators, and those that they have replaced."""

    same = {"producer_id": 7, "base_timestamp": 9, "max_timestamp": 9}

    def data(epoch: int, sequence: int, flags: int = TRANSACTIONAL) -> Step:
        batch = Batch(0, [Rec()], flags=flags, base_sequence=sequence, producer_epoch=epoch, **same)
        return Step(batch, AppendOrigin.CLIENT, -1, None)

    def end(epoch: int, coordinator_epoch: int, version: int) -> Step:
        batch = marker(0, is_abort=True, coordinator_epoch=coordinator_epoch, producer_epoch=epoch, **same)
        return Step(batch, AppendOrigin.COORDINATOR, version, None)

    steps = [data(0, 0), end(0, 5, 0), data(0, 1), end(0, 4, 0), end(0, 5, 2), end(1, 5, 2), end(1, 5, 2)]
    steps += [data(0, 2), data(1, 5), data(1, 0), data(1, 1, flags=0), end(0, 5, 1), end(1, 6, 1)]
    steps += [data(32767, 0), end(32767, 6, 2), end(32767, 6, 2), end(32766, 6, 2), end(32766, 7, 0), data(32767, 0)]
    return Workload(steps, verify=False)
