"""`recover` asked as LogCheck is asked, and where the two disagree."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from logstore.errors import LogstoreError
from logstore.log.load.recover import recover_partition
from tests.recovery.cases import Case
from tests.support.judges import told
from tests.support.recovered_json import as_json
from tests.support.seams import UnsyncedSeam
from tests.support.snapshots import comparable

Answer = dict[str, Any]


INDEX_SIZES = (65_536, 10_485_760)  # of the configurations in `cases`


def answer(case: Case, directory: Path) -> Answer:
    """Recovers `directory`, where the case is laid out; in the form of LogCheck's answers."""
    try:
        recovered, _ = recover_partition(str(directory), case.settings(), UnsyncedSeam())
    except LogstoreError as error:
        return {"error": told(error).replace(str(directory), "@DIR@")}
    return {"state": json.loads(json.dumps(as_json(recovered))), "files": files(directory)}


def files(directory: Path) -> dict[str, str]:
    """Name to size and hash of every file, of a snapshot with its entries sorted by producer id."""
    listed = sorted(path for path in directory.iterdir() if path.is_file())
    return {path.name: described(comparable(path)) for path in listed}


def described(content: bytes) -> str:
    """Size and hash, as LogCheck writes them."""
    return f"{len(content)}:{hashlib.sha256(content).hexdigest()[:16]}"


def is_better(expected: Answer, found: Answer) -> bool:
    """Whether the case is one of three where ours does other than Kafka on purpose.

    - A segment that overflows while its missing index is made is split; Kafka forgets to remove the old one then, and
      has its records twice.
    - A `.log.swap` without its index gets a good index; Kafka makes one of zeros, and believes it.
    - Damage that makes the last offset the largest there is, is told; Kafka deletes all segments.
    """
    segments = expected.get("state", {}).get("segments", ())
    has_split_badly = any((segment["next"] or 0) - segment["base"] > 2**31 for segment in segments)
    has_zeros = any(is_index_of_zeros(name, file) for name, file in expected.get("files", {}).items())
    return has_split_badly or has_zeros or "No offset can follow" in found.get("error", "")


def is_index_of_zeros(name: str, file: str) -> bool:
    """Whether the file is an offset index as large as one may be, and empty."""
    return name.endswith(".index") and file in ZERO_INDEXES


ZERO_INDEXES = {described(bytes(size)) for size in INDEX_SIZES}


def disagreement(expected: Answer, found: Answer) -> str:
    """In which points `found` is not what the real log left; empty if in none.

    Where the real log does not open, neither may ours: that is all that is asked then.
    """
    if is_better(expected, found):
        return ""
    if "error" in expected or "error" in found:
        return "" if ("error" in expected) == ("error" in found) else f"expected {expected}\nfound {found}"
    lines = []
    for part in ("state", "files"):
        for key in sorted(expected[part].keys() | found[part].keys()):
            wanted, got = expected[part].get(key), found[part].get(key)
            if wanted != got:
                lines.append(f"{part} {key}: expected {wanted}, found {got}")
    return "\n".join(lines)
