"""Control records as objects."""

from __future__ import annotations

import json
from typing import Any

from logstore.model import ControlRecordType
from logstore.topics import json_form
from logstore.topics.control_records import read_coordinator_epoch, read_kraft_record, read_type, read_type_id

from .decoders import control_record_text


def control_object(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The type by name and what the record says; raises what the text dies of."""
    control_record_text(key, value)
    record_type = read_type(key or b"")
    if record_type is ControlRecordType.UNKNOWN:
        return {"type": "UNKNOWN", "typeId": read_type_id(key or b"")}
    if record_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return {"type": record_type.name, "coordinatorEpoch": read_coordinator_epoch(value or b"")}
    message, fields = read_kraft_record(record_type, value or b"")
    return {"type": record_type.name, "data": json.loads(json_form.text(message, fields["version"], fields))}
