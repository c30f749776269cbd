"""Single entries of an index file, each read where it is asked for.

The index of an active segment is preallocated: 10 MiB, nearly all of them zeros. A search reads some twenty entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..cached_property import cached_property
from .file_range import FileRange
from .names import is_url
from .paths import real_path


class IndexSlots:
    """The entries of an `.index` or `.timeindex`, by number; zeros behind the last one are no entries.

    Attributes:
        size: bytes of the file.
    """

    def __init__(self, path: str, entry: np.dtype[Any]) -> None:
        """Open the file, whose entries are of the type `entry`; raises DataDirectoryError."""
        self._file, self._entry = FileRange(real_path(path)), entry
        self.size = self._file.size
        # each look into an object is a request
        self._content = self._file.read(0, self.size).tobytes() if is_url(path) else None

    def __enter__(self) -> IndexSlots:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        """The number of entries before the first that is zero, or cut off since."""
        return self._first(self.size // self._entry.itemsize, lambda slot: not any(self._bytes(slot)))

    def __getitem__(self, slot: int) -> tuple[int, int]:
        """Return the two fields of an entry, zeros if the file was cut meanwhile; raises DataDirectoryError."""
        first, second = np.frombuffer(self._bytes(slot), self._entry)[0].item()
        return first, second

    def floor(self, field: int, value: int) -> tuple[int, int] | None:
        """Return the last entry with a field of at most `value`; None without one. The field ascends."""
        slot = self.slot_above(field, value) - 1
        return None if slot < 0 else self[slot]

    def slot_above(self, field: int, value: int) -> int:
        """Return the number of the first entry with a field above `value`; that of all without one."""
        return self._first(len(self), lambda slot: self[slot][field] > value)

    def _first(self, count: int, is_behind: Callable[[int], bool]) -> int:
        """Return the first of `count` slots that is behind what is searched for; `count` without one."""
        low = 0
        while low < count:
            middle = (low + count) // 2
            if is_behind(middle):
                count = middle
            else:
                low = middle + 1
        return low

    def _bytes(self, slot: int) -> bytes:
        size = self._entry.itemsize
        if self._content is not None:
            return self._content[slot * size : (slot + 1) * size]
        data = self._file.read(slot * size, size).tobytes()
        return data if len(data) == size else bytes(size)
