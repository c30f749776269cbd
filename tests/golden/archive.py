"""Where the golden directories lie, and how they and the recorded answers are packed."""

from __future__ import annotations

import json
import lzma
import shutil
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent
UNPACKED = "demo"
NAMES = (
    "demo",
    "records",
    "transactions",
    "transactions-v1",
    "transactions-v0",
    "killed",
    "compacted",
    "groups",
    "cluster",
    "newest",
    "legacy",
    "control",
    "schemas",
    "streams",
    "edges",
    "random",
)


def stored(name: str) -> Path:
    """The directory or archive that holds the golden directory `name`."""
    return GOLDEN / name if name == UNPACKED else GOLDEN / f"{name}.tar.xz"


def store(directory: Path, name: str) -> None:
    """Keeps `directory` as the golden directory `name`; archives depend on names and contents only."""
    if name == UNPACKED:
        shutil.rmtree(stored(name), ignore_errors=True)
        shutil.copytree(directory, stored(name))
        return
    with tarfile.open(stored(name), "w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
        for path in sorted(directory.rglob("*")):
            archive.add(path, str(path.relative_to(directory)), recursive=False, filter=_anonymous)


def unpack(name: str, destination: Path) -> Path:
    """A fresh copy of the golden directory `name`, at `destination / name`."""
    directory = destination / name
    if name == UNPACKED:
        shutil.copytree(stored(name), directory)
        return directory
    directory.mkdir(parents=True)
    with tarfile.open(stored(name), "r:xz") as archive:
        archive.extractall(directory, filter="data")
    return directory


def answers(name: str) -> Path:
    """The file with what the real tool answered about the golden directory `name`."""
    return GOLDEN / f"{name}.dump.jsonl.xz"


def overlay() -> Path:
    """The file with the answers of Kafka 4.4.0 that are others than those of 4.3.1; `name` says to which set."""
    return GOLDEN / "overlay-4.4.0.dump.jsonl.xz"


@cache
def _overlaid() -> dict[str, dict[str, Any]]:
    return {_key(row["name"], row): row for row in read_rows(overlay())}


def _key(name: str, row: dict[str, Any]) -> str:
    return json.dumps([name, row["argv"]])


def read_newest(name: str, path: Path) -> list[dict[str, Any]]:
    """The recorded rows of a set, with the newest Kafka's answers in the place of those that are others."""
    return [_overlaid().get(_key(name, row), row) for row in read_rows(path)]


def read_older(name: str, path: Path) -> list[dict[str, Any]]:
    """The rows of a set to which the newest Kafka answers otherwise, as 4.3.1 answers them, and is asked for it."""
    rows = [row for row in read_rows(path) if _key(name, row) in _overlaid()]
    return [{**row, "argv": ["--kafka-version", "4.3", *row["argv"]]} for row in rows]


def read_rows(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with lzma.open(path, "wt", preset=9 | lzma.PRESET_EXTREME, encoding="utf-8", newline="\n") as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member
