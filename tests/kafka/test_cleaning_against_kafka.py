"""Logs cleaned by the real Cleaner and by ours, at the same times: what is left must be the same files.

`LOGSTORE_ORACLE_CASES` is the number of logs, `LOGSTORE_ORACLE_SEED` makes a run again.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore.codec import decompress
from logstore.columns.batch_table import scan
from logstore.config.topic import LogConfig
from logstore.errors import LogstoreError
from logstore.layout.batch import CODEC_MASK, HEADER_SIZE
from logstore.model import Codec
from tests.crash.lossy_disk import LossyDisk
from tests.kafka.cleaning_cases import (
    NOW,
    CleaningCase,
    Entry,
    Step,
    cleaning_cases,
    example_case,
    lay_out,
    legacy_cases,
    opened,
)
from tests.kafka.judge import Asked
from tests.kafka.workload_log import chosen_as_json
from tests.naive import legacy
from tests.recovery.cases import Case
from tests.recovery.comparison import answer, disagreement
from tests.support.dice import Dice
from tests.support.encoder import DELETE_HORIZON, GZIP, LOG_APPEND_TIME, NONE, Batch, Rec
from tests.support.judges import judged, told
from tests.support.sampling import case_count, seed_of
from tests.support.snapshots import comparable

pytestmark = [pytest.mark.kafka, pytest.mark.by_release(is_slow=True)]

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=20, whole=80)
SEED = seed_of("ORACLE")
RECORD_LIMIT = "max.decompressed.message.bytes"
Files = dict[str, tuple[int | None, bytes]]


class Twins:
    """A case laid out twice: one directory for Kafka, one for us; and the rounds that they go through."""

    def __init__(self, case: CleaningCase, place: Path) -> None:
        self.case = case
        self.ours, self.theirs = place / "ours" / "t-0", place / "theirs" / "t-0"
        self.config: LogConfig = lay_out(case, self.ours)
        shutil.copytree(self.ours, self.theirs)
        self.checkpoint: int | None = None
        self.is_done = False

    def question(self, number: int) -> dict[str, Any]:
        step = self.case.steps[number]
        return {
            "op": "clean",
            "directory": str(self.theirs),
            "now": step.now_ms,
            "logStart": 0,
            "highWatermark": 2**62,
            "config": self.case.config,
            "checkpoint": self.checkpoint,
            "dedupe": step.dedupe_size,
        }

    def answer(self, number: int) -> dict[str, Any]:
        """What we choose and do in that round, said as `Cleans.java` says it."""
        step = self.case.steps[number]
        log = opened(self.ours, self.config, step.now_ms, was_clean=True)
        chosen = log.cleanable(self.checkpoint, step.now_ms)
        answer = chosen_as_json(chosen)
        try:
            if chosen.cleanable_size:
                cleaned = log.clean(chosen, step.now_ms, buffer_size=step.dedupe_size)
                answer["end"] = self.checkpoint = cleaned
        except LogstoreError as error:
            answer["error"] = told(error)
            self.is_done = True
        answer["logStart"] = log.log_start_offset
        log.remove_deleted_files(step.now_ms)
        log.close()
        return answer


def files(directory: Path) -> Files:
    """Of each file the content; and of a `.log`, in ms, when it was written to last."""
    return {path.name: (_modified_ms(path), comparable(path)) for path in directory.iterdir()}


def _modified_ms(path: Path) -> int | None:
    return path.stat().st_mtime_ns // 1_000_000 if path.suffix == ".log" else None


def meanings(directory: Path) -> dict[str, Any]:
    """As `files`, with the records of a `.log` decompressed, and without what follows from how well they were."""
    return {
        name: [modified_ms, *_batches(content)] if name.endswith(".log") else content
        for name, (modified_ms, content) in files(directory).items()
        if not name.endswith((".index", ".timeindex"))
    }


def _batches(content: bytes) -> list[dict[str, Any]]:
    data = np.frombuffer(content, np.uint8)
    table = scan(data, check_crc=True)
    found = []
    for row in range(len(table)):
        header = table.row(row)
        if header["magic"] < 2:
            found.append(header)  # not cleaned yet
            continue
        end = header["position"] + header["size"]
        codec = Codec(header["attributes"] & CODEC_MASK)
        stream = decompress(codec, content[header["position"] + HEADER_SIZE : end], 2, 1 << 20)
        records = stream.data.tobytes() if header["record_count"] else b""
        found.append({**header, "position": 0, "size": 0, "crc": 0, "records": records})
    return found


@pytest.fixture
def kafka(asked: Callable[..., Asked]) -> Asked:
    return asked("Cleans")


def compare(
    kafka: Asked, place: Path, cases: list[CleaningCase], *, is_plain: bool = True, is_whole: bool = False
) -> list[dict[str, Any]]:
    """Run all cases, a round of each in turn, which cleans the log anew if `is_whole`; Kafka's answers."""
    twins = [Twins(case, place / str(case.number)) for case in cases]
    answers = []
    read = files if is_plain else meanings
    for number in range(max(len(case.steps) for case in cases)):
        asked = [twin for twin in twins if number < len(twin.case.steps) and not twin.is_done]
        for twin in asked:
            twin.checkpoint = None if is_whole else twin.checkpoint
            expected = kafka.ask(twin.question(number))
            where = f"seed {SEED} case {twin.case.number} round {number}"
            answer = twin.answer(number)
            if not is_plain:
                answer, expected = _without_sizes(answer), _without_sizes(expected)
            assert answer == expected, where
            assert read(twin.ours) == read(twin.theirs), where
            answers.append(expected)
    return answers


