"""Calls of another thread, in the middle of a call of this one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def elsewhere(call: Callable[[], T]) -> T:
    """Make a call in another thread; its result or error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()
