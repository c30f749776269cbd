"""Runs `logstore dump` in this process and compares its answers with recorded ones of the real tool."""

from __future__ import annotations

import io
import os
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from logstore_tools.dump import run
from tests.conformance.comparison import differences

BASE = "@BASE@"
SHOWN_CASES = 3


def answer(argv: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `logstore dump` in the current directory, which is written `@BASE@`."""
    stdout, stderr = io.BytesIO(), io.StringIO()
    rc = run(argv, stdout, stderr)
    here = os.getcwd()
    text = stdout.getvalue().decode("utf-8", errors="surrogateescape")
    return rc, text.replace(here, BASE), stderr.getvalue().replace(here, BASE)


def disagreement(rows: Sequence[dict[str, Any]]) -> str:
    """What is different from the real tool's `rows`, to be read by a human; empty when nothing is."""
    reports = []
    for row in rows:
        report = _report(row)
        if report:
            reports.append(report)
    if not reports:
        return ""
    shown = "\n\n".join("\n".join(report) for report in reports[:SHOWN_CASES])
    others = "\n".join(report[0] for report in reports[SHOWN_CASES : 10 * SHOWN_CASES])
    return f"{len(reports)} of {len(rows)} dumps differ:\n\n{shown}\n\n{others}"


def _report(row: dict[str, Any]) -> list[str]:
    try:
        found = answer(row["argv"])
    except Exception:  # whatever escapes is a finding about this call, and no reason to leave out the others
        return [" ".join(["dump", *row["argv"]]), traceback.format_exc(limit=-2)]
    return differences(row["argv"], (row["rc"], row["stdout"], row["stderr"]), found)


def ms_of(time: str | None) -> int:
    """The number of a time that `iso_text` made; -1 for none."""
    if time is None:
        return -1
    if not time.endswith("Z"):
        return int(time)
    return (datetime.fromisoformat(time) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
