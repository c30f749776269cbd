"""Samples: some batches of a partition as a directory of their own, to be shown to others.

Offsets, times, producers and sequences stay; keys and values can be redacted.

A redacted key or value is replaced by hexadecimal letters of its own length, which depend on it and on a secret of the
sample: equal ones stay equal, and nobody can find one by trying. Header keys stay, header values do not. A batch that
was compressed is written uncompressed, as its size would change anyway.

Only the taken batches are read: the offset index leads to the first, beside a running broker too.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from logstore.columns.batch_table import BatchTable, ByteArray, headers
from logstore.columns.legacy import check_all
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.disk.atomic import write_file
from logstore.disk.directory import PartitionFiles, SegmentFiles, list_partition_directory
from logstore.disk.loaded import LoadedFile, open_log
from logstore.disk.mapped import MappedFile
from logstore.disk.names import absolute_path, child
from logstore.disk.seam import SEAM, Seam
from logstore.disk.side_files import read_offset_index
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.kernels.decode import records as record_fields
from logstore.kernels.scan.crc32c import crc32c
from logstore.kernels.varint import read_header
from logstore.layout import batch as layout
from logstore.layout.batch import MAGIC_V2
from logstore.layout.file_names import LOG_SUFFIX, METADATA_TOPIC, segment_file_name
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import recover_partition
from logstore.log.state import LogState
from logstore.topics import INTERNAL_TOPICS
from logstore.view.walk import OFFSET_SPAN

from .copying import copy_metadata, new_copy, require_new_directory
from .read_back import Expected, require_as_planned

_INTERNAL = INTERNAL_TOPICS | {METADATA_TOPIC}


class Redaction:
    """Replaces bytes by letters that depend on a secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def letters(self, data: bytes) -> bytes:
        """Return as many hexadecimal digits as `data` has bytes.

        >>> redaction = Redaction(b"s")
        >>> len(redaction.letters(b"customer-42")), redaction.letters(b"a") == redaction.letters(b"a")
        (11, True)
        """
        digest = hashlib.blake2b(data, key=self._secret, digest_size=32).digest()
        return hashlib.shake_256(digest).hexdigest((len(data) + 1) // 2)[: len(data)].encode()


class Sample(NamedTuple):
    """What was taken: batches, those left out because they cannot be read, and the log of the copy."""

    batch_count: int
    skipped_count: int
    log: LogState


def sample(
    path: str,
    destination: str,
    settings: LoadSettings,
    *,
    first_offset: int | None,
    batch_count: int,
    redaction: Redaction | None = None,
    seam: Seam = SEAM,
) -> Sample:
    """Copy `batch_count` batches, from the one that holds `first_offset` on, to the new directory `destination`.

    Args:
        destination: must not exist; its name is that of the same partition.
        settings: for the recovery that builds everything beside the log.
        first_offset: by default the log start of the settings; if there is nothing behind it, the first batch's.

    Raises:
        UsageError: `destination` exists or has another name, or the topic cannot be redacted.
        InvalidNameError, DataDirectoryError: the partition cannot be read, lacks the offset, or a write failed.
    """
    destination = absolute_path(destination)
    files = list_partition_directory(path)
    _require(files, destination, redaction)
    taken = _taken(files, settings.log_start_offset if first_offset is None else first_offset, batch_count, redaction)
    if not taken.batches and first_offset is None and files.segments:
        taken = _taken(files, files.segments[0].base_offset, batch_count, redaction)
    if not taken.batches:
        raise DataDirectoryError(
            "The partition has no batch of this offset or behind it that can be taken",
            path=path,
            offset=first_offset,
            found=f"{taken.skipped_count} batches that cannot be read or redacted",
            advice="`logstore dump` shows what is there",
        )
    with new_copy(files, destination, seam) as directory:
        name = segment_file_name(taken.base_offset, LOG_SUFFIX)
        write_file(seam, child(directory, name), taken.batches)
        copy_metadata(files, directory, seam)
        log, _ = recover_partition(directory, replace(settings, log_start_offset=0), seam)
        count, _ = require_as_planned(directory, [taken.expected])
    return Sample(count, taken.skipped_count, log)


class _Taken(NamedTuple):
    """Batches as they come into the copy; `expected` is what is to be read there again."""

    batches: list[bytes]
    base_offset: int
    expected: Expected
    skipped_count: int


def _taken(files: PartitionFiles, first_offset: int, count: int, redaction: Redaction | None) -> _Taken:
    """Take batches from the one that holds the offset on, as many as one segment can hold."""
    batches, skipped_count, damaged_count, base_offset, first, end = list[bytes](), 0, 0, 0, 0, 0
    for segment in _from_floor(files, first_offset):
        if batches or skipped_count:
            break
        with open_log(segment.log) as log:
            for table, row in _rows(log, segment, first_offset, count):
                if table.is_valid[row] != 1:
                    damaged_count += 1
                    continue
                base, last = int(table.base_offset[row]), int(table.last_offset[row])
                if not batches:
                    base_offset, first = min(base, last), base
                if not 0 <= last - base_offset < OFFSET_SPAN:
                    break
                try:
                    batches.append(_batch(log.data, table, row, redaction))
                except LogstoreError:
                    skipped_count += 1
                else:
                    end = last + 1
    size = sum(map(len, batches))
    expected = Expected(base_offset, size, len(batches), first, end)
    return _Taken(batches, base_offset, expected, skipped_count + damaged_count)


def _require(files: PartitionFiles, destination: str, redaction: Redaction | None) -> None:
    require_new_directory(files, destination)
    if redaction is not None and files.topic in _INTERNAL:
        raise UsageError(
            "Records of an internal topic cannot be read any more once they are redacted",
            path=files.path,
            advice="leave the topic out of what you share",
        )


def _from_floor(files: PartitionFiles, offset: int) -> list[SegmentFiles]:
    """Return the segments from the one on that may hold the offset; raise DataDirectoryError if all begin above it."""
    row = bisect_right(files.segments, offset, key=lambda segment: segment.base_offset)
    if files.segments and not row:
        raise DataDirectoryError("The partition has no segment of this offset", path=files.path, offset=offset)
    return list(files.segments[max(row - 1, 0) :])


def _rows(
    log: MappedFile | LoadedFile, segment: SegmentFiles, first_offset: int, count: int
) -> Iterator[tuple[BatchTable, int]]:
    """Yield so many good batches from the one that holds the offset on, and damaged ones among them."""
    position = 0
    if segment.offset_index is not None:
        position = max(read_offset_index(segment.offset_index).lookup(first_offset)[1], 0)
    for table in headers(log.data, position, load=log.load):
        check_all(log.data, table)
        for row in range(len(table)):
            if count > 0 and int(table.last_offset[row]) >= first_offset:
                yield table, row
                count -= int(table.is_valid[row] == 1)
        if count <= 0:
            return


def _batch(data: ByteArray, table: BatchTable, row: int, redaction: Redaction | None) -> bytes:
    """Return the batch's bytes, with a new checksum if redacted."""
    start = int(table.position[row])
    whole = data[start : start + int(table.size[row])].tobytes()
    attributes = int(table.attributes[row])
    magic = int(table.magic[row])
    if redaction is not None and magic != MAGIC_V2:
        raise UsageError("A message of this magic cannot be redacted", expected=f"magic {MAGIC_V2}", found=magic)
    if redaction is None or attributes & layout.CONTROL_FLAG or not int(table.record_count[row]):
        return whole
    records = BatchRecords(data, table, row)
    is_plain = records.data is data
    origin = start + layout.HEADER_SIZE if is_plain else 0
    body = bytearray(whole[layout.HEADER_SIZE :] if is_plain else records.data.tobytes())
    for chunk in records.chunks():
        for index in range(len(chunk)):
            for position, size in _secrets(chunk, index):
                place = slice(position - origin, position - origin + size)
                body[place] = redaction.letters(bytes(body[place]))
    header = bytearray(whole[: layout.HEADER_SIZE])
    size = layout.HEADER_SIZE + len(body) - layout.LOG_OVERHEAD_SIZE
    struct.pack_into(">i", header, layout.BATCH_LENGTH, size)
    struct.pack_into(">h", header, layout.ATTRIBUTES, attributes & ~layout.CODEC_MASK)
    struct.pack_into(">I", header, layout.CRC, crc32c(bytes(header[layout.ATTRIBUTES :]) + bytes(body)))
    return bytes(header) + bytes(body)


def _secrets(chunk: RecordTable, index: int) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of a record's key, value and header values that are not null."""
    row = chunk.matrix[:, index].tolist()
    for position_field, size_field in (
        (record_fields.KEY_POSITION, record_fields.KEY_SIZE),
        (record_fields.VALUE_POSITION, record_fields.VALUE_SIZE),
    ):
        if row[size_field] > 0:
            yield row[position_field], row[size_field]
    data, position = chunk.data.data, row[record_fields.HEADERS_POSITION]
    for _ in range(row[record_fields.HEADER_COUNT]):
        _, _, value_size, position = read_header(data, position, len(data))
        if value_size > 0:
            yield position - value_size, value_size
