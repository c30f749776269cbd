"""Non-consecutive offsets, in whatever chunks and order they are found, print as out of Java's sorted map."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logstore_tools.dump.findings import Findings

OFFSETS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 300))
CHUNKS = st.lists(st.lists(st.tuples(OFFSETS, OFFSETS), max_size=8), max_size=6)


def found(findings: Findings, chunks: list[list[tuple[int, int]]]) -> None:
    for chunk in chunks:
        rows = np.array(chunk, dtype=np.int64).reshape(-1, 2)
        findings.non_consecutive("/d/0.log", rows[:, 0], rows[:, 1])


@given(CHUNKS)
def test_pairs_print_as_out_of_a_sorted_map(chunks: list[list[tuple[int, int]]]) -> None:
    findings = Findings(lambda line: None)
    found(findings, chunks)
    sorted_map = {previous: following for chunk in chunks for previous, following in chunk}
    expected = [f"  {previous} is followed by {sorted_map[previous]}" for previous in sorted(sorted_map)]
    assert list(findings.lines()) == (["Non-consecutive offsets in /d/0.log", *expected] if expected else [])


@given(st.lists(CHUNKS, max_size=3))
def test_merged_findings_are_those_of_one_run(parts: list[list[list[tuple[int, int]]]]) -> None:
    alone, merged = Findings(lambda line: None), Findings(lambda line: None)
    for part in parts:
        found(alone, part)
        other = Findings(lambda line: None)
        found(other, part)
        merged.merge(other)
    assert list(merged.lines()) == list(alone.lines())


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3), st.booleans()), max_size=60))
def test_files_come_in_javas_order_however_the_work_was_shared(calls: list[tuple[int, int, bool]]) -> None:
    """A call: which file, how many pairs, and whether a new file's findings begin with it."""
    alone, merged, other = (Findings(lambda line: None) for _ in range(3))
    for file, count, is_new_part in calls:
        if is_new_part:
            merged.merge(other)
            other = Findings(lambda line: None)
        firsts = np.arange(count) * 2
        other.non_consecutive(f"/d/{file}", firsts, firsts + 2)
        for row in range(count):  # Java is told of them one by one
            alone.non_consecutive(f"/d/{file}", firsts[row : row + 1], firsts[row : row + 1] + 2)
    merged.merge(other)
    assert list(merged.lines()) == list(alone.lines())
