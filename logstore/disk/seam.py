"""The seam: the only place with system calls that change a file or directory.

Crash tests stop at each of these calls, and fault tests replace any. The caller decides on durability: written data is
durable after `sync`, a new, renamed or removed name after `sync_directory`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

from ..cached_property import cached_property
from ..errors import DataDirectoryError
from .open_files import opened
from .system_errors import io_error, nio_error

Writable = bytes | bytearray | memoryview  # a memoryview of bytes

#: of a file that is made, less the umask, as a JVM makes it: a broker of the same group may have to write it
FILE_MODE = 0o666
_WRITE_SIZE_MAX = 1 << 30  # bytes; some systems refuse more in one call
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE


class Seam:
    """The real system calls; tests derive from it.

    All raise DataDirectoryError, in Java's words. Symbolic links are not followed when a file is opened: their targets
    do not belong to this directory.
    """

    def create(self, path: str) -> int:
        """Create an empty file, or empty an existing one; return a descriptor."""
        return self._open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def open(self, path: str) -> int:
        """Open an existing file for writing; return a descriptor."""
        return self._open(path, os.O_RDWR)

    def open_at(self, path: str, position: int) -> int:
        """Open as `open` does, and seek to byte `position`."""
        descriptor = self.open(path)
        os.lseek(descriptor, position, os.SEEK_SET)
        return descriptor

    def write(self, descriptor: int, data: Writable) -> None:
        """Write all of `data` at the descriptor's position."""
        size = len(data)
        try:
            written = os.write(descriptor, data) if size <= _WRITE_SIZE_MAX else 0
            while written < size:
                written += os.write(descriptor, memoryview(data)[written : written + _WRITE_SIZE_MAX])
        except OSError as error:
            raise io_error(error, descriptor) from error

    def write_address(self) -> int:
        """Return the address of a C function `ssize_t (int, const void *, size_t)` that writes as `write` does.

        For a seam that overrides `write`, the function calls that. A short write is completed by `finish_write`.
        """
        return _system_write() if type(self).write is Seam.write else self._called_write.address

    def finish_write(self, descriptor: int, data: Writable) -> None:
        """Write what a kernel's write left; raise the error of that write, or as `write`."""
        if type(self).write is not Seam.write:
            error = self._called_write.errors.pop(descriptor, None)
            if error is not None:
                raise error
        self.write(descriptor, data)

    @cached_property
    def _called_write(self) -> _CalledWrite:
        return _CalledWrite(self.write)

    def reserve(self, descriptor: int, position: int, size: int) -> bool:
        """Allocate blocks for `size` bytes from `position` on, without changing the file's size (`fallocate`).

        Return False if the system or the file system cannot, or is full: `write` then takes what there is.
        """
        fallocate = _system_fallocate()
        return fallocate is not None and fallocate(descriptor, _KEEP_SIZE, position, size) == 0

    def truncate(self, descriptor: int, size: int) -> None:
        """Set the file's size: cut it, or extend it with zeros."""
        try:
            os.ftruncate(descriptor, size)
        except OSError as error:
            raise io_error(error, descriptor) from error

    def sync(self, descriptor: int) -> None:
        """Wait until content and size are durable."""
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise io_error(error, descriptor) from error

    def close(self, descriptor: int) -> None:
        """Close the descriptor; says nothing about durability."""
        os.close(descriptor)

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or directory atomically, replacing a file with the new name."""
        try:
            os.replace(path, new_path)
        except OSError as error:
            raise nio_error(error, path) from error

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the file's modification time, ms since 1970 (`Files.setLastModifiedTime`)."""
        try:
            os.utime(path, ns=(os.stat(path).st_atime_ns, modified_ms * 1_000_000), follow_symlinks=False)
        except OSError as error:
            raise nio_error(error, path) from error

    def unlink(self, path: str) -> None:
        """Remove the name of a file."""
        try:
            os.unlink(path)
        except OSError as error:
            raise nio_error(error, path) from error

    def make_directory(self, path: str) -> None:
        """Create a directory in an existing one."""
        try:
            os.mkdir(path)
        except OSError as error:
            raise nio_error(error, path) from error

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        try:
            os.rmdir(path)
        except OSError as error:
            raise nio_error(error, path) from error

    def sync_directory(self, path: str) -> None:
        """Wait until the names in the directory are durable (`Utils.flushDir`)."""
        try:
            descriptor = opened(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise nio_error(error, path) from error

    def _open(self, path: str, flags: int) -> int:
        try:
            return opened(os.open, path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DataDirectoryError(
                    "A symbolic link is not followed to change a file",
                    path=path,
                    found=os.readlink(path),
                    advice="put the file itself in place of the link",
                ) from error
            raise nio_error(error, path) from error


_WRITE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)


class _CalledWrite:
    """A Python `write` as a C function, which takes the GIL while it runs.

    Attributes:
        address: of the C function.
        errors: raised errors by descriptor; the function returned -1 for them.
    """

    def __init__(self, write: Callable[[int, Writable], None]) -> None:
        self._write = write
        self._function = _WRITE(self._call)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        self.errors: dict[int, BaseException] = {}

    def _call(self, descriptor: int, data: int, size: int) -> int:
        try:
            self._write(descriptor, ctypes.string_at(data, size))
            return size  # in the try block: an interrupt behind it would lose the answer
        except BaseException as error:  # raised by `finish_write`
            self.errors[descriptor] = error
            return -1


@cache
def _system_write() -> int:
    return ctypes.cast(ctypes.CDLL(None).write, ctypes.c_void_p).value or 0


@cache
def _system_fallocate() -> Callable[[int, int, int, int], int] | None:
    if sys.platform != "linux":
        return None
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)(
        ("fallocate", ctypes.CDLL(None))
    )


SEAM = Seam()
