"""What a record stream delivered, and what it died of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from logstore.errors import DecompressionError, LogstoreError

ByteArray = npt.NDArray[np.uint8]

EMPTY: ByteArray = np.empty(0, np.uint8)
EMPTY.flags.writeable = False

# Java allocates what a size claims before it looks further. The heap of the dump tool that we compare with (512 MiB,
# serial collector) has room for arrays up to 341 MiB; Kafka's own scripts give it half of that.
_ARRAY_SIZE_REFUSED = 341 * 1024 * 1024
_ARRAY_SIZE_IMPOSSIBLE = 2**31 - 2

# What the Java streams throw as `IOException`; everything else passes Kafka's catch blocks untouched.
IO_EXCEPTIONS = frozenset(
    {
        "java.io.IOException",
        "java.io.EOFException",
        "java.util.zip.ZipException",
        "org.xerial.snappy.SnappyIOException",
        "com.github.luben.zstd.ZstdIOException",
    }
)


class Decompressed(NamedTuple):
    """All that Kafka's reader of the record stream gets to see.

    Kafka decodes records while it reads the stream, so a wrong record inside `data` is found before `error`.

    Attributes:
        data: uint8, 1-D, contiguous, maybe read-only: the bytes delivered before the stream ended or failed.
        error: what reading a record beyond `data` dies of; None if the stream ended well.
        error_at_end: the same for the check that nothing follows the last record (magic 2 only).
        opened: False if the stream failed before any record was asked for; `error` then comes even before the
            record count is looked at.
    """

    data: ByteArray
    error: LogstoreError | None = None
    error_at_end: LogstoreError | None = None
    opened: bool = True


def array_refusal(size: int) -> str | None:
    """Message of the `OutOfMemoryError` of `new byte[size]` in Kafka's tools; None where there is room."""
    if size >= _ARRAY_SIZE_IMPOSSIBLE:
        return "Requested array size exceeds VM limit"
    return "Java heap space" if size >= _ARRAY_SIZE_REFUSED else None


def java_text(error: LogstoreError) -> str:
    """`Throwable.toString()` of the exception that `error` stands for."""
    return f"{error.java_class}" if error.message is None else f"{error.java_class}: {error.message}"


def failed_to_open(cause: DecompressionError) -> Decompressed:
    """`wrapForInput` wraps whatever its stream's constructor throws; a refusal stays what it is."""
    if cause.java_class == DecompressionError.java_class:
        return Decompressed(EMPTY, cause, cause, opened=False)
    error = DecompressionError(java_text(cause))
    return Decompressed(EMPTY, error, error, opened=False)


def failed_to_read(data: ByteArray, cause: DecompressionError, magic: int) -> Decompressed:
    """The record iterators (`StreamRecordIterator`, `DeepRecordsIterator`) wrap an `IOException`, nothing else."""
    if cause.java_class not in IO_EXCEPTIONS:
        return Decompressed(data, cause, cause)
    if magic < 2:
        error = DecompressionError(java_text(cause))
        return Decompressed(data, error, error)
    return Decompressed(
        data,
        DecompressionError("Failed to decompress record stream"),
        DecompressionError("Error checking for remaining bytes after reading batch"),
    )


def over_cap(size_max: int) -> DecompressionError:
    """Refusal to decompress further; Kafka itself has no such cap."""
    return DecompressionError(
        f"The record stream is larger than the cap of {size_max} bytes",
        advice="the batch is damaged, or made to fill memory",
    )
