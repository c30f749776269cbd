"""Columns of records on their way to batches: what the kernels that build those are told, and how a call of them ends.

A field of a row is the range `starts[row]` to `ends[row]` of the bytes of its column; null where it ends before it
starts. The headers of a row are one such field, which holds their count and then the headers as a record has them.
Where all fields of a column are as long, its width says the same: arrays that are not read need not be made.
"""

from __future__ import annotations

from ...jit.structs import Bytes, Struct, Words, struct


@struct
class Encoding(Struct):
    """Columns, the batches that are made of them, and how far a call is."""

    keys: Bytes
    keys_starts: Words
    keys_ends: Words
    keys_size: int  # bytes that the keys are ranges of; -1: all keys are null
    keys_width: int  # bytes of every key, which lie behind one another; -1: where they are is in the ranges
    values: Bytes
    values_starts: Words
    values_ends: Words
    values_size: int
    values_width: int
    headers: Bytes
    headers_starts: Words
    headers_ends: Words
    headers_size: int  # -1: no row has headers
    headers_width: int
    timestamps: Words  # ms
    has_timestamps: int  # 0: `timestamp` is that of every row
    timestamp: int
    offset_deltas: Words
    has_offset_deltas: int  # 0: the rows of a batch have 0, 1, 2, …
    row_count: int

    batches: Words  # int64[scan.COLUMN_COUNT, batch_capacity]
    batch_capacity: int
    row_ends: Words  # int64[batch_capacity], the row behind each batch
    batch_size_max: int  # 0: the ends of the batches are given
    out: Bytes  # uint8[out_size_max + fields.SLACK_SIZE]
    out_size_max: int

    row: int  # the first one of the next batch; with a status of an error the row that is wrong
    batch_count: int
    out_size: int
    detail: int


# Status; the words are in `columns.record_encoding`.
OK = 0
BATCHES_FULL = 1  # no room for another batch: call again
OUT_OF_DATA = 2  # a range that is not within the bytes of its column
BAD_TIMESTAMP = 3  # detail: below -1
BAD_OFFSET_DELTA = 4  # detail: not above the one before, or not in 0 to 2147483647
RECORD_TOO_LARGE = 5  # detail: bytes
BATCH_TOO_LARGE = 6  # detail: bytes
COLUMNS_CHANGED = 7  # they are not what was measured
