"""Index files as a load finds and leaves them: checked as little as Kafka checks them, and trimmed."""

from __future__ import annotations

from ...config.topic import SEGMENT_INDEX_BYTES, LogConfig
from ...errors import CorruptIndexError
from ...layout.file_names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from ...layout.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from ...layout.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ..segment.log_segment import LogSegment

_INDEX_ENTRY_SIZES = {OFFSET_INDEX_SUFFIX: OFFSET_ENTRY_SIZE, TIME_INDEX_SUFFIX: TIME_ENTRY_SIZE}


def has_sane_indexes(segment: LogSegment) -> bool:
    """Check the indexes as little as a load does (`LogSegment.sanityCheck`); False if they must be rebuilt."""
    if not segment.has(OFFSET_INDEX_SUFFIX):
        return False
    if not segment.has(TIME_INDEX_SUFFIX):
        segment.directory.replace(segment.file_name(TIME_INDEX_SUFFIX), b"", "was missing; lookups scan instead")
    try:
        segment.transaction_index.sanity_check(segment.base_offset)
    except CorruptIndexError as error:
        if error.java_class != CorruptIndexError.java_class:
            raise
        return False
    return True


def require_index_room(active: LogSegment, config: LogConfig) -> None:
    """Check that the active segment's indexes fit the configured size (`AbstractIndex.resize`)."""
    size_max = config[SEGMENT_INDEX_BYTES]
    for kind, entry_count in (
        (OFFSET_INDEX_SUFFIX, active.offset_index.entry_count),
        (TIME_INDEX_SUFFIX, active.time_index.entry_count),
    ):
        entry_size = _INDEX_ENTRY_SIZES[kind]
        limit = size_max // entry_size * entry_size
        if entry_count * entry_size > limit:
            raise CorruptIndexError(
                f"newPosition > limit: ({entry_count * entry_size} > {limit})",
                path=active.path(kind),
                expected=f"at most {limit} bytes by {SEGMENT_INDEX_BYTES}",
                found=entry_count * entry_size,
                advice=f"give a larger {SEGMENT_INDEX_BYTES}, or recover the directory as not cleanly closed",
                java_class="java.lang.IllegalArgumentException",
            )


def trim_indexes(segment: LogSegment) -> None:
    """Cut index files behind the last whole entry (`AbstractIndex.trimToValidSize`)."""
    directory = segment.directory
    for kind, entry_size in _INDEX_ENTRY_SIZES.items():
        name = segment.file_name(kind)
        odd_size = directory.size(name) % entry_size
        if odd_size:
            directory.truncate(name, directory.size(name) - odd_size, "cut behind the last whole entry")
