"""The lines before the batches of a log file: what its name says."""

from __future__ import annotations

from logstore.disk.names import file_name
from logstore.layout.file_names import (
    BOOTSTRAP_SNAPSHOT_NAME,
    LOG_SUFFIX,
    base_offset_of,
    parse_kraft_snapshot_name,
)


def log_header(path: str) -> str:
    """`Log starting offset: …`, or which KRaft snapshot it is.

    Raises:
        InvalidNameError: the name has no number where one must be, in Java's words.
    """
    name = file_name(path)
    if name.endswith(LOG_SUFFIX):
        return f"Log starting offset: {base_offset_of(name)}"
    snapshot = None if name == BOOTSTRAP_SNAPSHOT_NAME else parse_kraft_snapshot_name(name)
    if snapshot is None:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {snapshot.end_offset}, epoch: {snapshot.epoch}"
