"""The yardstick itself: what two dumps may differ in, and what they may not."""

from __future__ import annotations

from tests.conformance.comparison import differences

ARGV = ["--files", "x.log"]
TRACE = 'Exception in thread "main" a.B: why\n\tat a.B.c(B.java:1)\nCaused by: x.Y: because\n\t... 3 more\n'
MISMATCH_A = "Mismatches in :/a.index\n  Index offset: 3, log offset: 4\n"
MISMATCH_B = "Mismatches in :/b.index\n  Index offset: 1, log offset: 2\n"
FOLLOWED = "Non-consecutive offsets in /a.log\n  3 is followed by 5\n"


def same(expected_err: str, found_err: str) -> bool:
    return not differences(ARGV, (1, "", expected_err), (1, "", found_err))


def test_a_single_character_or_exit_code_counts() -> None:
    assert differences(ARGV, (0, "a\n", ""), (0, "a\n", "")) == []
    assert differences(ARGV, (0, "a\n", ""), (0, "a", ""))
    assert differences(ARGV, (0, "a\n", ""), (1, "a\n", "")) == [
        "dump --files x.log",
        "exit code: expected 0, found 1",
    ]


def test_identity_hashes_are_masked_but_their_place_counts() -> None:
    assert not differences(ARGV, (0, "payload: [B@1b2c3d\n", ""), (0, "payload: [B@9\n", ""))
    assert differences(ARGV, (0, "payload: [B@1b2c3d\n", ""), (0, "payload: x\n", ""))


def test_blocks_may_change_places_within_their_kind_only() -> None:
    assert same(MISMATCH_A + MISMATCH_B + FOLLOWED, MISMATCH_B + MISMATCH_A + FOLLOWED)
    assert not same(MISMATCH_A + FOLLOWED, FOLLOWED + MISMATCH_A)
    assert not same(MISMATCH_A + MISMATCH_B, MISMATCH_A)
    assert not same(MISMATCH_A, MISMATCH_A.replace("3", "5"))


def test_lines_within_a_block_keep_their_order() -> None:
    assert not same(FOLLOWED + "  6 is followed by 9\n", FOLLOWED.replace("  3", "  6 is followed by 9\n  3"))


def test_a_stack_trace_counts_by_its_first_line() -> None:
    assert same(TRACE, 'Exception in thread "main" a.B: why\n')
    assert not same(TRACE, 'Exception in thread "main" a.B: how\n')
    assert not same(TRACE, "")


def test_where_kafka_runs_out_of_memory_any_exception_will_do() -> None:
    exhausted = 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n'
    assert same(exhausted, 'Exception in thread "main" a.B: too large\n')
    assert not same(exhausted, "")


def test_log_lines_of_the_real_tool_are_no_answer() -> None:
    assert same("[2026-01-02 03:04:05,678] WARN careful (x.Y)\nIgnoring unknown file x\n", "Ignoring unknown file x\n")
