"""What the advice of a finding says, done: by the commands it names, or with files, as an operator does it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from logstore.audit.cluster import Cluster
from logstore.audit.finding import Finding
from logstore.disk.mapped import MappedFile
from logstore.kernels.scan import batches as fields
from logstore.layout.partition_metadata import METADATA_TOPIC_ID
from logstore.view.walk import Run, walk
from logstore_tools.commands import logstore

Mend = Callable[[Path, Finding], None]

COSTS_MORE = frozenset(
    {
        "segment of another partition",  # which of the batches are foreign cannot be told
        "idempotent batch made transactional",  # what its producer wrote behind it is what a broker refuses
    }
)


def good_batches(root: Path) -> set[tuple[str, int, int]]:
    """Partition, base offset and checksum of every good batch, those behind damage too."""
    found = set()
    for path in sorted(root.glob("*-*/[0-9]*.log")):
        with MappedFile(str(path)) as log:
            for _, table, first, end in (piece for piece in walk(log, int(path.stem)) if isinstance(piece, Run)):
                offsets, checksums = (
                    column[first:end].tolist() for column in (table.base_offset, table.column(fields.CRC))
                )
                found |= {(path.parent.name, *each) for each in zip(offsets, checksums, strict=True)}
    return found


def _copied(verb: str) -> Mend:
    """Copy the partition by a command, and put the copy in its place."""

    def run(root: Path, finding: Finding) -> None:
        partition = _partition(root, finding)
        copies = _emptied(root.with_name("copies"))
        done = CliRunner().invoke(logstore, [verb, str(partition), str(copies)])
        assert done.exit_code in (0, 1), done.output
        shutil.rmtree(partition)
        shutil.move(copies / partition.name, partition)

    return run


def _started(root: Path, finding: Finding) -> None:
    """Recover the partition, as a broker does that starts."""
    done = CliRunner().invoke(logstore, ["recover", str(_partition(root, finding)), "--unclean"])
    assert done.exit_code == 0, done.output


def _deleted(root: Path, finding: Finding) -> None:
    Path(str(finding.where.path)).unlink()


def _moved_away(root: Path, finding: Finding) -> None:
    shutil.move(str(finding.where.path), _emptied(root.with_name("away")))


def _identified(root: Path, finding: Finding) -> None:
    """Write the topic's id, as `logstore topics` has it."""
    topic = Cluster(str(root)).topic(str(finding.where.topic))
    topic_id = METADATA_TOPIC_ID if topic is None else topic.topic_id
    (_partition(root, finding) / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def _partition(root: Path, finding: Finding) -> Path:
    return root / f"{finding.where.topic}-{finding.where.partition}"


def _emptied(directory: Path) -> Path:
    """Make a directory anew."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


ADVICE: dict[str, Mend] = {
    **dict.fromkeys(["log-crc", "log-length"], _copied("salvage")),
    **dict.fromkeys(["log-tail", "offset-index", "index-zeros", "transaction-index"], _copied("repair")),
    **dict.fromkeys(["time-index", "time-index-missing", "time-index-end", "leader-epochs"], _copied("repair")),
    **dict.fromkeys(["offset-index-missing", "orphan-index"], _started),
    **dict.fromkeys(["snapshot-state", "snapshot-format"], _deleted),
    "directory-entry": _moved_away,
    "partition-metadata": _identified,
}
