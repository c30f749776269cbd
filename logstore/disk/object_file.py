"""An object that is read by ranges, all of one ETag; and read ahead from front to back."""

from __future__ import annotations

import errno
import os
import stat as modes
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import DataDirectoryError
from ..threads import WorkItem, begun
from .objects import CUT, call, forget, obstore, stat

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PIECE_SIZE = 4 * 1024 * 1024  # bytes of one request; a larger read is several, side by side
AHEAD_SIZE_MAX = 16 * 1024 * 1024
PIECE_COUNT_MAX = 8  # requests of one read at once

Piece = WorkItem[tuple[int, int], memoryview]  # of a range: from, to


def replaced(url: str, etag: str, found: str) -> DataDirectoryError:
    """Return the error of an object that has another ETag than it had; its directory will be listed anew."""
    forget(url)
    return DataDirectoryError(
        "The object was replaced since it was listed",
        path=url,
        expected=f"ETag {etag}",
        found=f"ETag {found}",
        advice="read it again; who writes to a prefix that is read should write under new names",
    )


class ObjectFile:
    """An object that is read by ranges; all bytes are of one ETag.

    Attributes:
        size: bytes.
        etag: of the object when it was listed, or opened.
    """

    def __init__(self, url: str) -> None:
        """Look at the object; raises OSError."""
        status = stat(url)
        if modes.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), url)
        self._url, self.size, self.etag = url, status.st_size, status.st_ino

    def read(self, position: int, size: int) -> memoryview:
        """Return bytes from `position`, fewer at the end; several requests side by side if they are many."""
        end = min(position + size, self.size)
        waiting, data = deque[Piece](), list[memoryview]()
        for piece in self.pieces(position, end):
            waiting.append(piece)
            if len(waiting) == PIECE_COUNT_MAX:
                data.append(waiting.popleft().result())
        data += [piece.result() for piece in waiting]
        return data[0] if len(data) == 1 else memoryview(b"".join(data))

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """Yield the pieces of a range, each when its request has begun."""
        while start < end:
            piece_end = min(start + PIECE_SIZE, end)
            yield begun(self._fetch, (start, piece_end))
            start = piece_end

    def _fetch(self, bounds: tuple[int, int]) -> memoryview:
        """Return bytes by one request; raise OSError, or DataDirectoryError if the object's ETag is another."""
        (start, end), url, etag, size = bounds, self._url, self.etag, self.size
        options: dict[str, Any] = {"if_match": etag} if etag else {}
        if (start, end) != (0, size):  # a whole object is had from servers without ranges too
            options["range"] = start, end

        def get(store: ObjectStore, key: str) -> memoryview:
            result = obstore().get(store, key, options=options)
            found, data = result.meta["e_tag"] or "", memoryview(result.bytes())
            if found != etag:  # a server that does not look at If-Match
                raise replaced(url, etag, found)
            if len(data) != end - start:
                raise ValueError(f"{len(data)} of {end - start} bytes came: {CUT}")
            return data

        try:
            return call(get, url)
        except FileNotFoundError:
            forget(url)
            raise
        except OSError as error:
            if type(error.__cause__).__name__ == "PreconditionError":
                forget(url)
                raise replaced(url, etag, stat(url).st_ino) from error
            raise

    def read_ahead(self) -> ReadAhead:
        """Return a reader from front to back."""
        return ReadAhead(self)


class ReadAhead:
    """An object read from front to back: what follows is fetched while the caller works on what came.

    No more is fetched ahead than half of what was read in one go, and 16 MiB, so that a short read stays short.
    """

    def __init__(self, file: ObjectFile) -> None:
        """Keep the object; nothing is fetched yet."""
        self._file = file
        self._start = self._next = 0  # of what was read in one go
        self._ahead: deque[Piece] = deque()

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill the buffer from `position`; return how many bytes there were."""
        if position != self._next:
            self.close()
            self._start = self._next = position
        end = min(position + len(buffer), self._file.size)
        self._request(end)
        while self._next < end:
            piece = self._ahead[0]
            piece_start, piece_end = piece.argument
            data = piece.result()[self._next - piece_start : end - piece_start]
            buffer[self._next - position : self._next - position + len(data)] = data
            self._next += len(data)
            if self._next == piece_end:
                self._ahead.popleft()
        ahead_size = min((end - self._start) // 2, AHEAD_SIZE_MAX)
        self._request(min(end + ahead_size - ahead_size % PIECE_SIZE, self._file.size))
        return max(end - position, 0)

    def _request(self, end: int) -> None:
        """Begin to fetch what is behind the pieces under way, up to `end`."""
        self._ahead += self._file.pieces(self._ahead[-1].argument[1] if self._ahead else self._next, end)

    def close(self) -> None:
        """Drop what was fetched ahead."""
        self._ahead.clear()
