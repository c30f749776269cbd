r"""Offset checkpoints, in a data directory: one offset per partition (`OffsetCheckpointFile`).

    recovery-point-offset-checkpoint   first offset that may be unflushed; 0 for a missing partition
    log-start-offset-checkpoint        log start offset, of tiered logs and where above the first segment's base offset
    replication-offset-checkpoint      high watermark
    cleaner-offset-checkpoint          first offset that the cleaner has not cleaned

Text as in `checkpoint`, version 0; an entry is `<topic> <partition> <offset>`. The order of entries has no meaning.

>>> parse_offset_checkpoint(bytes.fromhex("300a 310a 6f726465727320302034320a"), path="/d/r-p-o-c")
{('orders', 0): 42}
"""

from __future__ import annotations

from .checkpoint import int_field, long_field, parse_checkpoint

VERSION = 0
RECOVERY_POINT_FILE_NAME = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE_NAME = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE_NAME = "replication-offset-checkpoint"
CLEANER_OFFSET_FILE_NAME = "cleaner-offset-checkpoint"
FILE_NAMES = (
    RECOVERY_POINT_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    HIGH_WATERMARK_FILE_NAME,
    CLEANER_OFFSET_FILE_NAME,
)


def parse_offset_checkpoint(data: bytes, *, path: str) -> dict[tuple[str, int], int]:
    """Return the offset of each (topic, partition), of two entries the last; raises as `parse_checkpoint`."""
    return dict(parse_checkpoint(data, version=VERSION, path=path, parse_entry=_parse_entry))


def _parse_entry(fields: list[str]) -> tuple[tuple[str, int], int] | None:
    if len(fields) != 3:
        return None
    topic, partition, offset = fields
    return (topic, int_field(partition)), long_field(offset)
