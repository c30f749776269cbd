"""The text of an `.index` (`DumpLogSegments.dumpIndex`), and the check of each entry against the `.log`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from logstore.disk.names import file_name, java_file, sibling
from logstore.disk.side_files import read_offset_index
from logstore.errors import CorruptIndexError
from logstore.layout.file_names import LOG_SUFFIX, base_offset_of

from .findings import Findings
from .index_options import IndexOptions
from .segment_records import ILLEGAL_ARGUMENT, SegmentRecords

_CHUNK_LINE_COUNT = 8192


def dump_offset_index(path: str, options: IndexOptions, out: Callable[[bytes], None], findings: Findings) -> None:
    """Print one line per entry up to the zero tail, and find entries that do not point at their batch.

    Raises:
        InvalidNameError, DataDirectoryError, CorruptIndexError, CorruptRecordError: what the real tool dies of; the
            lines before it are printed.
    """
    _ = options.max_message_size  # a wrong value is found first
    base_offset_of(file_name(path))
    records = SegmentRecords(sibling(path, segment_stem(path) + LOG_SUFFIX))
    require_index(path)
    index = read_offset_index(path)
    if index.entry_count == 0:
        out(f"{java_file(path)} is empty.\n".encode("utf-8", "replace"))
        return
    if options.index_sanity_only:
        index.sanity_check()
        out(f"{java_file(path)} passed sanity check.\n".encode("utf-8", "replace"))
        return
    entry_count = written_entry_count(index.offsets, index.base_offset)
    entries = zip(index.offsets[:entry_count].tolist(), index.positions[:entry_count].tolist(), strict=True)
    write_lines(_checked_lines(path, entries, records, options, findings), out)


def _checked_lines(
    path: str,
    entries: Iterator[tuple[int, int]],
    records: SegmentRecords,
    options: IndexOptions,
    findings: Findings,
) -> Iterator[str]:
    for offset, position in entries:
        last_offset = records.first_batch_last_offset(position, options.max_message_size)
        if last_offset != offset:
            findings.index_mismatch(path, offset, last_offset)
        if not options.verify_only:
            yield f"offset: {offset} position: {position}\n"


def segment_stem(path: str) -> str:
    """The part of the file's name that all files of a segment share."""
    return file_name(path).split(".", 1)[0]


def require_index(path: str) -> None:
    """Raise what the real tool dies of when an index is missing; unlike it, do not create an empty one."""
    if not os.path.lexists(java_file(path)):
        raise CorruptIndexError("Invalid max index size: -1", java_class=ILLEGAL_ARGUMENT)


def written_entry_count(offsets: NDArray[np.int64], base_offset: int) -> int:
    """Entries before the zero tail of a preallocated index: any but the first that says the base offset begins it."""
    zeros = np.flatnonzero(offsets[1:] == base_offset)
    return int(zeros[0]) + 1 if zeros.size else offsets.size


def write_lines(lines: Iterator[str], out: Callable[[bytes], None]) -> None:
    """Write `lines` in chunks; those before an exception are written too."""
    chunk: list[str] = []
    try:
        for line in lines:
            chunk.append(line)
            if len(chunk) == _CHUNK_LINE_COUNT:
                out("".join(chunk).encode())
                chunk.clear()
    finally:
        out("".join(chunk).encode())
