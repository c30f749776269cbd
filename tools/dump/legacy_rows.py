"""Batches of magic 0 and 1 and their records as rows.

Source: `DumpLogSegments.printBatchLevel`, `dumpBatchRecords`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.columns.legacy import LegacyRecord
from logstore.errors import CorruptRecordError, InvalidRecordError
from logstore.layout.legacy import MAGIC
from logstore.model import TimestampType

from .options import DumpOptions
from .output import Row

if TYPE_CHECKING:
    from .decoders import MessageParser


def legacy_batch(row: Row, entry: LegacyRecord, position: int, size: int) -> None:
    """Put into `row` the fields of the line of the batch of `size` bytes at `position`; of a bad one the offset alone.

    Raises:
        CorruptRecordError: a negative magic.
        UnsupportedCompressionTypeError: a codec id that Kafka does not know.
    """
    row["lastOffset"] = entry.offset
    if entry.magic < 0:
        raise CorruptRecordError(
            f"Invalid magic used in LegacyRecord: {entry.magic}",
            position=position + MAGIC,
            java_class="java.lang.IllegalArgumentException",
        )
    row |= {
        "position": position,
        "timestampType": entry.timestamp_type.kafka_name,
        "maxTimestamp": entry.timestamp,
        "size": size,
        "magic": entry.magic,
        "codec": entry.codec.kafka_name,
        "crc": entry.crc,
        "isValid": entry.is_valid,
    }


def legacy_record(row: Row, record: LegacyRecord, timestamp_type: TimestampType, options: DumpOptions) -> None:
    """Put into `row` the fields of a record's line, as far as there are any; the timestamp type is the entry's.

    Raises:
        InvalidRecordError: the record is too short to say its sizes, or for its key or value.
        LogstoreError: what a decoder dies of.
    """
    if not options.skips_metadata:
        row |= {
            "offset": record.offset,
            "timestampType": timestamp_type.kafka_name,
            "timestamp": record.timestamp,
            "keySize": record.key_size,
            "valueSize": record.value_size,
            "crc": record.crc,
            "isValid": record.is_valid,
        }
    if options.prints_contents:
        is_decoded = options.needs_python or options.format == "text"
        row["key"], row["value"] = (
            _texts(record, options) if is_decoded else (_copied(record.key), _copied(record.value))
        )


def _texts(record: LegacyRecord, options: DumpOptions) -> tuple[str | None, str | None]:
    """Key and payload as the chosen decoder shows them; None prints nothing."""
    if options.parser is None:
        # In this order: a key that does not decode is found before a value whose size is wrong.
        key_text = None if record.key is None else options.key_decoder(bytes(record.key))
        return key_text, None if record.value is None else options.value_decoder(bytes(record.value))
    try:
        key, value = _copied(record.key), _copied(record.value)
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
            value = _copied(record.value)
        except InvalidRecordError:
            noun = "" if parser is message_parser("cluster-metadata") else "offset "
            return None, f"Error at {noun}{text}"
        return parser(record.offset, None, value)
    if record.key_size < 0:
        return parser(record.offset, None, None)
    return f"Error at offset {text}", None


def _copied(field: memoryview | None) -> bytes | None:
    """Return a key or a value as bytes of its own."""
    return None if field is None else bytes(field)
