"""Records of a compressed batch that stays as it is, as a leader reads them (`DefaultRecord.readPartiallyFrom`)."""

from __future__ import annotations

from ..columns.record_table import BatchRecords, record_error
from ..errors import InvalidRecordError, LogstoreError
from ..kernels import decode as fields

_PREMATURE_END = "Incorrect declared batch size, premature EOF reached"
_BAD_STRUCTURE = "Found invalid record structure"
_MESSAGES = {
    fields.LENGTH_TOO_LONG: _PREMATURE_END,
    fields.STRUCTURE_TOO_LONG: _BAD_STRUCTURE,
    fields.ENDED_IN_LENGTH: _PREMATURE_END,
    fields.ENDED_IN_STRUCTURE: _BAD_STRUCTURE,
    fields.ENDED_IN_FIELD: "Reached end of input stream before skipping all bytes. Remaining bytes:{detail}",
}
_ENDED = (fields.ENDED_IN_LENGTH, fields.ENDED_IN_STRUCTURE, fields.ENDED_IN_FIELD)


class SkippedRecords(BatchRecords):
    """The records of one compressed v2 batch, with the fields that a leader checks: offset, timestamp and sizes.

    The size that a record gives for itself is not looked at, so records are taken here that no consumer can read.
    """

    __slots__ = ()

    STREAM_SOURCE = fields.SKIPPED_STREAM

    def decode_error(self, status: int) -> LogstoreError:
        """What a failed read dies of, in Kafka's words."""
        if status not in _MESSAGES:
            return record_error(status, self.state)
        if status in _ENDED and self._outcome is not None and self._outcome.error is not None:
            return self._outcome.error
        return InvalidRecordError(
            _MESSAGES[status].format(detail=int(self.state[fields.DETAIL])),
            position=int(self.state[fields.NEXT_POSITION]),
        )
