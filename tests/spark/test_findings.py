"""Table `findings` against the audit of the same directories, whole and damaged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import Finding
from tests.spark.planned import Planned
from tests.support.audit_twenty_faults import twenty_faults
from tests.support.golden import Golden

if TYPE_CHECKING:
    from tests.spark.conftest import Load

NOW_MS = 1_900_000_000_000
Told = tuple[object, ...]


def told(finding: Finding) -> Told:
    return (finding.rule, finding.severity.value, *finding.where, finding.expected, finding.found, finding.advice)


def damaged(directory: Path, destination: Path) -> Path:
    """A copy with a flipped bit, a cut index, a lost snapshot and a checkpoint beyond the log."""
    shutil.copytree(directory, destination)
    log = destination / "orders-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[200] ^= 1
    log.write_bytes(content)
    (destination / "payments-0" / f"{0:020d}.index").write_bytes(b"\0" * 7)
    (destination / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 999999\n")
    return destination


@pytest.mark.parametrize("name", ["demo", "killed", "groups", "damaged"])
def test_findings_are_those_of_the_audit(name: str, golden: Golden, tmp_path: Path) -> None:
    path = damaged(golden("transactions"), tmp_path / name) if name == "damaged" else golden(name)
    found = [tuple(row.values()) for row in Planned(path, table="findings", now=NOW_MS).rows()]
    expected = [told(finding) for finding in audit_directory(str(path), NOW_MS).findings]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert (len(found) > 3) == (name == "damaged")


def test_a_partition_alone_is_looked_at_alone(golden: Golden, tmp_path: Path) -> None:
    path = damaged(golden("transactions"), tmp_path / "damaged")
    rows = Planned(path / "orders-0", table="findings").rows()
    assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 0)}
    assert Planned(path, table="findings", subscribe="orders").rows() == rows


def test_findings_in_spark(golden: Golden, tmp_path: Path, load: Load) -> None:
    path = damaged(golden("transactions"), tmp_path / "damaged")
    counts = load(path, table="findings").groupBy("severity").count().collect()
    assert {row["severity"] for row in counts} >= {"error"}


def test_twenty_faults_are_these_twenty_in_spark(tmp_path: Path, load: Load) -> None:
    planted, now_ms = twenty_faults(tmp_path)
    rows = load(tmp_path, table="findings", now=now_ms).collect()
    assert sorted((row.rule, f"{row.topic}-{row.partition}") for row in rows) == sorted(planted.items())
    found = [tuple(row) for row in rows]
    expected = [told(finding) for finding in audit_directory(str(tmp_path), now_ms).findings]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.long  # as does the README
def test_the_command_line_audits_with_spark(spark: object, golden: Golden, tmp_path: Path) -> None:
    path = damaged(golden("transactions"), tmp_path / "damaged")
    words = ["audit", str(path), "--now", str(NOW_MS), "--format", "jsonl"]
    program = Path(sys.executable).with_name("logstore")
    alone, with_spark = (
        subprocess.run([program, *words, *more], capture_output=True, text=True, check=False)
        for more in ([], ["--spark", "local[1]"])
    )
    assert (alone.returncode, with_spark.returncode) == (1, 1), with_spark.stderr
    found, expected = (list(map(json.loads, done.stdout.splitlines())) for done in (with_spark, alone))
    assert sorted(found, key=str) == sorted(expected, key=str)
