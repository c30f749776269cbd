"""Transaction marker: control batch with one record that commits or aborts (`EndTransactionMarker`, KIP-98).

| position | size | field               | note                                                  |
|----------|------|---------------------|-------------------------------------------------------|
| 0        | 61   | header of the batch | see `batch`; transactional, control, base sequence -1 |
| 61       | 1    | length              | varint, 16                                            |
| 62       | 1    | attributes          | 0                                                     |
| 63       | 2    | deltas              | of timestamp and offset, 0                            |
| 65       | 1    | key size            | varint, 4                                             |
| 66       | 2    | key version         | 0                                                     |
| 68       | 2    | control type        | 0 abort, 1 commit                                     |
| 70       | 1    | value size          | varint, 6                                             |
| 71       | 2    | value version       | 0                                                     |
| 73       | 4    | coordinator epoch   |                                                       |
| 77       | 1    | header count        | 0                                                     |

Odd case: a later version may write longer ones; a control batch of another form is read like any other batch.

>>> marker_record(1, 4).hex(" ")
'20 00 00 00 08 00 00 00 01 0c 00 00 00 00 00 04 00'
"""

from __future__ import annotations

import struct

from .batch import RECORDS

RECORD_LENGTH = RECORDS
DELTAS = 63
KEY_SIZE = 65
KEY_VERSION = 66
CONTROL_TYPE = 68
VALUE_SIZE = 70
VALUE_VERSION = 71
COORDINATOR_EPOCH = 73
HEADER_COUNT = 77
MARKER_SIZE = 78

# encoded varints of the three sizes
RECORD_LENGTH_BYTE = 2 * 16
KEY_SIZE_BYTE = 2 * 4
VALUE_SIZE_BYTE = 2 * 6

_RECORD = struct.Struct(">bbhbhhbhib")


def marker_record(control_type: int, coordinator_epoch: int) -> bytes:
    """Return a marker's record with its length; raises struct.error for an epoch that is no int32."""
    key_and_value = KEY_SIZE_BYTE, 0, control_type, VALUE_SIZE_BYTE, 0, coordinator_epoch
    return _RECORD.pack(RECORD_LENGTH_BYTE, 0, 0, *key_and_value, 0)
