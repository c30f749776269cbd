"""Partitions read by several processes: the same facts as by one, in whatever program, and nothing left of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from logstore.audit import processes
from logstore.audit.answers import AuditedFindings, audit, verify
from logstore.audit.cluster import Cluster
from logstore.audit.partition import Partition, open_partitions
from logstore.audit.verify import Asked, PartitionFacts, verify_partition
from logstore.errors import DataDirectoryError
from logstore.view import parallel_scan
from tests.support.audit_twenty_faults import twenty_faults
from tests.support.golden import Golden

BOUND_S = 60.0


class Started(list[str]):
    """How each process was started."""

    def __init__(self) -> None:
        super().__init__()
        self.process_ids: list[int] = []

    def assert_all_ended(self) -> None:
        assert self.process_ids
        for process_id in self.process_ids:
            with pytest.raises(ProcessLookupError):
                os.kill(process_id, 0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Three processors, and any start is worth while."""
    found = Started()
    for name in ("fork", "start"):
        real = getattr(processes._Process, name)

        def start(*args: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            process = real(*args)
            found.append(name)
            found.process_ids.append(process._process_id)
            return process

        monkeypatch.setattr(processes._Process, name, start)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # an earlier test may have left some
    monkeypatch.setattr(processes, "processor_count", lambda: 3)
    monkeypatch.setattr(processes, "FORK_COST", 1)
    monkeypatch.setattr(processes, "START_COST", 1)
    return found


@pytest.fixture(params=["fork", "start"])
def way(request: pytest.FixtureRequest, started: Started, monkeypatch: pytest.MonkeyPatch) -> str:
    """Beside another thread nothing is forked."""
    monkeypatch.setattr(threading, "active_count", lambda: 1 if request.param == "fork" else 2)
    return str(request.param)


def in_one(monkeypatch: pytest.MonkeyPatch, read: Callable[[], AuditedFindings]) -> AuditedFindings:
    with monkeypatch.context() as patched:
        patched.setattr(processes, "processor_count", lambda: 1)
        return read()


def wait_for(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "way"),
    [("faults", "start"), *((name, "fork") for name in ("faults", "transactions", "groups", "killed"))],
    indirect=["way"],
)
def test_several_processes_find_what_one_finds(
    name: str, way: str, started: Started, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms, root = 0, tmp_path / "data"
    if name == "faults":
        _, now_ms = twenty_faults(root)
    else:
        shutil.copytree(golden(name), root)
        with sorted(root.glob("*-0/*.log"))[-1].open("ab") as log:
            log.write(b"torn")
    for path in root.rglob("*"):
        os.utime(path, (1_000_000, 1_000_000))  # so that one look is enough
    for read in (lambda: audit(root, now_ms=now_ms), lambda: verify(root)):
        alone = in_one(monkeypatch, read)
        assert started == []
        together = read()
        assert started[:2] == [way, way]
        started.clear()
        assert len(together) > 0
        assert list(together) == list(alone)
        assert (together.partitions, together.audited) == (alone.partitions, alone.audited)
    started.assert_all_ended()


def test_callers_are_told_of_all_bytes_in_their_own_thread(way: str, started: Started, golden: Golden) -> None:
    sizes, threads = list[int](), set[int]()

    def advance(size: int) -> None:
        sizes.append(size)
        threads.add(threading.get_ident())

    found = audit(golden("transactions"), now_ms=0, advance=advance)
    assert len(started) >= 2
    assert sum(sizes) == sum(one.size for one in found.partitions)
    assert threads == {threading.get_ident()}


def test_a_partition_gets_the_processors_of_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "processor_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.setattr(parallel_scan, "processor_quota", lambda: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    counts = dict[str, int]()

    def verify(partition: Partition, *args: Any, **options: Any) -> PartitionFacts:
        counts[partition.name] = parallel_scan.processor_count()
        return verify_partition(partition, *args, **options)

    monkeypatch.setattr(processes, "verify_partition", verify)
    for name in ("small-0", "even-0", "large-0"):
        (tmp_path / name).mkdir()
    cluster, partitions = Cluster(str(tmp_path)), open_partitions(str(tmp_path))
    task = processes.Task(cluster, Asked.EVERYTHING, True)
    costs = {"small": 1, "even": 25, "large": 74}
    shares = processes._Shares(partitions, [costs[one.files.topic] for one in partitions], task, [], lambda size: None)
    assert len(shares.read()) == 3
    assert counts == {"small-0": 1, "even-0": 1, "large-0": 3}


def test_no_process_starts_for_a_small_directory(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "processor_count", lambda: 64)
    monkeypatch.setattr(processes._Process, "fork", lambda others: pytest.fail("forked"))
    monkeypatch.setattr(processes._Process, "start", lambda: pytest.fail("started"))
    assert len(audit(golden("demo"), now_ms=0).partitions) > 1


def test_one_process_reads_all_where_the_system_starts_no_other(
    started: Started, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    assert len(audit(golden("demo"), now_ms=0).partitions) > 1
    assert started == []


@pytest.mark.parametrize("executable", [None, "", "/opt/app/audit-tool"])
def test_a_program_that_is_no_python_is_not_started_again(
    executable: str | None, started: Started, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert len(audit(golden("demo"), now_ms=0).partitions) > 1
    assert started == []


def test_a_python_that_cannot_start_is_not_missed(
    started: Started, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert len(audit(golden("demo"), now_ms=0).partitions) > 1
    assert set(started) == {"start"}
    started.assert_all_ended()


def reading(monkeypatch: pytest.MonkeyPatch, elsewhere: Callable[[], None], here: Callable[[], None]) -> None:
    """Call a function before each partition is read, another one in forks."""
    own = os.getpid()

    def read(*args: Any, **options: Any) -> PartitionFacts:
        (here if os.getpid() == own else elsewhere)()
        return verify_partition(*args, **options)

    monkeypatch.setattr(processes, "verify_partition", read)


def until_another_is_asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that waits until another process was asked to read."""
    asked = threading.Event()
    take = processes._Shares._take

    def noted(self: processes._Shares, asked_count: int = 0) -> Any:
        group = take(self, asked_count)
        if asked_count:
            asked.set()
        return group

    monkeypatch.setattr(processes._Shares, "_take", noted)

    def wait() -> None:
        assert asked.wait(BOUND_S)

    return wait


def test_a_process_that_is_killed_ends_in_one_error(
    started: Started, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = until_another_is_asked(monkeypatch)
    reading(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL), here)
    with pytest.raises(DataDirectoryError, match="a process that read partitions was killed by signal SIGKILL") as told:
        audit(golden("transactions"), now_ms=0)
    assert str(told.value.path).startswith(str(golden("transactions")))
    started.assert_all_ended()


def test_an_error_of_another_process_is_raised_here(
    started: Started, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise MemoryError("too much")

    reading(monkeypatch, fail, until_another_is_asked(monkeypatch))
    with pytest.raises(MemoryError, match="too much"):
        audit(golden("transactions"), now_ms=0)
    started.assert_all_ended()


def test_an_interrupt_ends_all_processes(started: Started, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = until_another_is_asked(monkeypatch)

    def interrupt() -> None:
        wait()
        raise KeyboardInterrupt

    reading(monkeypatch, lambda: time.sleep(BOUND_S), interrupt)
    with pytest.raises(KeyboardInterrupt):
        audit(golden("transactions"), now_ms=0)
    started.assert_all_ended()


def test_signals_of_a_terminal_are_for_the_first_process(
    started: Started, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    reading(monkeypatch, interrupt, until_another_is_asked(monkeypatch))
    assert len(audit(golden("transactions"), now_ms=0).partitions) > 1


SCRIPT = """
import os, sys, threading, time
import logstore
from logstore.audit import processes

processes.processor_count, processes.FORK_COST, processes.START_COST = lambda: 2, 1, 1
started, start = [], processes._Process.start
processes._Process.start = lambda: started.append(1) or start()
found = []
thread = threading.Thread(target=lambda: found.append(logstore.audit(sys.argv[1], now_ms=0)))
thread.start()
thread.join()
print(len(found[0].partitions), len(started) > 0)
"""


def test_a_script_needs_no_guard(golden: Golden, tmp_path: Path) -> None:
    script = tmp_path / "audit_all.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, golden("demo")], capture_output=True, text=True, check=False)
    count = len(audit(golden("demo"), now_ms=0).partitions)
    assert (done.stdout, done.stderr) == (f"{count} True\n", "")


ORPHANS = """
import os, signal, sys, threading, time
import logstore
from logstore.audit import processes

processes.processor_count, processes.FORK_COST = lambda: 3, 1
own, fork = os.getpid(), processes._Process.fork

def noted(others):
    process = fork(others)
    print(process._process_id, flush=True)
    return process

def read(*args, **options):
    time.sleep(2 if os.getpid() == own else 3600)
    os.kill(own, signal.SIGKILL)

processes._Process.fork, processes.verify_partition = noted, read
logstore.audit(sys.argv[1], now_ms=0)
"""


def test_no_process_outlives_the_one_that_started_it(golden: Golden) -> None:
    argv = [sys.executable, "-c", ORPHANS, golden("transactions")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    others = list(map(int, done.stdout.split()))
    assert len(others) == 2

    def is_gone(process_id: int) -> bool:
        with suppress(FileNotFoundError):
            return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return True

    wait_for(lambda: all(map(is_gone, others)))
