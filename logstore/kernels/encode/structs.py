"""Struct of the kernels that build batches from columns of records, and their status.

A field of a row is the range `starts[row]` to `ends[row]` of the bytes of its column; it is null if it ends before it
starts. The headers of a row are one such field, their count and the headers as in a record. For a column of fields of
equal size its width replaces the two arrays.
"""

from __future__ import annotations

from ...native.structs import Bytes, Struct, Words, struct


@struct
class Encoding(Struct):
    """Columns, the batches that are made from them, and the progress."""

    keys: Bytes
    keys_starts: Words
    keys_ends: Words
    keys_size: int  # bytes of the column; -1: all keys are null
    keys_width: int  # bytes of each key, if they follow one another without gaps; -1: the ranges tell
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
    has_timestamps: int  # 0: every row has `timestamp`
    timestamp: int
    offset_deltas: Words
    has_offset_deltas: int  # 0: the rows of a batch have 0, 1, 2, …
    row_count: int

    batches: Words  # int64[scan.COLUMN_COUNT, batch_capacity]
    batch_capacity: int
    row_ends: Words  # int64[batch_capacity], the row behind each batch
    batch_size_max: int  # 0: `row_ends` gives the ends of the batches
    out: Bytes  # uint8[out_size_max + fields.SLACK_SIZE]
    out_size_max: int

    row: int  # first row of the next batch; with an error the wrong row
    batch_count: int
    out_size: int
    detail: int


# Status; `columns.record_encoding` has the messages.
OK = 0
BATCHES_FULL = 1  # no room for another batch: call again
OUT_OF_DATA = 2  # a range that is not within the bytes of its column
BAD_TIMESTAMP = 3  # below -1; detail: the timestamp
BAD_OFFSET_DELTA = 4  # not above the one before, or not in 0 to 2147483647; detail: the delta
RECORD_TOO_LARGE = 5  # detail: bytes
BATCH_TOO_LARGE = 6  # detail: bytes
COLUMNS_CHANGED = 7  # another thread changed them after they were measured
