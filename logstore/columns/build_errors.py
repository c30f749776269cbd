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


def too_large(what: str, size: int) -> RecordTooLargeError:
    """Return the error of a record or batch whose size does not fit an int32."""
    return RecordTooLargeError(
        f"The {what} is too large for any log", expected=f"at most {INT_MAX} bytes", found=f"{size} bytes"
    )
