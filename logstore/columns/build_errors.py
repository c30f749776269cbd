"""Errors of batches that cannot be built, in the words of `MemoryRecordsBuilder` where it has any."""

from __future__ import annotations

from ..errors import InvalidTimestampError, RecordTooLargeError, UsageError
from ..kernels.encode.sizes import INT_MAX

ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"


def refused(message: str, found: object = None) -> UsageError:
    """Return the counterpart of an IllegalArgumentException of Kafka's."""
    return UsageError(message, found=found, java_class=ILLEGAL_ARGUMENT)


def wrong_timestamp(timestamp: int, row: int) -> InvalidTimestampError:
    """Return the error of a timestamp that no record may have."""
    return InvalidTimestampError(
        f"Invalid negative timestamp {timestamp}" if timestamp < 0 else f"Invalid timestamp {timestamp}",
        expected="-1 for none, or milliseconds since 1970 in 63 bits",
        found=f"record {row}",
        java_class=ILLEGAL_ARGUMENT,
    )


def wrong_offset_delta(offset_delta: int, row: int) -> UsageError:
    """Return the error of an offset that is not above the one before, or too far above the base offset."""
    return UsageError(
        "Offsets must increase monotonically",
        expected=f"offset deltas that ascend from 0 to {INT_MAX}",
        found=f"{offset_delta} of record {row}",
        java_class=ILLEGAL_ARGUMENT,
    )


def too_large(what: str, size: int) -> RecordTooLargeError:
    """Return the error of a record or batch whose size does not fit an int32."""
    return RecordTooLargeError(
        f"The {what} is too large for any log", expected=f"at most {INT_MAX} bytes", found=f"{size} bytes"
    )


def no_offsets_left(base_offset: int) -> UsageError:
    """Return the error of a batch whose last offset does not fit an int64."""
    return UsageError("There are not so many offsets left", found=f"a batch at {base_offset}")