def _without_sizes(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("cleanBytes", "cleanableBytes", "isWorthIt")}


def test_plain_logs_are_cleaned_to_the_same_bytes(kafka: Asked, tmp_path: Path) -> None:
    answers = compare(kafka, tmp_path, list(cleaning_cases(SEED, CASE_COUNT)))
    assert any("end" in answer and answer["end"] < answer["firstUncleanable"] for answer in answers), "a full map"
    assert any(answer["isWorthIt"] for answer in answers)
    assert any(answer["firstDirty"] > 0 for answer in answers)


def test_compressed_logs_are_cleaned_to_the_same_records(kafka: Asked, tmp_path: Path) -> None:
    cases = list(cleaning_cases(f"{SEED} compressed", CASE_COUNT // 2, codecs=(0, 1, 2, 3, 4)))
    for case in cases:
        case.config |= {"internal.segment.bytes": "1000000", "segment.index.bytes": "65536"}
    answers = compare(kafka, tmp_path, cases, is_plain=False)
    assert any("end" in answer for answer in answers)


def test_old_magics_are_cleaned_to_the_same_records(kafka: Asked, tmp_path: Path) -> None:
    cases = list(legacy_cases(f"{SEED} legacy", CASE_COUNT // 2))
    for case in cases:
        case.config |= {"internal.segment.bytes": "1000000", "segment.index.bytes": "65536"}
    answers = compare(kafka, tmp_path, cases, is_plain=False)
    assert any("end" in answer for answer in answers)


def odd_cases() -> Iterator[CleaningCase]:
    """Offsets that no two segments can share, tombstones from the ends of time, and wrappers of KAFKA-4298."""
    far, times = 2**31, {"base_timestamp": NOW, "max_timestamp": NOW}
    config = {"cleanup.policy": "compact", "delete.retention.ms": "1000", "file.delete.delay.ms": "0"}
    steps = [Step(NOW + 2000 * number, 4096) for number in range(3)]
    same = [Rec(b"k", b"v")]
    offsets = [[0, far - 1], [far, 2 * far - 1], [2 * far, 3 * far - 1], [3 * far], [3 * far + 1]]
    yield CleaningCase(0, [[Batch(one, same, **times) for one in segment] for segment in offsets], config, steps)
    for number, time in enumerate((-1, 0, 2**63 - 1), start=1):
        horizon = {"flags": DELETE_HORIZON, "base_timestamp": time, "max_timestamp": NOW}
        deleted = Batch(0, [Rec(b"k"), Rec(b"l", b"v", offset_delta=1, timestamp_delta=7)], 1, **horizon)
        tombstone = Batch(2, [Rec(b"l")], base_timestamp=time, max_timestamp=time)
        rest = [Batch(3, [Rec(b"m", b"v")], **times)], [Batch(4, same, **times)]
        yield CleaningCase(number, [[deleted], [tombstone], *rest], config, steps)
    inner = legacy.message_set(0, [legacy.Message(one, -1, b"%d" % (one % 2), b"v") for one in range(4)])
    for number, attributes in enumerate((GZIP, GZIP | LOG_APPEND_TIME), start=4):
        wrapper = legacy.message(1, None, gzip.compress(inner), timestamp=NOW, attributes=attributes)
        segments = [[Entry(25, legacy.entry(28, wrapper))], [Batch(60, same, **times)]]
        yield CleaningCase(number, segments, config, steps)


def test_odd_logs_are_cleaned_to_the_same_records(kafka: Asked, tmp_path: Path) -> None:
    answers = compare(kafka, tmp_path, list(odd_cases()), is_plain=False, is_whole=True)
    assert all("end" in answer for answer in answers)
    sizes = [path.stat().st_size for path in sorted((tmp_path / "0" / "ours" / "t-0").glob("*.log"))]
    assert sizes[0] == 0
    assert len(sizes) == 3  # three empty segments became one


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("limit", [100, 407, 408])
@pytest.mark.parametrize("checkpoint", [None, 2], ids=["mapped", "rewritten"])
def test_logs_with_larger_records_than_are_allowed_are_not_cleaned(
    kafka: Asked, tmp_path: Path, limit: int, codec: int, checkpoint: int | None
) -> None:
    """Neither if they are in the dirty part, which goes into the map, nor if they are in the clean one before it."""
    small, times = Rec(b"k", b"v"), {"base_timestamp": NOW, "max_timestamp": NOW}
    large = Batch(0, [small, Rec(b"l", bytes(400), offset_delta=1)], 1, codec, **times)
    segments = [[large], [Batch(2, [small], **times)], [Batch(3, [small], **times)]]
    config = {"cleanup.policy": "compact", "file.delete.delay.ms": "0"}
    if judged().bounds_records:
        config[RECORD_LIMIT] = str(limit)
    twins = Twins(CleaningCase(0, segments, config, [Step(NOW, 4096)]), tmp_path)
    twins.checkpoint = checkpoint
    expected = kafka.ask(twins.question(0))
    assert ("error" in expected) == (judged().bounds_records and codec == GZIP and limit < 408)
    assert twins.answer(0) == expected
    left = {name: content for name, content in meanings(twins.theirs).items() if not name.endswith(".cleaned")}
    assert meanings(twins.ours) == left


def test_old_segments_go_as_they_go_in_kafka(kafka: Asked, tmp_path: Path) -> None:
    """By time, size and log start; of closed logs with and without batches in the last segment."""
    deleted_counts = set()
    for case in cleaning_cases(f"{SEED} retention", CASE_COUNT):
        place = tmp_path / str(case.number)
        directory, twin = place / "ours" / "t-0", place / "theirs" / "t-0"
        question = retention_question(case, twin, Dice(f"{SEED} retention {case.number}"))
        case.config |= question["config"]
        config = lay_out(case, directory)
        shutil.copytree(directory, twin)
        expected = kafka.ask({**question, "config": case.config})
        assert retained(directory, config, question) == expected, f"seed {SEED} {directory}"
        assert contents(directory) == contents(twin), f"seed {SEED} {directory}"
        deleted_counts.add(expected.get("deleted"))
    assert len(deleted_counts) > 2


def retention_question(case: CleaningCase, directory: Path, dice: Dice) -> dict[str, Any]:
    end_offset = case.segments[-1][-1].base_offset + 1
    return {
        "op": "retain",
        "directory": str(directory),
        "now": NOW + dice.choose([0, 0, 3000]),
        "logStart": 0,
        "highWatermark": 2**62,
        "deleteTo": dice.choose([None, None, dice.below(end_offset + 2)]),
        "config": {
            "cleanup.policy": dice.choose(["delete", "delete", "compact", "compact,delete"]),
            "retention.ms": str(dice.choose([-1, 0, 30, 1000, 10_000])),
            "retention.bytes": str(dice.choose([-1, -1, 0, 300, 900])),
        },
    }


def retained(directory: Path, config: LogConfig, question: dict[str, Any]) -> dict[str, Any]:
    """What we delete, said as `Cleans.java` says it."""
    answer: dict[str, Any] = {}
    log = opened(directory, config, question["now"], was_clean=True)
    try:
        if question["deleteTo"] is not None:
            log.increment_log_start_offset(question["deleteTo"])
        answer["deleted"] = len(log.delete_old_segments(question["now"]))
        answer["segments"] = log.state.segments.base_offsets
    except LogstoreError as error:
        answer["error"] = told(error)
    answer["logStart"] = log.log_start_offset
    log.remove_deleted_files(question["now"])
    log.close()
    return answer


def contents(directory: Path) -> dict[str, bytes]:
    """But for empty indexes, which Kafka makes only when it needs them."""
    return {
        name: content
        for name, (_, content) in files(directory).items()
        if content or not name.endswith((".index", ".timeindex"))
    }


def test_kafka_repairs_what_an_interrupted_cleaning_left_and_so_do_we(
    asked: Callable[..., Asked], tmp_path: Path
) -> None:
    """To the same files and state, from what a crash before any system call may have left."""
    case = example_case(0)
    directory = tmp_path / "watched" / "t-0"
    config = lay_out(case, directory)
    disk = LossyDisk(directory, SEED)
    log = opened(directory, config, NOW, was_clean=True, seam=disk)
    for now_ms in (NOW, NOW + 1):
        log.clean(log.cleanable(None, now_ms), now_ms)
        log.remove_deleted_files(now_ms)
    log.close()
    dice = Dice(SEED)
    chosen = [survivor for survivor in disk.survivors if dice.chance(100 * CASE_COUNT // len(disk.survivors))]
    settings = Case(0, "", "t-0", clean=False, now=NOW, config=case.config)
    ours = [write(survivor, tmp_path / "ours" / str(number)) for number, survivor in enumerate(chosen)]
    theirs = [write(survivor, tmp_path / "theirs" / str(number)) for number, survivor in enumerate(chosen)]
    shared = {"clean": False, "logStart": 0, "recoveryPoint": 0, "now": NOW, "config": case.config}
    assert len(theirs) > 10
    for one, their in zip(ours, theirs, strict=True):
        expected = asked("LogCheck").ask({"directory": str(their), **shared})
        assert "error" not in expected
        assert disagreement(expected, answer(settings, one)) == "", f"seed {SEED} {one}"


def write(survivor: frozenset[tuple[str, bytes]], place: Path) -> Path:
    directory = place / "t-0"
    directory.mkdir(parents=True)
    for name, content in survivor:
        (directory / name).write_bytes(content)
    return directory
