"""Both forms of a kernel on one input: compiled between fences, interpreted over buffers that refuse stray indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from logstore.native.kernel import Kernel
from logstore.native.structs import Struct

FENCE_SIZE = 256  # bytes on either side of a buffer that the compiled form is given
FENCE_BYTE = 0xA5


class StrayIndexError(AssertionError):
    """A kernel reached outside of its buffer."""


class Guarded:
    """A buffer for the interpreted form: only indexes from 0 to its limit, only whole slices of that.

    `limit` is the first index that must not be read, by default the size.
    """

    def __init__(self, array: npt.NDArray[Any], limit: int | None = None) -> None:
        self.view = array.reshape(-1).data
        self.limit = len(self.view) if limit is None else limit

    def __getitem__(self, index: int | slice) -> Any:
        self._check(index)
        return self.view[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._check(index)
        self.view[index] = value

    def _check(self, index: int | slice) -> None:
        first, last = (index.start, index.stop - 1) if isinstance(index, slice) else (index, index)
        if not 0 <= first <= last < self.limit:
            raise StrayIndexError(f"{index} is outside of 0 to {self.limit - 1}")


class Fenced:
    """A copy of an array with fences around it in memory."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._memory = np.full(FENCE_SIZE + array.nbytes + FENCE_SIZE, FENCE_BYTE, np.uint8)
        self._end = FENCE_SIZE + array.nbytes
        self.array = self._memory[FENCE_SIZE : self._end].view(array.dtype)
        self.array[:] = array.reshape(-1)

    def assert_intact(self) -> None:
        """Nothing was written outside of the array."""
        assert (self._memory[:FENCE_SIZE] == FENCE_BYTE).all()
        assert (self._memory[self._end :] == FENCE_BYTE).all()


class GuardedStruct:
    """A struct for the interpreted form, with guarded copies of its arrays."""

    def __init__(self, of: Struct) -> None:
        for name, kind in of.kinds.items():
            value = getattr(of, name)
            array = np.zeros(0, np.int64) if value is None else value
            setattr(self, name, value if kind == "i64" else Guarded(array.copy()))


def run_both_on(kernel: Kernel, of: Struct, *before: npt.NDArray[Any] | int) -> int:
    """As `run_both`, for a kernel whose last argument is a struct, in whose arrays is left what the kernel writes."""
    read, read_guarded = _both(before)
    guarded, fences, arrays = GuardedStruct(of), {}, {}
    for name, kind in of.kinds.items():
        array = getattr(of, name)
        if kind != "i64" and array is not None:
            arrays[name], fences[name] = array, Fenced(array)
            setattr(of, name, fences[name].array)
    status = kernel(*[each.array if isinstance(each, Fenced) else each for each in read], of)
    assert kernel.function(*read_guarded, guarded) == status
    for argument, fence in zip(before, read, strict=True):
        if isinstance(argument, np.ndarray) and isinstance(fence, Fenced):
            fence.assert_intact()
            assert np.array_equal(fence.array, argument.reshape(-1)), "what was to be read only was written"
    for name, fence in fences.items():
        fence.assert_intact()
        view = np.asarray(getattr(guarded, name).view)
        assert np.array_equal(fence.array, view), f"compiled and interpreted wrote {name} differently"
        if arrays[name].flags.writeable:
            arrays[name].reshape(-1)[:] = fence.array
        setattr(of, name, arrays[name])
    for name, kind in of.kinds.items():
        assert kind != "i64" or getattr(of, name) == getattr(guarded, name), name
    return status


def _both(arguments: tuple[npt.NDArray[Any] | int, ...]) -> tuple[list[Fenced | int], list[Guarded | int]]:
    """The arguments for the compiled form and for the interpreted one."""
    return (
        [Fenced(a) if isinstance(a, np.ndarray) else a for a in arguments],
        [Guarded(a.copy()) if isinstance(a, np.ndarray) else a for a in arguments],
    )


def run_both(kernel: Kernel, *arguments: npt.NDArray[Any] | int, read_limit: int | None = None) -> int:
    """Run a kernel compiled and interpreted, check that they agree in everything, and return its result.

    Args:
        arguments: as the kernel takes them. What it writes is left in them.
        read_limit: the first index of the first buffer that must not be read.
    """
    fenced, guarded = _both(arguments)
    if read_limit is not None:
        assert isinstance(guarded[0], Guarded)
        guarded[0].limit = read_limit
    status = kernel(*[f.array if isinstance(f, Fenced) else f for f in fenced])
    assert kernel.function(*guarded) == status
    for argument, fence, guard in zip(arguments, fenced, guarded, strict=True):
        if isinstance(argument, np.ndarray) and isinstance(fence, Fenced) and isinstance(guard, Guarded):
            fence.assert_intact()
            assert np.array_equal(fence.array, np.asarray(guard.view)), "compiled and interpreted wrote differently"
            if argument.flags.writeable:
                argument.reshape(-1)[:] = fence.array
    return status
