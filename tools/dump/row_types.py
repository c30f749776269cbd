"""Types of the objects that `logstore dump --format json` prints; the reference is generated from them.

Options leave out members: without `--print-data-log` records have no key and value, with `--skip-record-metadata` they
have nothing else.
"""

from __future__ import annotations

from ..rows import RowField, RowType

_PATH = RowField("path", "string", "the file")
_OFFSET = RowField("offset", "integer", "of the record, or where the entry leads")
_TIMESTAMP_TYPE = RowField("timestampType", "string", "CreateTime or LogAppendTime")
_TIMESTAMP = RowField("timestamp", "time?", "of the record")
_CHECKED = (RowField("crc", "integer", "its checksum"), RowField("isValid", "boolean", "the checksum is right"))
_PRODUCER_ID = RowField("producerId", "integer", "-1 without a producer")
_PRODUCER_EPOCH = RowField("producerEpoch", "integer", "-1 without a producer")

DUMP_ROWS = (
    RowType(
        "batch",
        "A record batch, or an entry of message format 0 or 1, which has no members before `position` but its offset.",
        (
            _PATH,
            RowField("baseOffset", "integer", "of its first record"),
            RowField("lastOffset", "integer", "of its last record"),
            RowField("count", "integer", "records"),
            RowField("baseSequence", "integer", "sequence of its first record, -1 for none"),
            RowField("lastSequence", "integer", "sequence of its last record, -1 for none"),
            _PRODUCER_ID,
            _PRODUCER_EPOCH,
            RowField("partitionLeaderEpoch", "integer", "epoch of the leader that wrote it"),
            RowField("isTransactional", "boolean", "it is of a transaction"),
            RowField("isControl", "boolean", "it is a marker, or another control batch"),
            RowField("deleteHorizonMs", "integer?", "from when on its tombstones may go, in ms since 1970"),
            RowField("position", "integer", "byte in the file"),
            _TIMESTAMP_TYPE,
            RowField("maxTimestamp", "time?", "the largest of its records"),
            RowField("size", "integer", "bytes"),
            RowField("magic", "integer", "0, 1 or 2"),
            RowField("codec", "string", "none, gzip, snappy, lz4 or zstd"),
            *_CHECKED,
        ),
    ),
    RowType(
        "record",
        "A record, below its batch. `crc` and `isValid` are of message formats 0 and 1, `sequence` and `headers` of 2.",
        (
            _PATH,
            _OFFSET,
            _TIMESTAMP_TYPE,
            _TIMESTAMP,
            RowField("keySize", "integer", "bytes, -1 for null"),
            RowField("valueSize", "integer", "bytes, -1 for null"),
            RowField("sequence", "integer", "-1 for none"),
            RowField("headers", "array", "objects of `key` and `value`"),
            *_CHECKED,
            RowField("control", "object", "what a control record says"),
            RowField("key", "string?", "or `keyBase64`; with a decoder an object"),
            RowField("value", "string?", "or `valueBase64`; with a decoder an object"),
        ),
    ),
    RowType("trailer", "The end of a log that is no batch.", (_PATH, RowField("invalidBytes", "integer", "its size"))),
    RowType("message", "What is said of a file in a sentence.", (_PATH, RowField("message", "string", "the sentence"))),
    RowType(
        "offsetIndexEntry",
        "An entry of an `.index`.",
        (_PATH, _OFFSET, RowField("position", "integer", "byte in the log")),
    ),
    RowType("timeIndexEntry", "An entry of a `.timeindex`.", (_PATH, _TIMESTAMP, _OFFSET)),
    RowType(
        "abortedTransaction",
        "An entry of a `.txnindex`.",
        (
            _PATH,
            RowField("version", "integer", "of the entry, 0"),
            _PRODUCER_ID,
            RowField("firstOffset", "integer", "of the transaction"),
            RowField("lastOffset", "integer", "of its marker"),
            RowField("lastStableOffset", "integer", "as the marker was written"),
        ),
    ),
    RowType(
        "producerEntry",
        "A producer in a `.snapshot`; one without a batch has only the first of them.",
        (
            _PATH,
            _PRODUCER_ID,
            _PRODUCER_EPOCH,
            RowField("coordinatorEpoch", "integer", "of its last marker, -1 for none"),
            RowField("currentTxnFirstOffset", "integer?", "where its open transaction begins"),
            RowField("lastTimestamp", "time?", "of its last batch or marker"),
            RowField("firstSequence", "integer", "of its last batch"),
            RowField("lastSequence", "integer", "of its last batch"),
            RowField("lastOffset", "integer", "of its last batch"),
            RowField("offsetDelta", "integer", "from the first to the last offset of that batch"),
            RowField("timestamp", "time?", "of that batch"),
        ),
    ),
)
