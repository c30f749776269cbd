"""Types of the objects that `logstore dump --format json` prints; the reference is generated from them."""

from __future__ import annotations

from logstore.rows import dumped
from logstore.rows.batches import RecordRow

from ..rows import RowType

ROWS = {
    "batch": dumped.DumpedBatch,
    "record": dumped.DumpedRecord,
    "trailer": dumped.DumpedTrailer,
    "message": dumped.DumpedMessage,
    "offsetIndexEntry": dumped.DumpedOffsetIndexEntry,
    "timeIndexEntry": dumped.DumpedTimeIndexEntry,
    "abortedTransaction": dumped.DumpedAbortedTransaction,
    "producerEntry": dumped.DumpedProducerEntry,
}
DUMP_ROWS = tuple(RowType.of(row_type, name, {}) for name, row_type in ROWS.items())
RECORD = RowType.of(RecordRow, "record", {})  # of `--records`
