"""Flags, status and slots of the state that the dump's kernels and their callers share."""

from __future__ import annotations

from ..decode import records as decode

# Bits of what to print.
DEEP = 1
CONTENTS = 2
SKIP_METADATA = 4
PYTHON_RECORDS = 8  # only Python can decode the contents

# Status of `dump_batches` and `dump_records`.
DONE = 0
OUT_FULL = 1  # empty `out`, or give a larger one, and call again
GAPS_FULL = 2  # empty the gaps and call again
PYTHON_BATCH = 3  # the caller prints the records of row state[ROW]
PYTHON_RECORD = 4  # the caller prints what follows the metadata of the record in state[CHUNK_ROW]
RECORD_ERROR = 5  # state[DECODE_STATUS] and the details tell which
UNKNOWN_CODEC = 6  # only the first half of this row's line is printed
LEGACY_ROW = 7  # row state[ROW] is a v0/v1 entry, which the caller prints

# Slots of the state, after those of the decode.
FLAGS = decode.STATE_COUNT
RECORD_CAPACITY = FLAGS + 1  # columns of `records`
OUT_CAPACITY = FLAGS + 2  # of `out`, without its slack
GAP_CAPACITY = FLAGS + 3
ROW = FLAGS + 4  # row of the batch table
IS_LINE_PRINTED = FLAGS + 5  # 1: the row's batch line is in `out` already
ATTRIBUTES = FLAGS + 6  # of the row's batch
CHUNK_ROW = FLAGS + 7  # next row of `records` to print
DECODE_STATUS = FLAGS + 8
OUT_SIZE = FLAGS + 9
PREVIOUS_OFFSET = FLAGS + 10  # of the last record seen; -1 before the first
GAP_COUNT = FLAGS + 11
STATE_COUNT = FLAGS + 12
