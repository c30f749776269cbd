"""Dumps of side files, recorded and random ones, against the real tool."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from logstore.config.kafka_version import OF_NEW_STORES
from tests.conformance.comparison import differences
from tests.conformance.dumping import answer
from tests.kafka.record_side_file_dumps import real_answers
from tests.support.dice import Dice
from tests.support.judges import judged
from tests.support.oracle import Oracle
from tests.support.sampling import case_count
from tests.support.side_file_cases import (
    CASES,
    EMPTY_BATCH,
    FIRST,
    MESSAGE_V1,
    PRODUCERS,
    SECOND,
    SHORT_V2,
    THIRD,
    Answer,
    Case,
    aborted_entry,
    recorded_answers,
)

pytestmark = [pytest.mark.kafka, pytest.mark.by_release(is_slow=True)]

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=150, whole=600)
BLOCKS = [FIRST, SECOND, THIRD, EMPTY_BATCH, MESSAGE_V1, SHORT_V2]
NUMBERS = [0, 1, -1, 12, 14, 61, 400, 2**31 - 1, -(2**31)]
OPTIONS = [[], [], [], [], ["--index-sanity-check"], ["--verify-index-only"], ["--max-message-size", "80"]]
SUFFIXES = ["index", "timeindex", "txnindex", "snapshot"]


def our_answer(case: Case, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """As ours dumps it, for the version that judges."""
    directory.mkdir(parents=True)
    case.write(directory)
    monkeypatch.chdir(directory)
    return Answer(*answer(["--kafka-version", judged().name, *case.argv]))


@pytest.mark.slow
def test_the_recorded_answers_are_the_real_ones(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = real_answers(oracle, CASES, tmp_path)
    if judged() is OF_NEW_STORES:
        assert {case.story: answer for case, answer in zip(CASES, found, strict=True)} == recorded_answers()
    for number, (case, expected) in enumerate(zip(CASES, found, strict=True)):
        ours = our_answer(case, tmp_path / "ours" / str(number), monkeypatch)
        assert differences(case.argv, expected, ours) == [], case.story


def test_random_side_files_are_dumped_as_by_the_real_tool(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [random_case(Dice(f"side files {number}")) for number in range(CASE_COUNT)]
    (tmp_path / "real").mkdir()
    expected = real_answers(oracle, cases, tmp_path / "real")
    for number, case in enumerate(cases):
        assert our_answer(case, tmp_path / str(number), monkeypatch) == expected[number], case


def random_case(dice: Dice) -> Case:
    """A segment whose indexes agree with its log, and damage to any of its files."""
    log, offset_index, time_index = b"", b"", b""
    for _ in range(dice.below(8)):
        block = dice.choose(BLOCKS)
        offset, magic = struct.unpack_from(">q8xb", block)
        offset += int.from_bytes(block[23:27].ljust(4, b"\0")) if magic == 2 else 0
        if dice.chance(60):
            offset_index += struct.pack(">ii", offset - 100, len(log))
        if dice.chance(60):
            time_index += struct.pack(">qi", dice.choose([1003, 1005, 1010, 2000]), offset - 100)
        log += block
    files: dict[str, bytes | None] = {
        "100.log": log,
        "100.index": offset_index,
        "100.timeindex": time_index,
        "100.txnindex": aborted_entry(0, 7, 3, 6, 7) * dice.below(3),
        "100.snapshot": PRODUCERS,
    }
    for _ in range(dice.below(4)):
        name = dice.choose(list(files))
        files[name] = damaged(files[name] or b"", dice)
    if dice.chance(5):
        del files[dice.choose(list(files))]
    names = [f"100.{dice.choose(SUFFIXES)}" for _ in range(1 + dice.below(2))]
    return Case("random", files, [*dice.choose(OPTIONS), "--files", ",".join(names)])


def damaged(data: bytes, dice: Dice) -> bytes:
    """`data` with another number in it, cut, or longer."""
    if dice.chance(60) and len(data) >= 4:
        position = dice.below(len(data) - 3) // 4 * 4
        return data[:position] + struct.pack(">i", dice.choose(NUMBERS)) + data[position + 4 :]
    if dice.chance(50):
        return data[: dice.below(len(data) + 1)]
    return data + dice.choose([bytes(dice.below(40)), dice.take(dice.below(40))])
