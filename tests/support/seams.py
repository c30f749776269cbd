"""Seams that several tests use: system calls that wait for no disk, are tests' own, or fail."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from logstore.disk.seam import Seam, Writable
from logstore.disk.system_errors import io_error


class UnsyncedSeam(Seam):
    """Waits for no disk: files are the same, and thousands of them are written sooner."""

    def sync(self, descriptor: int) -> None:
        """Do nothing."""

    def sync_directory(self, path: str) -> None:
        """Do nothing."""


class WritingSeam(UnsyncedSeam):
    """Has a `write` of its own, so that a kernel calls Python where it calls the system otherwise."""

    def write(self, descriptor: int, data: Writable) -> None:
        super().write(descriptor, data)


class ListeningSeam(UnsyncedSeam):
    """Remembers the calls that make a file durable.

    Attributes:
        calls: in order, with the last name of what is made, renamed to, or synced, if it is a directory.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []

    def create(self, path: str) -> int:
        self.calls.append(f"create {Path(path).name}")
        return super().create(path)

    def write(self, descriptor: int, data: Writable) -> None:
        self.calls.append("write")
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Note that a file would be synced."""
        self.calls.append("sync")

    def rename(self, path: str, new_path: str) -> None:
        self.calls.append(f"rename {Path(new_path).name}")
        super().rename(path, new_path)

    def sync_directory(self, path: str) -> None:
        self.calls.append(f"sync directory {Path(path).name}")


class OtherSystem(UnsyncedSeam):
    """A system whose `write` a test says, which kernels call by its address."""

    def __init__(self) -> None:
        prototype = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        self._function = prototype(
            lambda descriptor, address, size: self.system_write(descriptor, ctypes.string_at(address, size))
        )

    def write_address(self) -> int:
        """As the product's seam says."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def system_write(self, descriptor: int, data: bytes) -> int:
        """Write some of the data; how many bytes, or -1 for a failure."""
        return os.write(descriptor, data)


class FullDisk(UnsyncedSeam):
    """A disk without room for another write.

    Attributes:
        is_full: whether writes fail; a test sets it, and sets it back when there is to be room again.
        writes_left: how many writes there is room for until then.
    """

    is_full = False

    def __init__(self, writes_left: int = 1 << 60) -> None:
        self.writes_left = writes_left

    def write(self, descriptor: int, data: Writable) -> None:
        self.writes_left -= 1
        if self.is_full or self.writes_left < 0:
            raise io_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), descriptor)
        super().write(descriptor, data)
