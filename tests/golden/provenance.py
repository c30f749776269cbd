"""The table of hashes that ends PROVENANCE.md: written with the golden directories, checked by a test."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.golden.archive import GOLDEN, NAMES, UNPACKED, answers, overlay, stored

PROVENANCE = GOLDEN / "PROVENANCE.md"
DAMAGED = GOLDEN / "damaged.dump.jsonl.xz"
RECOVERED = [GOLDEN / "golden.logcheck.jsonl.xz", GOLDEN / "damaged.logcheck.jsonl.xz"]
HEADING = "| sha256 | file |\n|---|---|\n"


def hashes() -> dict[str, str]:
    """Relative name to sha256 of every stored file, each file of an unpacked directory included."""
    paths = [path for name in NAMES for path in (stored(name), answers(name))] + [DAMAGED, overlay(), *RECOVERED]
    files = [path for path in paths if path.is_file()]
    files += [path for path in stored(UNPACKED).rglob("*") if path.is_file()]
    return {str(path.relative_to(GOLDEN)): _sha256(path) for path in sorted(files)}


def recorded_hashes() -> dict[str, str]:
    """The same as the document says it."""
    _, _, table = PROVENANCE.read_text().partition(HEADING)
    rows = (line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|"))
    return {name.strip("`"): digest.strip("`") for digest, name in rows}


def write_hashes() -> None:
    """Replaces the table, which ends the document."""
    text, heading, _ = PROVENANCE.read_text().partition(HEADING)
    if not heading:
        raise ValueError(f"no table of hashes in {PROVENANCE}")
    rows = "".join(f"| `{digest}` | `{name}` |\n" for name, digest in hashes().items())
    PROVENANCE.write_text(text + heading + rows)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
