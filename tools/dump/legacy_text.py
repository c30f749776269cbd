"""Batches of magic 0 and 1 and their records as rows and as text.

Source: `DumpLogSegments.printBatchLevel`, `dumpBatchRecords`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from logstore.columns.legacy import LegacyRecord, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX
from logstore.errors import CorruptRecordError, InvalidRecordError, LogstoreError
from logstore.layout.legacy import MAGIC
from logstore.model import TimestampType

from .options import DumpOptions
from .output import Row

if TYPE_CHECKING:
    from .decoders import MessageParser


def legacy_batch(entry: LegacyRecord, position: int, size: int) -> Row:
    """Return the fields of the line of the batch of `size` bytes at `position`.

    Raises:
        CorruptRecordError: a negative magic.
        UnsupportedCompressionTypeError: a codec id that Kafka does not know.
    """
    if entry.magic < 0:
        raise CorruptRecordError(
            f"Invalid magic used in LegacyRecord: {entry.magic}",
            position=position + MAGIC,
            java_class="java.lang.IllegalArgumentException",
        )
    return {
        "lastOffset": entry.offset,
        "position": position,
        "timestampType": entry.timestamp_type.kafka_name,
        "maxTimestamp": entry.timestamp,
        "size": size,
        "magic": entry.magic,
        "codec": entry.codec.kafka_name,
        "crc": entry.crc,
        "isValid": entry.is_valid,
    }


def legacy_metadata(record: LegacyRecord, timestamp_type: TimestampType) -> Row:
    """Return the fields of a record's line before key and payload; the timestamp type is that of the file's entry.

    Raises:
        InvalidRecordError: the record is too short to say its sizes.
    """
    return {
        "offset": record.offset,
        "timestampType": timestamp_type.kafka_name,
        "timestamp": record.timestamp,
        "keySize": record.key_size,
        "valueSize": record.value_size,
        "crc": record.crc,
        "isValid": record.is_valid,
    }


def legacy_batch_line(entry: LegacyRecord, position: int, size: int) -> Iterator[bytes]:
    """Yield the line of the batch of `size` bytes at `position`, in the pieces that are printed one by one.

    Raises what `legacy_batch` raises, after the first piece.
    """
    yield f"offset: {entry.offset}".encode()
    row = legacy_batch(entry, position, size)
    yield (
        f" position: {position} {row['timestampType']}: {row['maxTimestamp']} size: {size} magic: {row['magic']} "
        f"compresscodec: {row['codec']} crc: {row['crc']} isvalid: {_boolean(entry.is_valid)}\n"
    ).encode()


def legacy_record_lines(
    entry: LegacyRecord, options: DumpOptions, passes: Callable[[LegacyRecord], bool]
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of every record of a batch that passes.

    Raises what reading the records dies of, see `read_legacy_records`; of a record that fails while it is printed, what
    was printed of its line comes first.
    """
    for record in filter(passes, read_legacy_records(entry, DECOMPRESSED_SIZE_MAX)):
        line = b""
        try:
            if not options.skips_metadata:
                line += _metadata(legacy_metadata(record, entry.timestamp_type)).encode()
            if options.prints_contents:
                line += contents_text(legacy_texts(record, options), options).encode("utf-8", "replace")
        except LogstoreError:
            yield record.offset, line
            raise
        yield record.offset, line + b"\n"


def _metadata(row: Row) -> str:
    return (
        f"| offset: {row['offset']} {row['timestampType']}: {row['timestamp']} keySize: {row['keySize']} "
        f"valueSize: {row['valueSize']} isValid: {_boolean(row['isValid'] is True)} crc: {row['crc']}"
    )


def contents_text(texts: tuple[str | None, str | None], options: DumpOptions) -> str:
    """Key and payload behind a record's metadata, if that is printed."""
    key_text, value_text = texts
    prefix = "| " if options.skips_metadata else " "
    text = ""
    if key_text is not None:
        text = f"{prefix}key: {key_text}"
        prefix = " "
    if value_text is not None:
        text += f"{prefix}payload: {value_text}"
    return text


def legacy_texts(record: LegacyRecord, options: DumpOptions) -> tuple[str | None, str | None]:
    """Key and payload as the chosen decoder shows them; None prints nothing."""
    if options.parser is None:
        # In this order: a key that does not decode is found before a value whose size is wrong.
        key_text = None if record.key is None else options.key_decoder(bytes(record.key))
        return key_text, None if record.value is None else options.value_decoder(bytes(record.value))
    try:
        key, value = copied(record.key), copied(record.value)
    except InvalidRecordError as error:
        return _parsed_despite(record, options.parser, error)
    return options.parser(record.offset, key, value)


def _parsed_despite(
    record: LegacyRecord, parser: MessageParser, error: InvalidRecordError
) -> tuple[str | None, str | None]:
    """Of a record whose key or value is beyond its end: Kafka's parsers find that themselves, and print it."""
    from .decoders import message_parser

    text = f"{record.offset}, skipping. {error.message or 'null'}"
    if parser in (message_parser("cluster-metadata"), message_parser("remote-log-metadata")):
        try:
            value = copied(record.value)
        except InvalidRecordError:
            noun = "" if parser is message_parser("cluster-metadata") else "offset "
            return None, f"Error at {noun}{text}"
        return parser(record.offset, None, value)
    if record.key_size < 0:
        return parser(record.offset, None, None)
    return f"Error at offset {text}", None


def copied(field: memoryview | None) -> bytes | None:
    """Return a key or a value as bytes of its own."""
    return None if field is None else bytes(field)


def _boolean(value: bool) -> str:
    return "true" if value else "false"
