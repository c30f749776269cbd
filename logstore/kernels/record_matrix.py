"""The matrix that a decode fills: a row a field, a column a record."""

from __future__ import annotations

# Its rows, one int64 a record. Positions count from the start of the buffer decoded from.
OFFSET = 0
TIMESTAMP = 1
SEQUENCE = 2  # -1 without
KEY_POSITION = 3
KEY_SIZE = 4  # -1 null
VALUE_POSITION = 5
VALUE_SIZE = 6  # -1 null
HEADERS_POSITION = 7  # first header, after the count
HEADER_COUNT = 8
COLUMN_COUNT = 9
