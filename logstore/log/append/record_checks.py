"""Checks of single records, and the messages of refusals (`LogValidator.validateRecord`)."""

from __future__ import annotations

import numpy as np

from ...columns.record_table import RecordTable
from ...errors import InvalidRecordError, InvalidTimestampError, RecordError
from ...kernels.primitives import add64
from ...layout.batch import NO_TIMESTAMP
from ...model import TimestampType
from .rules import ValidationRules

_SHOWN_COUNT = 3


class RecordCheck:
    """Checks the records of one batch, chunk by chunk.

    Attributes:
        count: records checked so far.
        max_timestamp: largest so far, in ms; -1 none.
        is_gapless: their offsets are 0, 1, 2, … from the batch's base on.
        errors: of the records so far.
    """

    def __init__(self, rules: ValidationRules, now_ms: int, *, is_log_append_time: bool, record_class: str) -> None:
        """Start a batch.

        Args:
            now_ms: the broker's time.
            is_log_append_time: the batch claims to carry a broker's timestamps.
            record_class: Kafka's class of the records, `DefaultRecord` or `PartialDefaultRecord`; messages show it.
        """
        self._rules = rules
        self._now_ms = now_ms
        self._is_log_append_time = is_log_append_time
        self._record_class = record_class
        self._has_bad_timestamp = False
        self.count = 0
        self.max_timestamp = NO_TIMESTAMP
        self.is_gapless = True
        self.errors: list[RecordError] = []

    def take(self, records: RecordTable) -> None:
        """Check the next records."""
        rules, timestamps = self._rules, records.timestamp
        has_no_key = (records.key_size < 0) & rules.is_compacted
        is_checked = timestamps != NO_TIMESTAMP
        if rules.timestamp_type is not TimestampType.CREATE_TIME:
            is_checked = np.zeros(len(records), np.bool_)
        age = self._now_ms - timestamps  # wraps around on overflow, as in Java
        is_out_of_range = (age > rules.timestamp_before_max_ms) | (-age > rules.timestamp_after_max_ms)
        is_out_of_range &= is_checked
        has_wrong_type = ~is_checked & self._is_log_append_time
        for row in np.flatnonzero(has_no_key | is_out_of_range | has_wrong_type).tolist():
            if has_no_key[row]:
                message = (
                    f"Compacted topic cannot accept message without key in topic partition {rules.topic_partition}"
                )
            else:
                message = self._out_of_range(records, row) if is_out_of_range[row] else self._wrong_type(records, row)
                self._has_bad_timestamp = True
            self.errors.append(RecordError(self.count + row, message))
        self.max_timestamp = max(self.max_timestamp, int(timestamps.max(initial=NO_TIMESTAMP)))
        expected_offsets = np.arange(self.count, self.count + len(records))
        self.is_gapless = self.is_gapless and bool((records.offset == expected_offsets).all())
        self.count += len(records)

    def require_none(self) -> None:
        """Raise InvalidTimestampError or InvalidRecordError with all `record_errors`, if there are any."""
        if not self.errors:
            return
        error: InvalidTimestampError | InvalidRecordError
        if self._has_bad_timestamp:
            error = InvalidTimestampError("One or more records have been rejected due to invalid timestamp")
        else:
            shown = ", ".join(map(str, self.errors[:_SHOWN_COUNT]))
            error = InvalidRecordError(
                f"One or more records have been rejected due to {len(self.errors)} record errors in total, and only "
                f"showing the first three errors at most: [{shown}]"
            )
        error.record_errors = tuple(self.errors)
        raise error

    def _out_of_range(self, records: RecordTable, row: int) -> str:
        earliest = add64(self._now_ms, -self._rules.timestamp_before_max_ms)
        latest = add64(self._now_ms, self._rules.timestamp_after_max_ms)
        return (
            f"Timestamp {records.timestamp[row]} of message with offset {records.offset[row]} is out of range. The "
            f"timestamp should be within [{earliest}, {latest}]"
        )

    def _wrong_type(self, records: RecordTable, row: int) -> str:
        key_size, value_size = int(records.key_size[row]), int(records.value_size[row])
        if self._record_class == "DefaultRecord":
            key_size, value_size = max(key_size, 0), max(value_size, 0)
        return (
            f"Invalid timestamp type in message {self._record_class}(offset={records.offset[row]}, "
            f"timestamp={records.timestamp[row]}, key={key_size} bytes, value={value_size} bytes). Producer should not "
            "set timestamp type to LogAppendTime."
        )
