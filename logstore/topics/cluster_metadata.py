"""Records of `__cluster_metadata`, the log of KRaft's controllers: brokers, topics, partitions, configurations, …

Keys are null. A decoded value is its message and a dict of the fields in `tables/cluster_metadata.txt`.

>>> record = decode_value(bytes.fromhex("01 02 00 07 6f7264657273 00112233445566778899aabbccddeeff 00"))
>>> record.message.name, record.fields
('TopicRecord', {'name': 'orders', 'topicId': 'ABEiM0RVZneImaq7zN3u_w'})
>>> encode_value("TopicRecord", record.fields).hex()
'010200076f726465727300112233445566778899aabbccddeeff00'
"""

from __future__ import annotations

from ..messages.cursor import errors_at
from ..messages.schema import Value
from . import family
from .frames import DecodedValue, read_record, write_record

TOPIC = "__cluster_metadata"


def decode_value(value: bytes, *, offset: int | None = None) -> DecodedValue:
    """Decode a metadata record; `record.message.name` is its kind, e.g. `PartitionRecord`.

    A version of a newer Kafka is read as the newest known one, see `DecodedValue.is_newer`. SchemaError names `offset`.
    """
    with errors_at(offset):
        return read_record("cluster_metadata", value)


def encode_value(name: str, fields: Value, *, version: int | None = None) -> bytes:
    """Encode a metadata record `name`, e.g. `PartitionRecord`, by default in its last version.

    Fields that are missing have their defaults. Raises SchemaError for an unknown name and values that the schema
    refuses.
    """
    return write_record("cluster_metadata", name, _last_version(name) if version is None else version, fields)


def _last_version(name: str) -> int:
    message = family("cluster_metadata").get(name)
    return 0 if message is None else message.versions.high
