"""Structs of an append: the log's state, the parameters of the fast path, and the request."""

from __future__ import annotations

from ...native.structs import Bytes, Struct, Words, struct

NO_OFFSET = -1

# Kinds of a request.
RECORDS = 0  # joined values, keys and headers, and columns of their sizes
BATCH = 1  # a batch without offsets, as a producer or a coordinator sends it
BUILT = 2  # a batch that logstore built for the log's end: only its offset may be wrong
MARKER = 3  # a transaction marker: its record, and the numbers in it
TO_COMPRESS = 4  # as RECORDS, to be built and then compressed
COMPRESSED = 5  # the same records, compressed behind the room of a header

# Status of the kernels.
NOT_FOR_FAST_PATH = 0  # nothing has changed: the slow path appends
APPENDED = 1
FLUSH_IS_DUE = 2  # appended, and `flush.messages` records are not flushed
UNFINISHED = 3  # the system wrote a part; the state changes in `finish_append`
COMPRESSION_IS_DUE = 4  # nothing has changed: the batch is built, uncompressed


@struct
class LogStruct(Struct):
    """State of a log that an append changes; producers and indexes have their own structs."""

    log_start_offset: int
    log_end_offset: int  # exclusive, as all below
    high_watermark: int
    recovery_point: int
    checkpointed_recovery_point: int  # highest that may be on the disk; above the log's end after a truncation
    first_unstable_offset: int  # NO_OFFSET: no transaction is open
    segment_size: int  # bytes of the active segment
    first_timestamp: int  # largest of the active segment's first batch, ms; see `ActiveSegment`
    is_timestamp_known: int  # of the active segment, see `Segment`
    unfinished_size: int  # bytes of an append that may be in the file already: nothing may be written behind them


@struct
class FastPathStruct(Struct):
    """Parameters of the fast path, until they are invalidated."""

    is_bound: int  # 0: the other fields are not valid
    batch_size_max: int  # max.message.bytes
    codec: int  # of compression.type; -1: the producer's
    needs_keys: int
    is_log_append_time: int
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    flush_message_count: int
    leader_epoch: int
    segment_size_max: int  # segment.bytes, or less: how far the file's disk space is reserved
    segment_age_max_ms: int  # segment.ms minus the jitter
    segment_created_ms: int
    write_address: int  # of a C function with the signature of `write`
    descriptor: int
    out_size: int
    out: Bytes  # the batch, except a BUILT one
    row: Words  # int64[scan.COLUMN_COUNT, 1], its fields
    decode_state: Words  # int64[decode.STATE_COUNT], for the check of a BATCH
    decoded: Words  # int64[decode.COLUMN_COUNT, ROW_COUNT] of `validation`, for the same check


@struct
class RequestStruct(Struct):
    """One append and its result. Python writes the first fields with one call, in this order."""

    kind: int
    log_end_offset: int  # for which the request was made
    now_ms: int
    leader_epoch: int
    origin: int  # CLIENT or COORDINATOR of `producer_struct`
    # verification state of the batch's producer,
    is_verified: int  # 1: a transaction may begin
    lowest_sequence: int
    supports_epoch_bump: int
    # header fields of RECORDS or a MARKER,
    record_count: int
    producer_id: int  # -1: none
    producer_epoch: int
    base_sequence: int
    attributes: int
    data_size: int  # bytes of values, keys and headers, or of the record of a MARKER
    # which columns RECORDS have,
    has_keys: int
    has_headers: int
    has_timestamps: int  # 0: every record has `now_ms`
    # fields of the other kinds,
    size: int  # bytes of the batch
    transaction_version: int  # of a marker
    coordinator_epoch: int
    marker_type: int
    # the result, as in `AppendInfo`,
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    start_offset: int  # of the log
    offset_count: int
    is_duplicate: int  # 0, as a duplicate is for the slow path
    written_size: int  # bytes that the system wrote of an UNFINISHED one
    # and arrays.
    records_size: int  # bytes of `records`; 0: none
    built: Bytes  # a BUILT batch
    columns: Words  # of RECORDS, see `records.put_records`
    records: Bytes  # of a compressed BATCH, decompressed
