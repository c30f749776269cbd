"""What the dump finds, in the order and the words of the real tool, in little memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from logstore_tools.dump.findings import Findings, Section


def findings_and_lines() -> tuple[Findings, list[str]]:
    immediate: list[str] = []
    return Findings(immediate.append), immediate


def pairs(*of: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array(of, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def test_nothing_found_prints_nothing() -> None:
    findings, immediate = findings_and_lines()
    findings.non_consecutive("a.log", *pairs())
    assert list(findings.lines()) == immediate == []


def test_the_sections_come_in_order_whatever_was_found_first() -> None:
    findings, immediate = findings_and_lines()
    findings.non_consecutive("/d/0.log", *pairs((-1, 5)))
    findings.add(Section.OFFSET_NOT_FOUND, "/d/0.timeindex", 9, -1)
    findings.add(Section.TIMESTAMP_ORDER, "/d/0.timeindex", 3, 4)
    findings.add(Section.TIMESTAMP_MISMATCH, "/d/0.timeindex", 1, 2)
    findings.add(Section.INDEX_MISMATCH, "/d/0.index", 7, 8)
    findings.immediate("now")
    assert list(findings.lines()) == [
        "Mismatches in :/d/0.index",
        "  Index offset: 7, log offset: 8",
        "Found timestamp mismatch in :/d/0.timeindex",
        "  Index timestamp: 1, log timestamp: 2",
        "Found out of order timestamp in :/d/0.timeindex",
        "  Index timestamp: 3, Previously indexed timestamp: 4",
        "The following indexed offsets are not found in :/d/0.timeindex",
        "Indexed offset: 9, found log offset: -1",
        "Non-consecutive offsets in /d/0.log",
        "  -1 is followed by 5",
    ]
    assert immediate == ["now"]


def test_index_mismatches_descend_and_the_last_of_an_offset_counts() -> None:
    findings, _ = findings_and_lines()
    for index_offset, log_offset in [(3, 1), (5, 1), (-4, 1), (3, 2)]:
        findings.add(Section.INDEX_MISMATCH, "/d/0.index", index_offset, log_offset)
    assert list(findings.lines())[1:] == [
        "  Index offset: 5, log offset: 1",
        "  Index offset: 3, log offset: 2",
        "  Index offset: -4, log offset: 1",
    ]


def test_findings_of_time_stay_in_the_order_of_finding() -> None:
    findings, _ = findings_and_lines()
    for timestamp in (3, 1, 3):
        findings.add(Section.TIMESTAMP_MISMATCH, "/d/0.timeindex", timestamp, 0)
    assert [line.split(",")[0] for line in findings.lines()][1:] == [
        "  Index timestamp: 3",
        "  Index timestamp: 1",
        "  Index timestamp: 3",
    ]


def test_a_relative_path_is_the_same_file_as_the_absolute_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    findings, _ = findings_and_lines()
    findings.add(Section.TIMESTAMP_MISMATCH, "0.timeindex", 1, 2)
    findings.add(Section.TIMESTAMP_MISMATCH, f"{tmp_path}//0.timeindex", 3, 4)
    assert [line for line in findings.lines() if not line.startswith(" ")] == [
        f"Found timestamp mismatch in :{tmp_path}/0.timeindex"
    ]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([f"/{letter}" for letter in "abcdefghijklmnop"], [f"/{letter}" for letter in "opabcdefghijklmn"]),
        (["/d/Aa", "/d/BB", "/d/C", "/d/AaBB", "/d/BBAa"], ["/d/BBAa", "/d/AaBB", "/d/BB", "/d/Aa", "/d/C"]),
    ],
)
def test_files_come_in_the_order_of_javas_hash_map(paths: list[str], expected: list[str]) -> None:
    findings, _ = findings_and_lines()
    for path in paths:
        findings.add(Section.TIMESTAMP_MISMATCH, path, 1, 2)
    titles = [line for line in findings.lines() if not line.startswith(" ")]
    assert titles == [f"Found timestamp mismatch in :{path}" for path in expected]


CHUNK_ROW_COUNT = 4096


@pytest.mark.long
@pytest.mark.parametrize("step", [2, 200])
def test_ten_million_gaps_take_less_than_60_mib(step: int) -> None:
    """Measured on a fiftieth of them."""
    chunk_count = 10_000_000 // 50 // CHUNK_ROW_COUNT
    findings = Findings(lambda line: None)
    gaps = np.empty((2, CHUNK_ROW_COUNT), np.int64)
    tracemalloc.start()
    for number in range(chunk_count):
        gaps[0] = (np.arange(CHUNK_ROW_COUNT) + number * CHUNK_ROW_COUNT) * step
        gaps[1] = gaps[0] + step
        findings.non_consecutive("/d/0.log", gaps[0], gaps[1])
    lines = sum(1 for _ in findings.lines())
    _, peak_size = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines == 1 + chunk_count * CHUNK_ROW_COUNT
    assert peak_size < 60 * 2**20 / 50
