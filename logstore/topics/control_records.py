"""Values of the control records that KRaft writes about itself (`ControlRecordUtils`); `folds` reads markers.

A value is a body that begins with its own version; Kafka reads every body as version 0.

>>> read_kraft_record(ControlRecordType.KRAFT_VERSION, bytes.fromhex("0000 0001 00"))[1]
{'version': 0, 'kRaftVersion': 1}
"""

from __future__ import annotations

from ..config.kafka_version import NEWEST, KafkaVersion
from ..errors import SchemaError
from ..messages.reader import read
from ..messages.schema import Message, Value
from ..messages.writer import write
from ..model import ControlRecordType
from . import family

_MESSAGES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}


def read_kraft_record(
    record_type: ControlRecordType, value: bytes, kafka: KafkaVersion = NEWEST
) -> tuple[Message, Value]:
    """Return the message and the fields of a KRaft control record; raises SchemaError."""
    if record_type not in _MESSAGES:
        raise SchemaError("This is no control record of KRaft", found=record_type.name)
    message = family("control_records", kafka)[_MESSAGES[record_type]]
    return message, read(message, 0, value)


def write_kraft_record(record_type: ControlRecordType, fields: Value) -> bytes:
    """Return the value of a KRaft control record, in version 0; raises SchemaError."""
    return write(family("control_records")[_MESSAGES[record_type]], 0, fields)
