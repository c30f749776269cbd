"""The result of reading a record stream: the bytes that it delivered, and the error that ended it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from logstore.errors import DecompressionError, LogstoreError

ByteArray = npt.NDArray[np.uint8]

EMPTY: ByteArray = np.empty(0, np.uint8)
EMPTY.flags.writeable = False

# Java allocates as much as a size claims before it looks at the data. The heap of the dump tool in the proofs (512 MiB,
# serial collector) has room for arrays up to 341 MiB; Kafka's own scripts set half of that.
_ARRAY_SIZE_REFUSED = 341 * 1024 * 1024
_ARRAY_SIZE_IMPOSSIBLE = 2**31 - 2

# `IOException` and its subclasses; every other exception passes Kafka's catch blocks
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
    """The bytes and the errors that Kafka's reader of a record stream gets.

    Kafka decodes records while it reads the stream, so it reports a wrong record inside `data` before `error`.

    Attributes:
        data: uint8, 1-D, contiguous, maybe read-only: the bytes delivered before the stream ended or failed.
        error: raised by reading a record beyond `data`; None if the stream ended well.
        error_at_end: raised by the check that nothing follows the last record (magic 2 only).
        opened: False if the stream failed when it was opened; `error` then comes before a wrong record count.
    """

    data: ByteArray
    error: LogstoreError | None = None
    error_at_end: LogstoreError | None = None
    opened: bool = True


def array_refusal(size: int) -> str | None:
    """Return the message of the `OutOfMemoryError` of `new byte[size]` in Kafka's tools; None if there is room."""
    if size >= _ARRAY_SIZE_IMPOSSIBLE:
        return "Requested array size exceeds VM limit"
    return "Java heap space" if size >= _ARRAY_SIZE_REFUSED else None


def java_text(error: LogstoreError) -> str:
    """Return `Throwable.toString()` of the Java exception of `error`."""
    return f"{error.java_class}" if error.message is None else f"{error.java_class}: {error.message}"


def failed_to_open(cause: DecompressionError) -> Decompressed:
    """Return the result of a stream whose constructor throws: `wrapForInput` wraps every error; our refusals stay."""
    if cause.java_class == DecompressionError.java_class:
        return Decompressed(EMPTY, cause, cause, opened=False)
    error = DecompressionError(java_text(cause))
    return Decompressed(EMPTY, error, error, opened=False)


def failed_to_read(data: ByteArray, cause: DecompressionError, magic: int) -> Decompressed:
    """Return the result of a stream that fails while it is read.

    The record iterators (`StreamRecordIterator`, `DeepRecordsIterator`) wrap an `IOException`, and no other exception.
    """
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
    """Return the refusal of a stream that is too large; Kafka has no such cap."""
    return DecompressionError(
        f"The record stream is larger than the cap of {size_max} bytes",
        advice="the batch is damaged, or made to fill memory",
    )
