"""The marker that ends a transaction, as a batch of one record."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.structs import bytes_at, words_at
from ..layout.batch import HEADER_SIZE
from . import scan
from .append_records import put_batch_header

MARKER_SIZE = 78  # bytes
_RECORD_SIZE = MARKER_SIZE - HEADER_SIZE
_LENGTH, _KEY_LENGTH, _TYPE, _VALUE_LENGTH, _EPOCH = 0, 4, 8, 9, 12  # positions in the record


@device
def put_marker(log: Any, fast: Any, request: Any) -> int:
    """Write the batch (`MemoryRecords.writeEndTransactionalMarker`); returns its bytes, 0 without room for it."""
    if min(fast.out_size, fast.batch_size_max) < MARKER_SIZE or request.now_ms < 0:
        return 0
    out, row = bytes_at(fast.out), words_at(fast.row)
    for position in range(HEADER_SIZE, MARKER_SIZE):
        out[position] = 0
    out[HEADER_SIZE + _LENGTH] = 2 * (_RECORD_SIZE - 1)
    out[HEADER_SIZE + _KEY_LENGTH] = 2 * 4
    out[HEADER_SIZE + _TYPE] = request.marker_type
    out[HEADER_SIZE + _VALUE_LENGTH] = 2 * 6
    for byte in range(4):
        out[HEADER_SIZE + _EPOCH + byte] = (request.coordinator_epoch >> (24 - 8 * byte)) & 0xFF
    row[scan.BASE_TIMESTAMP] = request.now_ms
    row[scan.MAX_TIMESTAMP] = request.now_ms
    return put_batch_header(log, fast, request, MARKER_SIZE)
