"""A directory with twenty planted faults of different kinds is reported with exactly these twenty."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from logstore.audit.directory_audit import audit_directory
from logstore_tools.check_commands import audit as command
from tests.support.audit_twenty_faults import twenty_faults


def test_twenty_faults_are_reported_as_exactly_these_twenty(tmp_path: Path) -> None:
    planted, now_ms = twenty_faults(tmp_path)
    found = audit_directory(str(tmp_path), now_ms).findings
    places = [(finding.rule, f"{finding.where.topic}-{finding.where.partition}") for finding in found]
    assert sorted(places) == sorted(planted.items())


def test_the_command_line_reports_exactly_these_twenty(tmp_path: Path) -> None:
    planted, now_ms = twenty_faults(tmp_path)
    done = CliRunner().invoke(command, [str(tmp_path), "--now", str(now_ms), "--format", "jsonl"])
    assert done.exit_code == 1
    _, *findings = map(json.loads, done.output.splitlines())
    found = [(one["rule"], f"{one['topic']}-{one['partition']}") for one in findings]
    assert sorted(found) == sorted(planted.items())
