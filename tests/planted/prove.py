"""Plants every kind of fault in directories that brokers wrote, and tells what audits miss or say too much.

    python -m tests.planted.prove

| variable | says |
|---|---|
| `LOGSTORE_PLANTED_CASES` | so many of each kind in each directory, 3 if it is not set |
| `LOGSTORE_PLANTED_SEED` | what is drawn, again |
| `LOGSTORE_KAFKA_VERSIONS` | whose directories, those of all known Kafkas if it is not set |
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from logstore.audit import stable_reading
from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import Finding
from logstore.config.kafka_version import V4_3, V4_4
from tests.golden.archive import unpack
from tests.planted import batches, coordinators, directories, evidence, internal, markers, records, side_files
from tests.planted.advice import ADVICE, COSTS_MORE, good_batches
from tests.planted.planter import ELSEWHERE, KINDS, Kind, Planted, Planter, UnsuitableError
from tests.support.dice import Dice
from tests.support.oracle import RELEASES

BASES_OF = {
    V4_3.release: ("transactions", "transactions-v1", "transactions-v0", "records", "groups", "cluster", "compacted"),
    V4_4.release: ("newest",),
}
BASES = tuple(base for bases in BASES_OF.values() for base in bases)
MODULES = (batches, coordinators, directories, evidence, internal, markers, records, side_files)
GOOD, UNSUITABLE = "good", "unsuitable"


class Outcome(NamedTuple):
    """What came of a fault: GOOD, UNSUITABLE, or what is wrong and what was found; and whether advice mended it."""

    verdict: str
    planted: Planted | None = None
    findings: tuple[str, ...] = ()
    is_mended: bool = False


def outcome(kind: Kind, base: Path, place: Path, seed: str) -> Outcome:
    """Plant a fault in a copy of `base` at `place`, and audit it."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    before = _found_before(base)
    try:
        planted = kind.plant(Planter(place, Dice(seed)))
    except UnsuitableError:
        return Outcome(UNSUITABLE)
    found = audit_directory(str(place), _written_ms(base)).findings
    findings = [finding for finding in found if _named(finding, place) not in before]
    here = [one for one in findings if one.rule in kind.rules and _is_at(one, planted)]
    exact = [one for one in here if planted.offset is None or one.where.offset in (None, planted.offset)]
    allowed = kind.rules | kind.also
    more = [one for one in findings if one.rule not in allowed or not (_is_at(one, planted) or one.rule in ELSEWHERE)]
    verdict = "missed" if not findings else "misplaced" if not exact else "noise" if more else GOOD
    is_minimal = not any(KINDS[name] is kind for name in COSTS_MORE)
    advised = [finding for finding in exact if finding.rule in ADVICE]
    is_mended = verdict == GOOD and is_minimal and bool(advised)
    if is_mended and (left := _left_by_advice(place, advised[0], _written_ms(base))):
        return Outcome("not mended", planted, left)
    return Outcome(verdict, planted, tuple(map(str, more if verdict == "noise" else findings)), is_mended)


def _left_by_advice(root: Path, advised: Finding, now_ms: int) -> tuple[str, ...]:
    """Do what a finding advises; say what is found again, and what is lost."""
    name, offset = f"{advised.where.topic}-{advised.where.partition}", advised.where.offset
    before = {batch for batch in good_batches(root) if batch[:2] != (name, offset)}
    ADVICE[advised.rule](root, advised)
    again = [one for one in audit_directory(str(root), now_ms).findings if one.rule == advised.rule]
    again = [one for one in again if one.where._replace(position=None) == advised.where._replace(position=None)]
    lost = sorted(before - good_batches(root))
    is_planted = len(lost) == 1 and lost[0][0] == name  # found by the batch behind it
    return *(f"found again: {one}" for one in again), *(f"lost: {batch}" for batch in lost if not is_planted)


@cache
def _found_before(base: Path) -> frozenset[tuple[object, ...]]:
    return frozenset(_named(finding, base) for finding in audit_directory(str(base), _written_ms(base)).findings)


@cache
def _written_ms(base: Path) -> int:
    """A time soon after the directory was written to."""
    return int(max(path.stat().st_mtime for path in base.rglob("*")) * 1000) + 1000


def _named(finding: Finding, root: Path) -> tuple[object, ...]:
    path = finding.where.path
    return finding.rule, finding.where._replace(path=path and path.replace(str(root), "")), finding.found


def _is_at(finding: Finding, planted: Planted) -> bool:
    where = finding.where
    return f"{where.topic}-{where.partition}" == planted.name or f"/{planted.name}/" in f"{where.path}/"


def outcomes(seed: str, cases: int) -> Iterator[tuple[str, str, Outcome]]:
    """Yield kind, directory and what came of it."""
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        place = Path(directory)
        for base in (base for release in RELEASES for base in BASES_OF[release]):
            root = unpack(base, place)
            for name, kind in KINDS.items():
                for case in range(cases):
                    yield name, base, outcome(kind, root, place / "planted", f"{seed}/{base}/{name}/{case}")


def main() -> int:
    seed = os.environ.get("LOGSTORE_PLANTED_SEED") or secrets.token_hex(4)
    cases = int(os.environ.get("LOGSTORE_PLANTED_CASES") or 3)
    print(f"LOGSTORE_PLANTED_SEED={seed}", flush=True)
    stable_reading.MOMENT_S = 0.0  # nobody writes to the copies
    verdicts, planted = Counter[str](), Counter[str]()
    mended_count = 0
    for name, base, found in outcomes(seed, cases):
        verdicts[found.verdict] += 1
        planted[name] += found.verdict != UNSUITABLE
        mended_count += found.is_mended
        if found.verdict not in (GOOD, UNSUITABLE):
            print(f"{found.verdict}: {name} in {base} at {found.planted}", *found.findings, sep="\n    ", flush=True)
    never = [name for name in KINDS if not planted[name]]
    print(f"{len(KINDS)} kinds, {sum(planted.values())} faults: {dict(verdicts)}; never planted: {never or 'none'}")
    print(f"{mended_count} are gone by advice that one can follow alone, and nothing is lost")
    is_whole = set(RELEASES) == BASES_OF.keys()  # no directory of one Kafka alone suits all kinds
    return int((is_whole and bool(never)) or verdicts.keys() - {GOOD, UNSUITABLE} != set())


if __name__ == "__main__":
    sys.exit(main())
