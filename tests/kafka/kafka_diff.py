"""Prints what another release of Kafka changed against the newest one that is known here.

    python -m tests.kafka.kafka_diff 4.5.0      # make kafka-diff KV=4.5.0

Compared are the facts in the jars of both: levels, features, definitions of records, configurations, errors; and what
both dump tools answer to every call about the golden directories. CONTRIBUTING says where each change goes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

from logstore.config.kafka_version import NEWEST
from tests.conformance.comparison import differences
from tests.golden.archive import NAMES, unpack
from tests.golden.matrix import argvs_of
from tests.naive.topics import definition_of
from tests.support.known_sets import facts
from tests.support.oracle import Dump, Oracle

#: what definitions of messages are of records that are kept on disk
KEPT = ("metadata", "coordinator-key", "coordinator-value", "data")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """One line for each name that was added (+), removed (-), or has other facts (~)."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield f"+ {name}: {_text(after[name])}"
        elif name not in after:
            yield f"- {name}"
        elif before[name] != after[name]:
            yield f"~ {name}: {_text(before[name])} → {_text(after[name])}"


def _text(facts: Any) -> str:
    return facts if isinstance(facts, str) else json.dumps(facts, ensure_ascii=False)


def definitions(oracle: Oracle) -> dict[str, str]:
    """Jar and name of each message that is kept on disk, with its definition as lines."""
    found = {}
    for path in map(Path, oracle.classpath.split(os.pathsep)):
        if not path.name.startswith("kafka-"):
            continue
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                if name.endswith(".json") and Path(name).parent.name in ("message", "metadata"):
                    definition = definition_of(jar.read(name).decode())
                    if definition["type"] in KEPT:
                        found[f"{path.name.rsplit('-', 1)[0]} {definition['name']}"] = "\n".join(_lines(definition))
    return found


def _lines(definition: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """The definition without its prose, a field a line."""
    facts = {name: value for name, value in definition.items() if name not in ("about", "fields", "commonStructs")}
    yield "  " * depth + ", ".join(f"{name} {value}" for name, value in facts.items())
    for inner in (*definition.get("fields", ()), *definition.get("commonStructs", ())):
        yield from _lines(inner, depth + 1)


def definition_changes(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """The lines of definitions that differ."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        changed = [line for line in unified_diff(old, new, lineterm="", n=0) if line[:2] not in ("--", "++", "@@")]
        if changed:
            yield f"~ {name}"
            yield from (f"    {line}" for line in changed)


def dump_changes(before: Oracle, after: Oracle) -> Iterator[str]:
    """The calls that the dump tools answer otherwise, and where; calls that differ in the same words are counted."""
    count = 0
    with tempfile.TemporaryDirectory(prefix="kafka-diff-") as place:
        for name in NAMES:
            directory = unpack(name, Path(place))
            argvs = argvs_of(name, directory)
            count += len(argvs)
            pairs = zip(before.dump(directory, argvs), after.dump(directory, argvs), strict=True)
            yield from (f"~ {name}: {line}" for line in answer_changes(pairs))
    yield f"({count} calls were asked)"


def answer_changes(pairs: Iterable[tuple[Dump, Dump]]) -> Iterator[str]:
    """What differs in answers to the same calls, a text of several lines each."""
    calls: dict[str, list[str]] = {}
    for old, new in pairs:
        before, after = (old.rc, old.stdout, old.stderr), (new.rc, new.stdout, new.stderr)
        report = differences(old.argv, before, after) or differences(old.argv, after, before)
        if report:
            calls.setdefault("\n    ".join(report[1:]), []).append(report[0])
    for report_text, asked in calls.items():
        yield asked[0] + (f" and {len(asked) - 1} more calls" if len(asked) > 1 else "") + f"\n    {report_text}"


def sections(release: str) -> Iterator[tuple[str, Iterator[str]]]:
    """Each thing that is compared, with its lines."""
    known, asked = Oracle(NEWEST.release), Oracle(release)
    before, after = facts(known, Path.cwd()), facts(asked, Path.cwd())
    for name in ("levels", "features", "control", "errors"):
        yield name, changes(before[name], after[name])
    for scope in after["configs"]:
        yield f"configurations: {scope}", changes(before["configs"][scope], after["configs"][scope])
    yield "definitions of records", definition_changes(definitions(known), definitions(asked))
    yield "answers of the dump tool", dump_changes(known, asked)


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("make kafka-diff KV=RELEASE", file=sys.stderr)
        return 2
    print(f"Kafka {NEWEST.release} → {argv[0]}")
    for title, lines in sections(argv[0]):
        print(f"\n{title}", *(list(lines) or ["  nothing"]), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
