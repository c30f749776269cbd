"""A file as a read-only array, mapped: its pages are in the page cache, not in this process's memory.

Use it only for files that nobody else truncates: touching a page behind the new end kills the process (SIGBUS).
`file_range` copies instead.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataDirectoryError
from . import paths
from .file_range import FileIdentity, FileRange, became_shorter
from .names import java_file
from .open_files import opened
from .system_errors import nio_error, refuse_fifo

SEGMENT_SIZE_MAX = 2**31 - 1  # bytes; positions in a segment are 31-bit
_TOO_LARGE = "org.apache.kafka.common.KafkaException"


class MappedFile:
    """A file of at most 2^31 - 1 bytes, mapped for reading.

    Attributes:
        path: as Java prints it.
        data: uint8, 1-D, read-only: the file, and `room` behind it; empty for an empty file.
        size: bytes of the file at the time of opening.
        identity: of the file, independent of its name.
    """

    def __init__(self, path: str, *, is_bounded: bool = True, room: int = 0) -> None:
        """Open and map `path`; raise DataDirectoryError (missing, a directory, unreadable, larger than a segment).

        Args:
            is_bounded: refuse a file that is larger than a segment, as a broker does.
            room: bytes to map behind the file's end, which nobody may touch before the file has grown there.
        """
        self.path = java_file(path)
        self._room = room
        self._is_bounded = is_bounded
        try:
            descriptor = opened(os.open, self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise nio_error(error, self.path) from error
        try:
            self._map: _Mapping | None = self._open(descriptor)
        finally:
            os.close(descriptor)
        self.data: npt.NDArray[np.uint8] = np.empty(0, np.uint8) if self._map is None else np.asarray(self._map)

    def _open(self, descriptor: int) -> _Mapping | None:
        status = os.fstat(descriptor)
        self.size = _checked_size(status, self.path) if self._is_bounded else status.st_size
        self.identity = FileIdentity(status.st_dev, status.st_ino)
        if self.size == 0:
            return None
        try:
            mapping = _Mapping(descriptor, self.size + self._room)
        except OSError as error:
            raise _map_error(error, self.path, self.size) from error
        size = os.fstat(descriptor).st_size
        if size < self.size:
            raise became_shorter(self.path, self.size, size)
        return mapping

    def load(self, start: int, end: int) -> None:
        """Do nothing: the system loads pages when they are touched."""

    def release(self, start: int, end: int) -> None:
        """Release the pages of data[start:end]: they stay in the page cache, but not in this process's memory."""
        if self._map is not None:
            self._map.release(start, end)

    def __enter__(self) -> MappedFile:
        return self

    def __exit__(self, *error: object) -> None:
        # the mapping ends with the last array over it
        self.data = np.empty(0, np.uint8)
        self._map = None


class _Mapping:
    """A whole file, mapped for reading, and unmapped with the last array over it.

    Not an `mmap.mmap`, which keeps a descriptor for each mapping.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        """Map `size` bytes of an open file; raise OSError."""
        self._size, self._unmap = 0, _system().munmap  # kept: `__del__` may run when modules are gone
        address = _system().mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == _MAP_FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._address, self._size = address, size
        # numpy's protocol: address and "read only"
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}

    def release(self, start: int, end: int) -> None:
        """See `MappedFile.release`."""
        start -= start % mmap.PAGESIZE
        end -= end % mmap.PAGESIZE
        if end > start and hasattr(mmap, "MADV_DONTNEED"):
            _system().madvise(self._address + start, end - start, mmap.MADV_DONTNEED)

    def __del__(self) -> None:
        if self._size:
            self._unmap(self._address, self._size)


_MAP_FAILED = ctypes.c_void_p(-1).value


@cache
def _system() -> Any:
    """Return the C library with the types of the functions of mappings."""
    library = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.argtypes, library.mmap.restype = [address, size, number, number, number, ctypes.c_int64], address
    library.munmap.argtypes = [address, size]
    library.madvise.argtypes = [address, size, number]
    return library


class FileInMemory:
    """The content of a file in memory, in place of a `MappedFile`.

    Attributes:
        path: as Java prints it.
        data: uint8, 1-D, read-only.
        size: bytes of `data`.
    """

    def __init__(self, path: str, data: npt.NDArray[np.uint8]) -> None:
        self.path, self.data, self.size = path, data, data.size

    def load(self, start: int, end: int) -> None:
        """Do nothing: all is loaded."""

    def release(self, start: int, end: int) -> None:
        """Do nothing: no pages of a file are mapped."""

    def __enter__(self) -> FileInMemory:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the memory ends with the last array over it."""


def copied_file(path: str) -> FileInMemory:
    """Copy a whole file; raise DataDirectoryError, also for what is larger than a segment."""
    segment_size(path)
    with FileRange(paths.real_path(path)) as file:
        return FileInMemory(java_file(path), file.read(0, file.size))


def _map_error(error: OSError, path: str, size: int) -> DataDirectoryError:
    """Return what `FileChannelImpl.map` throws."""
    advice = None
    if error.errno == errno.ENOMEM:
        advice = "allow the process more address space (ulimit -v) or more mappings (vm.max_map_count), or close logs"
    return DataDirectoryError(
        f"Map failed: {error.strerror}",
        path=path,
        expected=f"room for {size} bytes",
        advice=advice,
        java_class="java.io.IOException",
    )


def is_too_large(error: BaseException) -> bool:
    """Return whether the error says that a file is larger than a segment may be."""
    return isinstance(error, DataDirectoryError) and error.java_class == _TOO_LARGE


def exceeds_segment(path: str) -> bool:
    """Return whether the file at `path` is larger than a segment may be; raise DataDirectoryError if stat fails."""
    try:
        return paths.stat(path).st_size > SEGMENT_SIZE_MAX
    except OSError as error:
        raise nio_error(error, java_file(path)) from error


def segment_size(path: str) -> int:
    """Return the size of a file that `MappedFile` could map; raises as that does, except for a lack of permission."""
    try:
        status = paths.stat(path)
    except OSError as error:
        raise nio_error(error, java_file(path)) from error
    return _checked_size(status, path)


def _checked_size(status: paths.Status, path: str) -> int:
    refuse_fifo(status.st_mode, path)
    if stat.S_ISDIR(status.st_mode):
        raise DataDirectoryError("Is a directory", path=java_file(path), java_class="java.io.IOException")
    if status.st_size > SEGMENT_SIZE_MAX:
        path = java_file(path)
        raise DataDirectoryError(
            f"The size of segment {path} ({status.st_size}) is larger than the maximum allowed segment size of "
            f"{SEGMENT_SIZE_MAX}",
            path=path,
            expected=f"at most {SEGMENT_SIZE_MAX} bytes",
            found=status.st_size,
            advice="`logstore salvage` copies its batches into segments that a broker opens",
            java_class=_TOO_LARGE,
        )
    return status.st_size
