"""What the first planted fault of each rule is told as: the examples of `audit --explain` and of the page of findings.

python -m tests.support.audit_examples      writes them again
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from logstore.audit import checks
from logstore.audit.directory_audit import audit_directory
from logstore.audit.directory_verify import verify_directory
from logstore.audit.finding import Finding
from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from tests.golden.archive import unpack
from tests.support import audit_faults, audit_story_faults

EXAMPLES = Path(checks.__file__).with_name("examples.txt")
SOON_MS = 1000


def examples(place: Path) -> str:
    """A line for each rule, by name: the rule, a tab, and the finding without its severity and advice."""
    lines = (f"{rule}\t{_told(rule, root, findings)}\n" for rule, root, findings in _planted(place))
    return "".join(sorted(lines))


def _planted(place: Path) -> Iterator[tuple[str, Path, Iterable[Finding]]]:
    for rule, (plant, *_) in audit_faults.FAULTS.items():
        root = unpack("transactions", place / rule)
        plant(root)
        yield rule, root, verify_directory(str(root)).findings
    for rule, (batches, *_) in audit_faults.PLAIN_FAULTS.items():
        root = place / f"{rule} of batches"
        root.mkdir()
        partition = open_partition(str(audit_faults.lay_plain(root, batches)))
        yield rule, root, verify_partition(partition).findings
    for rule, (make, *_) in audit_story_faults.FAULTS.items():
        story = make()
        root = story.write(place / f"{rule} of a story")
        yield rule, root, audit_directory(str(root), story.now_ms + SOON_MS).findings


def _told(rule: str, root: Path, findings: Iterable[Finding]) -> str:
    first = next(finding for finding in findings if finding.rule == rule)
    told = f"{first.place}: expected {first.expected}, found {first.found}".replace(f"{root}/", "")
    return " ".join(told.split())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        EXAMPLES.write_text(examples(Path(place)))
