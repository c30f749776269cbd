"""The structs of an append: what it moves, what it goes by, and what is to be appended."""

from __future__ import annotations

from ...jit.structs import Bytes, Struct, Words, struct

NO_OFFSET = -1

# Kinds of a request.
RECORDS = 0  # values, keys and headers joined, and columns of their sizes
BATCH = 1  # a batch without offsets, as a producer or a coordinator sends it
BUILT = 2  # a batch that was built here for the log's end: only its offset may be another
MARKER = 3  # the end of a transaction: its record, and the numbers that are in it

# Status of the kernels.
NOT_FOR_FAST_PATH = 0  # something is out of the ordinary: nothing has changed
APPENDED = 1
FLUSH_IS_DUE = 2  # appended, and `flush.messages` are not on the disk
UNFINISHED = 3  # the system did not write all; nothing counts until `finish_append`


@struct
class LogStruct(Struct):
    """The one home of what an append moves in a log; producers and indexes have arrays of their own."""

    log_start_offset: int
    log_end_offset: int  # exclusive, as all below
    high_watermark: int
    recovery_point: int
    checkpointed_recovery_point: int  # the highest that may be on the disk; above the log's end after a truncation
    first_unstable_offset: int  # NO_OFFSET: nothing is open
    loaded_end_offset: int  # of transactions that began before, only an offset is known
    segment_size: int  # bytes of the active segment
    first_timestamp: int  # largest of the active segment's first batch, ms; see `ActiveSegment`
    is_timestamp_known: int  # of the active segment, see `Segment`
    unfinished_size: int  # bytes that may be in the file and do not count: nothing may be written behind them


@struct
class FastPathStruct(Struct):
    """What the fast path goes by, until it is invalidated."""

    is_bound: int  # 0: nothing below may be used
    batch_size_max: int  # max.message.bytes
    codec: int  # of compression.type; -1: the producer's
    needs_keys: int
    is_log_append_time: int
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    flush_message_count: int
    leader_epoch: int
    segment_size_max: int  # or less: up to where the disk has room set aside
    segment_age_max_ms: int  # segment.ms, less the jitter
    segment_created_ms: int
    write_address: int  # of a C function as `write`
    descriptor: int
    out_size: int
    out: Bytes  # the batch, but for a BUILT one
    row: Words  # int64[scan.COLUMN_COUNT, 1], its fields
    decode_state: Words  # int64[decode.STATE_COUNT], for the check of a BATCH
    decoded: Words  # int64[decode.COLUMN_COUNT, ROW_COUNT] of `validation`, the same


@struct
class RequestStruct(Struct):
    """One append, and what it came to. Python writes the first fields at once, in this order."""

    kind: int
    log_end_offset: int  # for which the request was made
    now_ms: int
    leader_epoch: int
    origin: int  # CLIENT or COORDINATOR of `producer_struct`
    # what is known of the verification of the batch's producer,
    is_verified: int  # 1: a transaction may begin
    lowest_sequence: int
    supports_epoch_bump: int
    # what the header of RECORDS or a MARKER says,
    record_count: int
    producer_id: int  # -1 none
    producer_epoch: int
    base_sequence: int
    attributes: int
    data_size: int  # bytes of values, keys and headers, or of the record of a MARKER
    # what there is of RECORDS,
    has_keys: int
    has_headers: int
    has_timestamps: int  # 0: `now_ms` is that of every record
    # the other kinds,
    size: int  # bytes of the batch
    transaction_version: int  # of a marker
    coordinator_epoch: int
    marker_type: int
    # the answer, as in `AppendInfo`,
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    start_offset: int  # of the log
    offset_count: int
    is_duplicate: int  # 0, as a duplicate is not for the fast path
    written_size: int  # what the system took of an UNFINISHED one
    # and arrays.
    records_size: int  # bytes of `records`; 0 without
    built: Bytes  # a BUILT batch
    columns: Words  # of RECORDS, see `records.put_records`
    records: Bytes  # of a compressed BATCH, decompressed
