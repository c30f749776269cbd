"""Control records as values: transaction markers and what KRaft writes about itself, in any topic.

The key holds a version and the type, the value what the type says: markers a version and a body, KRaft's
records a body that begins with its own version. Kafka reads every body as version 0 (`ControlRecordType`,
`ControlRecordUtils`, `EndTransactionMarker`).

>>> read_type(bytes.fromhex("0000 0001")).name, read_coordinator_epoch(bytes.fromhex("0000 00000007"))
('COMMIT', 7)
"""

from __future__ import annotations

from ..errors import InvalidRecordError
from ..messages.cursor import underflow
from ..messages.reader import read
from ..messages.schema import Message, Value
from ..messages.writer import write
from ..model import ControlRecordType
from . import family

_KEY_SIZE = 4

_KNOWN_TYPES = frozenset(ControlRecordType)
_MESSAGES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}


def read_type_id(key: bytes) -> int:
    """The number of the type in a control record's key; it may be one that Kafka does not know.

    Raises InvalidRecordError for a key of less than four bytes or of a negative version.
    """
    if len(key) < _KEY_SIZE:
        raise InvalidRecordError(
            "Invalid value size found for control record key. "
            f"Must have at least {_KEY_SIZE} bytes, but found only {len(key)}"
        )
    _check_version(key, "control record")
    return int.from_bytes(key[2:4], signed=True)


def read_type(key: bytes) -> ControlRecordType:
    """The type in a control record's key, UNKNOWN for a number that Kafka does not know."""
    type_id = read_type_id(key)
    return ControlRecordType(type_id) if type_id in _KNOWN_TYPES else ControlRecordType.UNKNOWN


def read_coordinator_epoch(value: bytes) -> int:
    """The coordinator epoch in the value of a transaction marker.

    Raises InvalidRecordError for a negative version, SchemaError for a value that is cut.
    """
    if len(value) < 2:
        raise underflow()
    _check_version(value, "end transaction marker")
    epoch: int = read(family("control_records")["EndTxnMarker"], 0, value[2:])["coordinatorEpoch"]
    return epoch


def read_kraft_record(record_type: ControlRecordType, value: bytes) -> tuple[Message, Value]:
    """The message and fields of a KRaft control record; raises SchemaError."""
    message = family("control_records")[_MESSAGES[record_type]]
    return message, read(message, 0, value)


def write_kraft_record(record_type: ControlRecordType, fields: Value) -> bytes:
    """The value of KRaft's control record with these fields, in version 0; raises SchemaError."""
    return write(family("control_records")[_MESSAGES[record_type]], 0, fields)


def _check_version(data: bytes, name: str) -> None:
    version = int.from_bytes(data[:2], signed=True)
    if version < 0:
        raise InvalidRecordError(
            f"Invalid version found for {name}: {version}. May indicate data corruption", found=version
        )
