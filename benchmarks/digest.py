"""One hash of whatever a benchmark returns, so that two commits that answer differently are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash


def digest(value: Any) -> str:
    """XXH64 of a result, in hexadecimal; the same for the same bytes, numbers and text.

    >>> digest(b"abc") == digest(np.frombuffer(b"abc", np.uint8)), digest((1, "a")) == digest((1, "b"))
    (True, False)
    """
    hasher = xxhash.xxh64()
    _add(hasher, value)
    return hasher.hexdigest()


def _add(hasher: Any, value: Any) -> None:
    if isinstance(value, bytes | bytearray | memoryview):
        hasher.update(value)
    elif isinstance(value, np.ndarray):
        hasher.update(np.ascontiguousarray(value))
    elif isinstance(value, tuple | list):
        for each in value:
            _add(hasher, each)
            hasher.update(b"\0")
    elif value is None or isinstance(value, int | float | str | np.number):
        hasher.update(str(value).encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no hash of its own: say with `hashed` what of it counts")
