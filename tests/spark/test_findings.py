"""Table `findings` against the audit of the same directories, whole and damaged."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from logstore.audit import directory_audit
from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import Finding
from logstore.audit.partition import Partition, open_partitions
from logstore.audit.verify import PartitionFacts, verify_partition, verify_partition_directory
from spark_dumps.findings import DirectoryTask
from spark_dumps.left_facts import LeftFacts
from tests.spark.planned import Planned
from tests.spark.segment_files import leave_at_rest
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


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files of this test alone."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def read_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of partitions whose logs the joining task reads, as it reads them."""
    names: list[str] = []

    def read(partition: Partition, *args: Any) -> PartitionFacts:
        names.append(partition.name)
        return verify_partition(partition, *args)

    monkeypatch.setattr(directory_audit, "verify_partition", read)
    return names


@pytest.mark.parametrize("is_last", [True, False])
def test_the_joining_task_reads_what_it_does_not_find(
    is_last: bool, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark starts it last; as the first one it finds nothing, and says the same."""
    path = tmp_path / "data"
    planted, now_ms = twenty_faults(path)
    leave_at_rest(path)
    expected = [told(finding) for finding in audit_directory(str(path), now_ms).findings]
    names, planned = read_again(monkeypatch), Planned(path, table="findings", now=now_ms, minPartitions=4)
    assert isinstance(planned.tasks[-1], DirectoryTask)
    assert len(planned.tasks) > 3
    if not is_last:
        planned.tasks.reverse()
    found = [tuple(row.values()) for row in planned.rows()]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) == len(planted)
    everything = {one.name for one in open_partitions(str(path))}
    coordinators = {name for name in everything if name.startswith("__transaction_state")}
    assert set(names) == (coordinators if is_last else everything)
    assert list(temporary.iterdir()) == [] or not is_last


def test_a_choice_of_partitions_leaves_nothing_behind(golden: Golden, temporary: Path) -> None:
    Planned(golden("demo"), table="findings", subscribe="orders").rows()
    Planned(golden("demo") / "orders-0", table="findings").rows()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_joining_task_waits_for_a_task_that_works(is_killed: bool, golden: Golden, temporary: Path) -> None:
    """It is another process, whose lock goes with it."""
    planned = Planned(golden("demo"), table="findings", now=NOW_MS)
    task = planned.tasks[-1]
    assert isinstance(task, DirectoryTask)
    left = LeftFacts(task.root, task.query)
    facts = verify_partition_directory(str(golden("demo") / "orders-0"))
    reader, writer = os.pipe()
    working = os.fork()
    if not working:
        with left.leaving() as leaves:
            os.write(writer, b"!")
            time.sleep(1)
            if is_killed:
                os._exit(0)
            leaves.append(facts)
        os._exit(0)
    assert os.read(reader, 1) == b"!"
    assert list(left.take()) == ([] if is_killed else [facts.partition.files.path])
    os.waitpid(working, 0)
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("temporary")
def test_facts_are_taken_where_files_cannot_be_locked(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    def lockf(*args: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", lockf)
    left = LeftFacts(str(golden("demo")), "query")
    facts = verify_partition_directory(str(golden("demo") / "orders-0"))
    with left.leaving(), left.leaving() as leaves:
        leaves.append(facts)
        (Path(left.path) / "unfinished").touch()
    assert list(left.take()) == [facts.partition.files.path]


@pytest.mark.usefixtures("temporary")
def test_nobody_waits_for_an_unfinished_task_of_the_same_process(golden: Golden) -> None:
    """Spark may give a worker its next task while the generator of a limited query is still there."""
    left = LeftFacts(str(golden("demo")), "query")
    with left.leaving():
        assert left.take() == {}


@pytest.mark.usefixtures("temporary")
def test_what_others_may_write_is_not_unpickled(golden: Golden) -> None:
    planned = Planned(golden("demo"), table="findings", now=NOW_MS)
    task = planned.tasks[-1]
    assert isinstance(task, DirectoryTask)
    place = Path(LeftFacts(task.root, task.query).path)
    place.mkdir()
    place.chmod(0o777)
    (place / "planted.facts").write_bytes(pickle.dumps(pytest.fail))
    assert LeftFacts(task.root, task.query).take() == {}
    assert (place / "planted.facts").exists()
    assert planned.rows() == []


def test_facts_of_another_day_are_removed(golden: Golden, temporary: Path) -> None:
    for name, day in (("old", 1), ("new", 0)):
        place = temporary / f"logstore-findings-{name}"
        place.mkdir()
        time_s = time.time() - day * 25 * 60 * 60
        os.utime(place, (time_s, time_s))
    Planned(golden("demo"), table="findings", now=NOW_MS).rows()
    assert [path.name for path in temporary.iterdir()] == ["logstore-findings-new"]


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
