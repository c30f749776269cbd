"""A segment that another process may cut, in place of a mapping of it: parts of it are loaded when they are needed.

Touching a mapping behind the new end of a file kills the process (SIGBUS). Here the bytes are copied into memory of
this process, at their positions in the file, so that what reads a `MappedFile` window by window can read this instead:
it loads each window before, and releases it behind. A file that was cut meanwhile is an error. A hole in a file, such
as the unused part of a preallocated segment, takes no memory.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os

import numpy as np
import numpy.typing as npt

from ..errors import DataDirectoryError
from . import paths
from .file_range import FileRange, became_shorter
from .mapped import MappedFile, segment_size
from .names import is_url, java_file
from .system_errors import io_error, nio_error


class LoadedFile:
    """A file of at most 2^31 - 1 bytes, loaded in parts.

    Attributes:
        path: as Java prints it.
        data: uint8[size], read-only; zeros where nothing is loaded.
        size: bytes, at the time of opening; later appends are not seen.
    """

    def __init__(self, path: str) -> None:
        """Open `path`; raise DataDirectoryError (missing, a directory, unreadable, larger than a segment)."""
        segment_size(path)
        self.path = java_file(path)
        self._file = FileRange(paths.real_path(path))
        self.size = self._file.size
        self._ahead = None if self._file.object is None else self._file.object.read_ahead()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory: mmap.mmap | None = mmap.mmap(-1, self.size, flags=flags) if self.size else None
        if self._memory is not None and hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages
                self._memory.madvise(mmap.MADV_HUGEPAGE)
        self.data: npt.NDArray[np.uint8] = np.frombuffer(self._memory or b"", np.uint8)
        self.data.flags.writeable = False
        self._start = self._end = 0  # of what is loaded, and not released

    def load(self, start: int, end: int) -> None:
        """Load data[start:end]; raise DataDirectoryError if the file has become shorter, or cannot be read."""
        end = min(end, self.size)
        if not self._start <= start <= self._end:
            self._start = self._end = start
        while self._end < end:
            begin = self._next_data(self._end)
            if begin >= end:
                self._end = end
                return
            self._end = begin + self._read_into(memoryview(self._memory or b"")[begin:end], begin)
            if self._end == begin:
                raise became_shorter(self.path, self.size, begin)

    def _read_into(self, buffer: memoryview, position: int) -> int:
        if self._ahead is None:
            return self._file.read_into(buffer, position)
        try:
            return self._ahead.read_into(buffer, position)
        except DataDirectoryError:
            raise
        except OSError as error:
            raise nio_error(error, self.path) from error

    def _next_data(self, position: int) -> int:
        """Return the position of the next byte that is in no hole of the file."""
        if not hasattr(os, "SEEK_DATA") or self._ahead is not None:
            return position
        try:
            return self._file.seek_data(position)
        except OSError as error:
            if error.errno == errno.ENXIO:  # none up to the end, or the file is shorter
                return position if self._file.current_size < self.size else self.size
            if error.errno == errno.EINVAL:  # unknown to the file system
                return position
            raise io_error(error) from error

    def release(self, start: int, end: int) -> None:
        """Give back the memory of data[start:end], which reads as zeros then; load it again to read it again."""
        if self._memory is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        start -= start % mmap.PAGESIZE
        end -= end % mmap.PAGESIZE
        if end > start:
            self._memory.madvise(mmap.MADV_DONTNEED, start, end - start)
            self._start = max(self._start, end)
            self._end = max(self._start, self._end)

    def __enter__(self) -> LoadedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        if self._ahead is not None:
            self._ahead.close()
        # the memory ends with the last array over it
        self.data = np.empty(0, np.uint8)
        self._memory = None


def open_log(path: str) -> MappedFile | LoadedFile:
    """Open a file to read window by window: mapped, or loaded if it is an object.

    For a store's own files, and for commands, which end in one line where a mapped file is cut.

    Raises:
        DataDirectoryError: as the two classes.
    """
    return LoadedFile(path) if is_url(path) else MappedFile(path)
