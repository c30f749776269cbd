"""A segment opened anew and decoded, as `FileRecords` is read; for processes of their own as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from logstore.columns.in_order import in_order
from logstore.columns.record_windows import RecordWindow
from logstore.disk.mapped import MappedFile
from logstore.view.read import Fetched, OffsetMetadata, ReadBounds
from logstore.view.window_decoder import WindowDecoder

INT64_MAX = 2**63 - 1


def windows_of(path: Path, *, is_ahead: bool) -> Iterator[RecordWindow]:
    """The records of a segment that is opened anew, as `FileRecords` is: every checksum, every record.

    A helper decodes beside the reader, or all is done in turn.
    """
    data = MappedFile(str(path)).data
    bounds = ReadBounds("t-0", 0, INT64_MAX, INT64_MAX, INT64_MAX)
    fetched = Fetched(data, OffsetMetadata(0, 0, 0), str(path), False, None, bounds)
    decoder = WindowDecoder(fetched, 0, None, is_committed=False, check_crc=True)
    parts = in_order(decoder.next_window, decoder.decode) if is_ahead else decoder.decoded()
    return (window for part in parts for window in part.windows if isinstance(window, RecordWindow))


def decode_all(path: Path, *, is_ahead: bool = False) -> int:
    """The number of records."""
    return sum(len(window.records) for window in windows_of(path, is_ahead=is_ahead))


def sums_of(path: Path, *, is_ahead: bool) -> tuple[int, int]:
    """(records, bytes of values and how many offsets are odd), as `LogBench.java` has them."""
    count = size = 0
    for window in windows_of(path, is_ahead=is_ahead):
        count += len(window.records)
        size += int((window.records.value_size + window.records.offset % 2).sum())
    return count, size
