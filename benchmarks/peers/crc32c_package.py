"""The `crc32c` package, which the extra `bench` installs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.measured import Side, timed
from benchmarks.peers.optional import module


def crc32c_package(data: Any) -> Side:
    """Its checksum of the data."""

    def side() -> float:
        function: Callable[[Any], int] = module("crc32c").crc32c
        return timed(function, data)()

    return side
