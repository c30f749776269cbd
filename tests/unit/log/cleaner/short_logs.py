"""Logs short enough to say what must become of each record, their cleaning, and what is in them."""

from __future__ import annotations

from pathlib import Path

from logstore.columns.batch_table import scan
from logstore.disk.seam import Seam
from logstore.log.partition_log import PartitionLog
from tests.kafka.cleaning_cases import NOW, CleaningCase, lay_out, opened
from tests.support.encoder import Batch, Rec

CLEAN_TIME = NOW + 100_000


def opened_case(case: CleaningCase, place: Path, seam: Seam | None = None) -> PartitionLog:
    """The log of the case, laid out in `place`."""
    directory = place / "t-0"
    return opened(directory, lay_out(case, directory), NOW, was_clean=True, seam=seam)


def clean(log: PartitionLog, now_ms: int, checkpoint: int | None = None) -> int:
    """Clean what is to be cleaned at this time; where the next cleaning begins."""
    return log.clean(log.cleanable(checkpoint, now_ms), now_ms)


def described(log: PartitionLog) -> list[tuple[int, int, int, int | None]]:
    """(base offset, last offset, records, delete horizon) of each batch."""
    found = []
    for segment in log.state.segments:
        table = scan(segment.data)
        for row in map(table.row, range(len(table))):
            horizon = row["base_timestamp"] if row["attributes"] & 0x40 else None
            last_offset = row["base_offset"] + row["last_offset_delta"]
            found.append((row["base_offset"], last_offset, row["record_count"], horizon))
    return found


def plain_case(*segments: list[Batch], **config: str) -> CleaningCase:
    """Segments of a log that is compacted, whose old files go at once."""
    settings = {"cleanup.policy": "compact", "file.delete.delay.ms": "0", "internal.segment.bytes": "100000"}
    return CleaningCase(0, list(segments), settings | config)


def keyed(base_offset: int, *keys: bytes, **fields: int) -> Batch:
    """A batch of a record for each key, whose values tell batches apart."""
    records = [Rec(key, b"v%d" % base_offset, offset_delta=number) for number, key in enumerate(keys)]
    return Batch(base_offset, records, len(records) - 1, **fields)
