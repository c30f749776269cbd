"""Read whole small files, and sizes of files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from ..errors import DataDirectoryError
from . import paths
from .names import is_url, java_file
from .open_files import opened
from .system_errors import io_error, is_missing, nio_error, random_access_error, refuse_fifo

SIZE_LIMIT = (1 << 31) - 1  # the largest Java array, so Kafka writes no larger file
FILE_COST = 256 * 1024  # bytes that an audit reads in the time that opening a file and looking at it takes
_READ_SIZE = 1 << 24


def read_file(path: str) -> bytes:
    """Return a file of at most `SIZE_LIMIT` bytes; raises DataDirectoryError in the words of `Files.readAllBytes`."""
    return _read(path, nio_error)


def file_size(path: str) -> int:
    """Return the size of a file in bytes, or 0 if stat fails; opening the file raises the error."""
    try:
        return paths.stat(path).st_size
    except OSError:
        return 0


def read_if_present(path: str) -> bytes | None:
    """Return the content of the file as `read_file` does; None if there is no such file."""
    try:
        return read_file(path)
    except DataDirectoryError as error:
        if is_missing(error):
            return None
        raise


def ends_of(path: str, size: int, head_size: int, tail_size: int) -> bytes:
    """Return the first and the last bytes of the first `size` bytes of a file on a disk; raises as `read_file`."""
    try:
        descriptor = opened(os.open, path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            tail_size = min(tail_size, size)
            return os.pread(descriptor, min(head_size, size), 0) + os.pread(descriptor, tail_size, size - tail_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise nio_error(error, path) from error


def read_index_file(path: str) -> bytes:
    """Return the content of an index file, as Kafka's `AbstractIndex` opens one."""
    return _read(path, random_access_error, refuses_directory=True)


def _read(
    path: str, error_of: Callable[[OSError, str], DataDirectoryError], *, refuses_directory: bool = False
) -> bytes:
    path = java_file(path)
    if is_url(path):
        return _read_object(path)
    try:
        descriptor = opened(os.open, path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise error_of(error, path) from error
    try:
        if refuses_directory and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise error_of(OSError(errno.EISDIR, os.strerror(errno.EISDIR)), path)
        return _read_all(descriptor, path)
    finally:
        os.close(descriptor)


def _read_object(url: str) -> bytes:
    from .file_range import FileRange

    with FileRange(url) as file:
        return file.read(0, file.size).tobytes()


def _read_all(descriptor: int, path: str) -> bytes:
    status = os.fstat(descriptor)
    refuse_fifo(status.st_mode, path)
    size = status.st_size
    if size > SIZE_LIMIT:
        raise DataDirectoryError(
            "Size exceeds Integer.MAX_VALUE",
            path=path,
            found=size,
            java_class="java.lang.IllegalArgumentException",
        )
    pieces = []
    try:
        while piece := os.read(descriptor, min(size + 1, _READ_SIZE)):  # memory is allocated for all that is asked for
            pieces.append(piece)
            if len(piece) == size < _READ_SIZE:  # one byte more was asked for, so this is the end
                break
            size = max(size - len(piece), 0)
    except OSError as error:
        raise io_error(error, descriptor) from error
    return b"".join(pieces)
