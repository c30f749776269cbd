"""`analyze` and `validate` in one step, quick for what leaders mostly append: one batch with nothing odd about it.

Everything else goes the long way, so that answers and errors are those of `analyze` and `validate`, always.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codec import decompress
from ..columns.batch_table import BatchTable, ByteArray
from ..columns.record_table import DECOMPRESSED_SIZE_MAX
from ..folds.producer_update import AppendOrigin
from ..kernels import decode, scan
from ..kernels import validate as quick
from ..layout.batch import CODEC_MASK, HEADER_SIZE, NO_TIMESTAMP
from ..model import Codec, TimestampType
from .analyze import MAGIC, analyze
from .validate import Validated, validate
from .validation_rules import ValidationRules

_ROOM_MIN = 4096  # bytes
_CLIENT = AppendOrigin.CLIENT


class BatchValidator:
    """The checks of one log's appends; what it keeps between them makes them quick. For one thread at a time.

    Attributes:
        rules: of the log; a log whose configuration changes gets another validator.
    """

    __slots__ = (
        "_batch",
        "_is_log_append_time",
        "_kernel",
        "_records",
        "_result",
        "_row",
        "_slots",
        "_slots_array",
        "_view",
        "rules",
    )

    def __init__(self, rules: ValidationRules) -> None:
        """Begin with the rules; they decide once for all what is quick."""
        self.rules = rules
        self._is_log_append_time = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
        slots = np.zeros(quick.SLOT_COUNT, np.int64)
        slots[quick.BATCH_SIZE_MAX] = rules.max_message_bytes
        slots[quick.CODEC] = -1 if rules.codec is None else rules.codec
        slots[quick.IS_LOG_APPEND_TIME] = self._is_log_append_time
        slots[quick.TIMESTAMP_BEFORE_MAX_MS] = rules.timestamp_before_max_ms
        slots[quick.TIMESTAMP_AFTER_MAX_MS] = rules.timestamp_after_max_ms
        slots[quick.NEEDS_KEYS] = rules.is_compacted
        matrix = np.zeros((scan.COLUMN_COUNT, 1), np.int64)
        self._batch = np.zeros(_ROOM_MIN, np.uint8)
        self._records = np.zeros((decode.COLUMN_COUNT, quick.ROW_COUNT), np.int64)
        self._kernel = quick.validate_batch.bound(self._batch, slots, matrix, self._records)
        # items of a memoryview come and go quicker than those of an array
        self._slots_array, self._slots, self._row = slots, slots.data, matrix.reshape(-1).data
        self._view: Any = self._batch.data
        self._result = Validated(self._batch, BatchTable(matrix, 1, scan.END, 0), 0, 0, NO_TIMESTAMP, NO_TIMESTAMP)

    def validate(
        self, data: ByteArray | bytes, *, origin: AppendOrigin, base_offset: int, leader_epoch: int, now_ms: int
    ) -> Validated | None:
        """The batch that is to be written, as of `analyze` and `validate`; None if there is no whole one in `data`.

        What is returned is good until the next call, which may use its arrays again.

        Args:
            data: a contiguous buffer of bytes; it is not changed.
            origin: CLIENT or COORDINATOR.

        Raises:
            LogstoreError: as `analyze` and `validate`.
        """
        size = len(data)
        if size > len(self._view):
            if size > self.rules.max_message_bytes:
                return self._validate_all(data, origin, base_offset, leader_epoch, now_ms)
            self._reserve(size)
        self._view[:size] = data
        slots = self._slots
        slots[quick.SIZE] = size
        slots[quick.BASE_OFFSET] = base_offset
        slots[quick.LEADER_EPOCH] = leader_epoch
        slots[quick.NOW_MS] = now_ms
        slots[quick.IS_CLIENT] = origin is _CLIENT
        status = self._kernel.run()
        if status == quick.IS_COMPRESSED:
            status = self._validate_compressed(size)
        if status != quick.OK:
            return self._validate_all(data, origin, base_offset, leader_epoch, now_ms)
        result, row = self._result, self._row
        result.data = self._batch[:size]
        result.table.next_position = size
        result.first_offset = base_offset
        result.last_offset = base_offset + row[scan.RECORD_COUNT] - 1
        result.max_timestamp = row[scan.MAX_TIMESTAMP]
        result.log_append_time = now_ms if self._is_log_append_time else NO_TIMESTAMP
        return result

    def _reserve(self, size: int) -> None:
        self._batch = np.zeros(2 * size, np.uint8)
        self._view = self._batch.data
        self._kernel.set(0, self._batch)

    def _validate_compressed(self, size: int) -> int:
        """Status of the records of the compressed batch that lies ready."""
        codec = Codec(self._row[scan.ATTRIBUTES] & CODEC_MASK)
        stream = decompress(codec, self._view[HEADER_SIZE:size], MAGIC, DECOMPRESSED_SIZE_MAX)
        if stream.error is not None or stream.error_at_end is not None:
            return quick.NOT_QUICK
        table = self._result.table
        return quick.validate_compressed(
            self._batch, stream.data, stream.data.size, self._slots_array, table.matrix, self._records
        )

    def _validate_all(
        self, data: ByteArray | bytes, origin: AppendOrigin, base_offset: int, leader_epoch: int, now_ms: int
    ) -> Validated | None:
        batches = np.frombuffer(data, np.uint8)
        analyzed = analyze(batches, origin=origin, leader_epoch=leader_epoch, rules=self.rules)
        if not analyzed.valid_size:
            return None
        return validate(
            batches,
            analyzed,
            origin=origin,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            rules=self.rules,
        )
