"""Pairs of offsets that do not follow each other come back as they were, and millions of them take little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from logstore_tools.dump.findings import Findings
from logstore_tools.dump.offset_pairs import OffsetPairs, last_pairs

MAX, MIN = 2**63 - 1, -(2**63)
CHUNK_ROW_COUNT = 4096


def pairs(*of: tuple[int, int]) -> OffsetPairs:
    rows = np.array(of, dtype=np.int64).reshape(-1, 2)
    return OffsetPairs(rows[:, 0], rows[:, 1])


@pytest.mark.parametrize(
    "of",
    [
        [(-1, 5)],
        [(-1, 5), (5, 7), (7, 1_000_000)],
        [(0, 255), (255, 510)],
        [(0, 256), (256, 65_791)],
        [(0, 65_536), (65_536, 2**32)],
        [(0, 2**40), (2**40, MAX)],
        [(MIN, MAX), (MAX, MIN), (-1, 0), (0, -1)],
        [(9, 3), (3, 9), (3, 8)],
    ],
)
def test_pairs_come_back_as_they_were(of: list[tuple[int, int]]) -> None:
    assert list(pairs(*of).pairs()) == of


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([[(1, 3), (3, 5)], [(5, 9)]], [(1, 3), (3, 5), (5, 9)]),
        ([[(1, 3)], [(1, 4)]], [(1, 4)]),
        ([[(5, 9), (1, 3)], [(7, 8)]], [(1, 3), (5, 9), (7, 8)]),
        ([[(5, 9)], [(1, 3), (9, 11)]], [(1, 3), (5, 9), (9, 11)]),
        ([[(1, 3), (1, 4), (1, 5)]], [(1, 5)]),
    ],
)
def test_the_last_of_each_first_offset_counts(
    chunks: list[list[tuple[int, int]]], expected: list[tuple[int, int]]
) -> None:
    assert list(last_pairs([pairs(*chunk) for chunk in chunks])) == expected


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
