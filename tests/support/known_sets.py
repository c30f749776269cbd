"""What a release of Kafka knows, from its jars, and what of it logstore leaves out, from `tests/kafka/left_out.txt`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from logstore.config.kafka_version import KafkaVersion
from tests.support.oracle import HERE, Oracle

LEFT_OUT = HERE / "left_out.txt"


def facts(oracle: Oracle, cwd: Path) -> dict[str, Any]:
    """The answer of `Facts.java`, which says what stands in it."""
    found: dict[str, Any] = json.loads(oracle.run("Facts", cwd=cwd))
    return found


def left_out(scope: str, kafka: KafkaVersion) -> set[str]:
    """The names of a scope that are left out of what a version has; those that end in `*` are beginnings of names."""
    return {name for name, since in _left_out()[scope] if kafka.knows(since)}


def split_by(left: set[str], names: set[str]) -> tuple[set[str], set[str]]:
    """The names that `left` says, and the entries of `left` that say none of them."""
    said = {entry: {name for name in names if _says(entry, name)} for entry in left}
    return set().union(*said.values()), {entry for entry, found in said.items() if not found}


def _says(entry: str, name: str) -> bool:
    return name.startswith(entry[:-1]) if entry.endswith("*") else name == entry


@cache
def _left_out() -> dict[str, list[tuple[str, str | None]]]:
    """Scope to names, each with the version that it came with."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    scope = ""
    for line in LEFT_OUT.read_text().splitlines():
        if line.startswith("["):
            scope = line.strip("[]")
            found[scope] = []
        elif line.startswith(" "):
            since, colon, names = line.strip().partition(": ")
            found[scope] += [(name, since if colon else None) for name in (names if colon else since).split()]
    return found
