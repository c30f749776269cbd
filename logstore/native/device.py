"""Declares functions that kernels call, and tables that they index.

In Python the decorators return the function unchanged; in the process of a build (`build`) what numba compiled.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..cached_property import cached_property

if TYPE_CHECKING:
    import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

BUILDING_VARIABLE = "LOGSTORE_BUILDING_KERNELS"
BUILDING = os.environ.get(BUILDING_VARIABLE) == "1"


class Constants:
    """Table of numbers that is computed on first use."""

    def __init__(self, make: Callable[[], np.ndarray[Any, Any]]) -> None:
        self._make = make

    @cached_property
    def array(self) -> np.ndarray[Any, Any]:
        """int64 or uint32, 1-D."""
        return self._make()

    def __getitem__(self, index: int) -> int:
        return int(self.array[index])


def constants(make: Callable[[], np.ndarray[Any, Any]]) -> Any:
    """Declare a table of numbers, which a build compiles into the kernels that index it."""
    return make() if BUILDING else Constants(make)


def device(function: F) -> F:
    """Declare a function that kernels call."""
    return _declared(function, forceinline=False)


def inlined(function: F) -> F:
    """Declare a short function that is inlined in each caller, for the loops over records."""
    return _declared(function, forceinline=True)


def _declared(function: F, *, forceinline: bool) -> F:
    if not BUILDING:
        return function
    from numba import njit

    options = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: F = njit(forceinline=forceinline, **options)(function)
    return compiled


def intrinsic(name: str, module: str = "logstore.native.intrinsics") -> Callable[[Any], Any]:
    """Declare a device function whose compiled form is `name` of `module`; its body does the same."""

    def register(function: Any) -> Any:
        return getattr(importlib.import_module(module), name) if BUILDING else function

    return register
