"""The result of reading a record stream: the bytes before the damage, and the error that says where it is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from logstore.errors import DecompressionError
from logstore.model import Codec

ByteArray = npt.NDArray[np.uint8]

_EMPTY: ByteArray = np.empty(0, np.uint8)
_STEP_SIZE = 256  # bytes that a library gets at once: they bound what it can make of them


class Decompressed(NamedTuple):
    """A decompressed record stream.

    Attributes:
        data: uint8, 1-D, contiguous, maybe read-only: the bytes before the damage, all of them without an error.
        error: says why the stream cannot be read any further; None if it ended well.
    """

    data: ByteArray
    error: DecompressionError | None = None


def damaged(codec: Codec, position: int, reason: str) -> DecompressionError:
    """Return the error of a stream that cannot be read beyond its byte `position`."""
    return DecompressionError(f"The {codec.kafka_name} stream does not decompress beyond its byte {position}: {reason}")


def over_cap(size_max: int) -> DecompressionError:
    """Return the refusal of a stream that is too large; Kafka has no such cap."""
    return DecompressionError(
        f"The record stream is larger than the cap of {size_max} bytes",
        advice="the batch is damaged, or made to fill memory",
    )


def collect(pieces: Iterator[bytes], size_max: int) -> Decompressed:
    """Join the pieces of a stream up to its end or its damage; of a stream of more than `size_max` bytes, take none."""
    data = bytearray()
    try:
        for piece in pieces:
            if len(data) + len(piece) > size_max:
                return Decompressed(_EMPTY, over_cap(size_max))
            data += piece
    except DecompressionError as error:
        return Decompressed(np.frombuffer(data, np.uint8), error)
    return Decompressed(np.frombuffer(data, np.uint8))


def feed(
    codec: Codec, open_stream: Callable[[], Any], refusal: type[Exception], payload: memoryview, start: int
) -> Generator[bytes, None, int]:
    """Yield what a library's stream makes of one gzip member or zstd frame at `start`; return the member's end.

    The library may lose the output of the call that fails, so the step that it refuses is fed again byte by byte.

    Args:
        open_stream: makes an object with `decompress`, `eof` and `unused_data`, as `zlib.decompressobj` does.
        refusal: what `decompress` raises at damage.
    """
    stream, step_size = open_stream(), _STEP_SIZE
    position = start
    while not stream.eof:
        step = payload[position : position + step_size]
        if not step:
            raise damaged(codec, position, "it is cut off")
        try:
            piece = stream.decompress(step)
        except refusal as error:
            if len(step) == 1:
                raise damaged(codec, position, str(error).rpartition(": ")[2]) from None
            stream, step_size = open_stream(), 1
            stream.decompress(payload[start:position])
            continue
        position += len(step) - len(stream.unused_data)
        yield piece
    return position
