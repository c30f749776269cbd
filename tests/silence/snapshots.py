"""Copies of directories that brokers write, and what audits say of them."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from logstore.audit.directory_audit import audit_directory
from logstore.audit.directory_verify import verify_directory
from logstore.audit.finding import Finding, Severity
from logstore.audit.verify import Asked, verify_partition_directory
from logstore.layout.file_names import parse_partition_directory
from logstore.layout.offset_checkpoint import RECOVERY_POINT_FILE_NAME
from tests.support.dice import Dice

UNMARKED_RULES = ("transaction-hanging", "marker-missing", "marker-contradicting", "transaction-no-data")


@dataclass(frozen=True)
class Snapshot:
    """A directory to be audited.

    Attributes:
        kind: of what work, and how it was taken. The log managers flush a rolled segment late, so that a follower may
            have been truncated below it, and keep a recovery point above its end (`UnifiedLog.flush`).
        unmarked: partitions without a leader that a coordinator took for deleted, so that markers are missing there: a
            fault of Kafka's (`TransactionMarkerChannelManager`).
        forgets_producers: brokers forget a producer within seconds, also before a client that had no answer sends a
            batch again, which is written twice then (`producer.id.expiration.ms`).
    """

    path: Path
    kind: str
    seed: str
    unmarked: frozenset[str] = frozenset()
    forgets_producers: bool = False

    def is_kafkas_own(self, finding: Finding) -> bool:
        """Whether what was found is what Kafka itself did wrong."""
        if finding.rule == "sequence-duplicate":
            return self.forgets_producers
        if finding.rule == "checkpoint-offset" and "log manager" in self.kind:
            return str(finding.where.path).endswith(RECOVERY_POINT_FILE_NAME)
        return finding.rule in UNMARKED_RULES and f"{finding.where.topic}-{finding.where.partition}" in self.unmarked


@dataclass
class Tally:
    """What came of audits.

    Attributes:
        kinds: directories by kind.
        rules: findings by severity and rule.
        told: findings in words, the first few of each rule.
        kept: a directory for those that errors are found in; None keeps none.
    """

    kept: Path | None = None
    kinds: Counter[str] = field(default_factory=Counter)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    def audit(self, snapshot: Snapshot) -> None:
        """Audit one directory, or the partition that is alone in it; it is removed then."""
        self.kinds[snapshot.kind] += 1
        findings = list(_findings(snapshot))
        for finding in findings:
            severity = "Kafka's own" if snapshot.is_kafkas_own(finding) else finding.severity.value
            key = severity, finding.rule
            self.rules[key] += 1
            if self.rules[key] <= 8:
                self.told.append(
                    f"{snapshot.kind}, seed {snapshot.seed}, {_name(snapshot)}: {severity} {_text(finding)}"
                )
        if self.kept is not None and findings:
            shutil.move(snapshot.path, self.kept / f"{snapshot.seed}-{_name(snapshot)}")
        else:
            shutil.rmtree(snapshot.path)

    @property
    def error_count(self) -> int:
        return sum(count for (severity, _), count in self.rules.items() if severity == Severity.ERROR.value)

    def text(self) -> str:
        """Counts by kind and by rule, then findings."""
        kinds = [f"  {count:6} {kind}" for kind, count in sorted(self.kinds.items())]
        rules = [f"  {count:6} {severity} {rule}" for (severity, rule), count in sorted(self.rules.items())]
        total = f"{sum(self.kinds.values())} directories"
        return "\n".join([total, *kinds, f"{sum(self.rules.values())} findings", *rules, *self.told])


def taken(
    roots: list[Path],
    place: Path,
    how: str,
    kind: str,
    seed: str,
    dice: Dice,
    pids: Sequence[int] = (),
    unmarked: frozenset[str] = frozenset(),
) -> Iterator[Snapshot]:
    """Copies of log dirs, below `place`, and sometimes of a partition of one; `pids` stand still meanwhile.

    As `cp -a` makes them, or `cp -r`, by which all files are new.
    """
    is_archive = dice.chance(50)
    try:
        for pid in pids:
            _stand_still(pid)
        for root in roots:
            _copy(root, place / root.name, is_archive=is_archive)
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    for root in roots:
        alone = partitions(place / root.name)
        if alone and dice.chance(30):
            one = dice.choose(alone)
            shutil.copytree(one, place / f"{root.name}-alone" / one.name)
            yield Snapshot(place / f"{root.name}-alone", f"{how}: a partition alone", seed, unmarked)
        yield Snapshot(place / root.name, f"{how}: {kind}", seed, unmarked)


def _copy(source: Path, target: Path, *, is_archive: bool) -> None:
    """Copy a directory while it changes: what is gone when it is its turn is left out."""
    target.mkdir(parents=True)
    with suppress(FileNotFoundError):
        place = os.open(source, os.O_RDONLY)  # another directory may get its name meanwhile
        try:
            here = Path(f"/proc/self/fd/{place}")
            for name in os.listdir(place):
                with suppress(FileNotFoundError):
                    if (here / name).is_dir():
                        _copy(here / name, target / name, is_archive=is_archive)
                    else:
                        shutil.copyfile(here / name, target / name)
                        _copy_times(here / name, target / name, is_archive=is_archive)
            _copy_times(here, target, is_archive=is_archive)
        finally:
            os.close(place)


def _copy_times(source: Path, target: Path, *, is_archive: bool) -> None:
    if is_archive:
        shutil.copystat(source, target)


def _stand_still(pid: int) -> None:
    """Until each thread has stopped, or the process has ended."""
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, signal.SIGSTOP)
        states = {""}
        while not states <= {"T", "Z"}:
            time.sleep(0.001)
            stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
            states = {stat.rpartition(")")[2].split()[0] for stat in stats}


def partitions(path: Path) -> list[Path]:
    """Directories of partitions that lie in a data directory."""
    return sorted(one for one in path.iterdir() if one.is_dir() and parse_partition_directory(one.name) is not None)


def _name(snapshot: Snapshot) -> str:
    return "-".join(snapshot.path.parts[-2:])


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    later_ms = time.time_ns() // 1_000_000 + 86_400_000  # who looks at a copy looks later
    if snapshot.kind.endswith("a partition alone"):
        yield from verify_partition_directory(str(partitions(snapshot.path)[0]), Asked.EVERYTHING).findings
        return
    found = audit_directory(str(snapshot.path), later_ms).findings
    yield from found
    yield from (one for one in verify_directory(str(snapshot.path)).findings if one not in found)


def _text(finding: Finding) -> str:
    where = finding.where
    place = f"{Path(where.path).parent.name}/{Path(where.path).name} {where.topic}-{where.partition} at {where.offset}"
    return f"{finding.rule}: {place}: expected {finding.expected}, found {finding.found}"
