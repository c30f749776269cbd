"""Types of the objects that `logstore dump --format json` prints; the reference is generated from them.

Options leave out members: without `--print-data-log` records have no key and value, with `--skip-record-metadata` they
have nothing else.
"""

from __future__ import annotations

from ..rows import JsonField, RowType

_PATH = JsonField("path", "string", "the file")
_OFFSET = JsonField("offset", "integer", "of the record, or where the entry leads")
_TIMESTAMP_TYPE = JsonField("timestampType", "string", "CreateTime or LogAppendTime")
_TIMESTAMP = JsonField("timestamp", "time?", "of the record")
_CHECKED = (JsonField("crc", "integer", "its checksum"), JsonField("isValid", "boolean", "the checksum is right"))
_PRODUCER_ID = JsonField("producerId", "integer", "-1 without a producer")
_PRODUCER_EPOCH = JsonField("producerEpoch", "integer", "-1 without a producer")

DUMP_ROWS = (
    RowType(
        "batch",
        "A record batch, or an entry of message format 0 or 1, which has no members before `position` but its offset.",
        (
            _PATH,
            JsonField("baseOffset", "integer", "of its first record"),
            JsonField("lastOffset", "integer", "of its last record"),
            JsonField("count", "integer", "records"),
            JsonField("baseSequence", "integer", "sequence of its first record, -1 for none"),
            JsonField("lastSequence", "integer", "sequence of its last record, -1 for none"),
            _PRODUCER_ID,
            _PRODUCER_EPOCH,
            JsonField("partitionLeaderEpoch", "integer", "epoch of the leader that wrote it"),
            JsonField("isTransactional", "boolean", "it is of a transaction"),
            JsonField("isControl", "boolean", "it is a marker, or another control batch"),
            JsonField("deleteHorizonMs", "integer?", "from when on its tombstones may go, in ms since 1970"),
            JsonField("position", "integer", "byte in the file"),
            _TIMESTAMP_TYPE,
            JsonField("maxTimestamp", "time?", "the largest of its records"),
            JsonField("size", "integer", "bytes"),
            JsonField("magic", "integer", "0, 1 or 2"),
            JsonField("codec", "string", "none, gzip, snappy, lz4 or zstd"),
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
            JsonField("keySize", "integer", "bytes, -1 for null"),
            JsonField("valueSize", "integer", "bytes, -1 for null"),
            JsonField("sequence", "integer", "-1 for none"),
            JsonField("headers", "array", "objects of `key` and `value`"),
            *_CHECKED,
            JsonField("control", "object", "what a control record says"),
            JsonField("key", "string?", "or `keyBase64`; with a decoder an object"),
            JsonField("value", "string?", "or `valueBase64`; with a decoder an object"),
        ),
    ),
    RowType("trailer", "The end of a log that is no batch.", (_PATH, JsonField("invalidBytes", "integer", "its size"))),
    RowType(
        "message", "What is said of a file in a sentence.", (_PATH, JsonField("message", "string", "the sentence"))
    ),
    RowType(
        "offsetIndexEntry",
        "An entry of an `.index`.",
        (_PATH, _OFFSET, JsonField("position", "integer", "byte in the log")),
    ),
    RowType("timeIndexEntry", "An entry of a `.timeindex`.", (_PATH, _TIMESTAMP, _OFFSET)),
    RowType(
        "abortedTransaction",
        "An entry of a `.txnindex`.",
        (
            _PATH,
            JsonField("version", "integer", "of the entry, 0"),
            _PRODUCER_ID,
            JsonField("firstOffset", "integer", "of the transaction"),
            JsonField("lastOffset", "integer", "of its marker"),
            JsonField("lastStableOffset", "integer", "as the marker was written"),
        ),
    ),
    RowType(
        "producerEntry",
        "A producer in a `.snapshot`; one without a batch has only the first of them.",
        (
            _PATH,
            _PRODUCER_ID,
            _PRODUCER_EPOCH,
            JsonField("coordinatorEpoch", "integer", "of its last marker, -1 for none"),
            JsonField("currentTxnFirstOffset", "integer?", "where its open transaction begins"),
            JsonField("lastTimestamp", "time?", "of its last batch or marker"),
            JsonField("firstSequence", "integer", "of its last batch"),
            JsonField("lastSequence", "integer", "of its last batch"),
            JsonField("lastOffset", "integer", "of its last batch"),
            JsonField("offsetDelta", "integer", "from the first to the last offset of that batch"),
            JsonField("timestamp", "time?", "of that batch"),
        ),
    ),
)
