"""Records of a compressed batch that stays as it is, as a leader reads them (`DefaultRecord.readPartiallyFrom`)."""

from __future__ import annotations

from collections.abc import Iterator

from ..columns.batch_table import Int64Array
from ..columns.record_table import BatchRecords, RecordTable, record_error
from ..errors import InvalidRecordError, LogstoreError
from ..kernels import decode as fields
from ..kernels import validate_stream as skipping

_PREMATURE_END = "Incorrect declared batch size, premature EOF reached"
_BAD_STRUCTURE = "Found invalid record structure"
_MESSAGES = {
    skipping.LENGTH_TOO_LONG: _PREMATURE_END,
    skipping.STRUCTURE_TOO_LONG: _BAD_STRUCTURE,
    skipping.ENDED_IN_LENGTH: _PREMATURE_END,
    skipping.ENDED_IN_STRUCTURE: _BAD_STRUCTURE,
    skipping.ENDED_IN_FIELD: "Reached end of input stream before skipping all bytes. Remaining bytes:{detail}",
}
_ENDED = (skipping.ENDED_IN_LENGTH, skipping.ENDED_IN_STRUCTURE, skipping.ENDED_IN_FIELD)


class SkippedRecords(BatchRecords):
    """The records of one compressed v2 batch, of which only offsets, timestamps and sizes are known.

    The size that a record gives for itself is not looked at, so records are taken here that no consumer can read.
    """

    __slots__ = ()

    def _decode(self, matrix: Int64Array) -> Iterator[RecordTable]:
        state = self.state
        while state[fields.RECORD_INDEX] < state[fields.RECORD_COUNT]:
            status = skipping.skip_records(self.data, state, matrix, matrix.shape[1])
            yield RecordTable(self.data, matrix, int(state[fields.ROW_COUNT]))
            if status != fields.OK:
                raise self.decode_error(status)

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
