"""Parts of a file that another process may write, copied, so that they cannot change after they were read.

A mapping of such a file may become shorter at any moment, and touching what is gone kills the process.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DataDirectoryError
from . import paths
from .names import is_url, java_file
from .open_files import opened
from .system_errors import io_error, nio_error

if TYPE_CHECKING:
    from .object_file import ObjectFile


class FileIdentity(NamedTuple):
    """Identity of a file, independent of its name; of an object its URL and ETag."""

    device: int | str
    inode: int | str


class FileRange:
    """A file open for reading, until the `with` block ends or nothing refers to it.

    Attributes:
        path: as Java prints it.
        size: bytes, at the time of opening.
        identity: of the opened file.
        object: what is read, if the path is a URL.
    """

    def __init__(self, path: str) -> None:
        """Open `path`; raises DataDirectoryError."""
        self.path = java_file(path)
        self.object: ObjectFile | None = None
        if is_url(self.path):
            self._open_object()
            return
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            self._descriptor = opened(os.open, self.path, flags)
        except OSError as error:
            raise nio_error(error, self.path) from error
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._close.atexit = False
        status = os.fstat(self._descriptor)
        self.size = status.st_size
        self.identity = FileIdentity(status.st_dev, status.st_ino)

    def _open_object(self) -> None:
        from .object_file import ObjectFile

        try:
            self.object = ObjectFile(self.path)
        except OSError as error:
            raise nio_error(error, self.path) from error
        self.size, self.identity = self.object.size, FileIdentity(self.path, self.object.etag)

    def read(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Return `size` bytes from `position`, uint8, read-only, fewer at the file's end; raise DataDirectoryError."""
        pieces = []
        if self.object is not None:
            return np.frombuffer(self._read_object(position, size), np.uint8)
        try:
            while size > 0 and (piece := os.pread(self._descriptor, size, position)):
                pieces.append(piece)
                position += len(piece)
                size -= len(piece)
        except OSError as error:
            raise io_error(error, self._descriptor) from error
        return np.frombuffer(b"".join(pieces) if len(pieces) != 1 else pieces[0], np.uint8)

    def _read_object(self, position: int, size: int) -> memoryview:
        assert self.object is not None
        try:
            return self.object.read(position, size)
        except DataDirectoryError:
            raise
        except OSError as error:
            raise nio_error(error, self.path) from error

    def read_exactly(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Read as `read`; raise DataDirectoryError too if the file ends before."""
        data = self.read(position, size)
        if data.size < size:
            raise became_shorter(self.path, position + size, position + data.size)
        return data

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Read bytes from `position` into the buffer; return how many, 0 at the end; raise DataDirectoryError."""
        try:
            return os.preadv(self._descriptor, [buffer], position)
        except OSError as error:
            raise io_error(error) from error

    def seek_data(self, position: int) -> int:
        """Return the position of the next byte that is in no hole; raises OSError, as `lseek`."""
        return os.lseek(self._descriptor, position, os.SEEK_DATA)

    @property
    def current_size(self) -> int:
        """The size now, in bytes."""
        return self.size if self.object is not None else os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file."""
        if self.object is None:
            self._close()

    def __enter__(self) -> FileRange:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class UnheldFile(FileRange):
    """A `FileRange` that is opened for each read only: for a caller with very many files who reads few."""

    def __init__(self, path: str) -> None:
        """Read size and identity of `path`; raises DataDirectoryError."""
        super().__init__(path)
        self.close()

    def read(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Read as `FileRange.read`; raise DataDirectoryError too if another file has the name now."""
        with FileRange(self.path) as file:
            if file.identity != self.identity:
                raise DataDirectoryError(
                    "Another file has this name now",
                    path=self.path,
                    expected="the file that was there before",
                    advice="look at the directory again: a broker deleted or cleaned it meanwhile",
                )
            return file.read(position, size)


def file_identity(path: str) -> FileIdentity | None:
    """Return the identity of the file with this name; None without a file."""
    try:
        status = paths.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise nio_error(error, path) from error
    return FileIdentity(status.st_dev, status.st_ino)


def became_shorter(path: str, expected_size: int, size: int) -> DataDirectoryError:
    """Return the error of a file in which bytes are missing that were there."""
    return DataDirectoryError(
        "A segment became shorter while it was read",
        path=path,
        expected=f"{expected_size} bytes",
        found=size,
        advice="refresh the reader, or open the log anew: another process has cut the log",
        java_class="java.io.EOFException",
    )
