"""Audits of a data directory: of one large log, and of many small partitions.

As a command beside `logstore dump --deep-iteration` of the same log, which reads the same bytes and checks fewer of
them. The least that either takes is to check every byte.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.peers.commands import LOGSTORE, run
from benchmarks.support.data import KIB, MIB, SEGMENT, scaled, write_segment
from benchmarks.support.floors import mapped
from benchmarks.support.logs import settings_of
from benchmarks.support.measure import Measured, seconds_of
from logstore.audit.directory_audit import AuditedDirectory, audit_directory
from logstore.log.load.recover import recover_partition
from logstore.view.partition_reader import PartitionReader

SIZE, PARTITION_SIZE = scaled(256 * KIB, 1024 * MIB), 32 * KIB  # two batches
PARTITION_COUNT = scaled(20, 10_000)
SIZES = [PARTITION_SIZE, MIB]  # of each of 1,000 partitions
WAYS = {"with records": (), "--checksums-only": ("--checksums-only",)}
NOW_MS = 1_800_000_000_000
METADATA = "version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ"


def write_partition(directory: Path, size: int) -> Path:
    """Write a closed partition of one segment with all side files; return its directory."""
    directory.mkdir(parents=True)
    write_segment(directory / SEGMENT, size)
    recover_partition(str(directory), settings_of(was_clean=False))
    (directory / "partition.metadata").write_text(METADATA)
    return directory


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("audited")
    write_partition(root / "data" / "orders-0", SIZE)
    yield root
    shutil.rmtree(root)


@pytest.mark.parametrize("way", WAYS)
def test_audit_command(measured: Measured, large: Path, way: str) -> None:
    segment = large / "data" / "orders-0" / SEGMENT
    dump = [*LOGSTORE, "dump", "--files", str(segment), "--deep-iteration"]
    measured(
        run,
        *([*LOGSTORE, "audit", "data", *WAYS[way]], large / "audit.txt", large),
        title=f"`logstore audit`, {SIZE / MIB:.4g} MiB, {way}",
        size=SIZE,
        peers={"logstore dump --deep-iteration": lambda: run(dump, large / "dump.txt", large)},
        floor=mapped(segment, 2),
        reads=[segment],
        hashed=lambda _: (large / "audit.txt").read_bytes(),
    )
    assert "no findings" in (large / "audit.txt").read_text()


def on_one_processor(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes on one processor."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        return seconds_of(1, work)
    finally:
        os.sched_setaffinity(0, processors)


def copies(root: Path, size: int, count: int) -> Path:
    """Write a data directory of `count` partitions, whose files are one partition's by other names."""
    one = write_partition(root / "one" / "orders-0", size)
    for number in range(count):
        shutil.copytree(one, root / "data" / f"orders-{number}", copy_function=os.link)
    end = PartitionReader(str(one)).log_end_offset
    lines = "".join(f"orders {number} {end}\n" for number in range(count))
    for name in ("recovery-point", "replication"):  # as long as a broker's
        (root / "data" / f"{name}-offset-checkpoint").write_text(f"0\n{count}\n{lines}")
    return root / "data"


@pytest.mark.parametrize("size", SIZES)
def test_audit_on_all_processors(measured: Measured, tmp_path: Path, size: int) -> None:
    count = scaled(20, 1000, 1)
    root = str(copies(tmp_path, size, count))
    audited: AuditedDirectory = measured(
        lambda: audit_directory(root, NOW_MS),
        title=f"audit of {count:,} partitions of {size / KIB:.4g} KiB on all processors",
        count=count,
        unit="partitions",
        size=count * size,
        peers={"on one processor": lambda: on_one_processor(lambda: audit_directory(root, NOW_MS))},
        floor="the one processor beside it",
        hashed=lambda found: list(map(str, found.findings)),
    )
    assert (len(audited.partitions), audited.findings) == (count, ())


def test_audit_small_partitions(measured: Measured, tmp_path: Path) -> None:
    root = copies(tmp_path, PARTITION_SIZE, PARTITION_COUNT)
    audited: AuditedDirectory = measured(
        lambda: audit_directory(str(root), NOW_MS),
        title=f"audit of {PARTITION_COUNT:,} small partitions",
        count=PARTITION_COUNT,
        unit="partitions",
        floor="none: nothing else reads so many directories",
        hashed=lambda found: list(map(str, found.findings)),
    )
    assert (len(audited.partitions), audited.findings) == (PARTITION_COUNT, ())
