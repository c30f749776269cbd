"""Flags, status and slots of the state that the dump's kernels and their callers share."""

from __future__ import annotations

from ..decode import records as decode

# Bits of what to print.
DEEP = 1
CONTENTS = 2
SKIP_METADATA = 4

# Status of `dump_batches` and `dump_records`.
DONE = 0
OUT_FULL = 1  # empty `out`, or give a larger one, and call again
GAPS_FULL = 2  # empty the gaps and call again
OTHER_ROW = 3  # `dump_batches` has printed nothing of row state[ROW], and leaves it to its caller
RECORD_ERROR = 4  # state[DECODE_STATUS] and the details tell which
UNKNOWN_CODEC = 5  # `dump_records` has printed half of the line of part state[ROW]

# Slots of the state, after those of the decode.
FLAGS = decode.STATE_COUNT
RECORD_CAPACITY = FLAGS + 1  # columns of `records`
OUT_CAPACITY = FLAGS + 2  # of `out`, without its slack
GAP_CAPACITY = FLAGS + 3
ROW = FLAGS + 4  # row of the batch table, or of the parts
STAGE = FLAGS + 5  # of the row: one of the next three
ATTRIBUTES = FLAGS + 6  # of the row's batch
CHUNK_ROW = FLAGS + 7  # next row of `records` to print
DECODE_STATUS = FLAGS + 8
OUT_SIZE = FLAGS + 9
PREVIOUS_OFFSET = FLAGS + 10  # of the last record seen; -1 before the first
GAP_COUNT = FLAGS + 11
TEXT_POSITION = FLAGS + 12  # of the next text
STATE_COUNT = FLAGS + 13

NEW, BEGUN, HEADED = range(3)  # nothing is done; the batch can be printed; its line is in `out`
