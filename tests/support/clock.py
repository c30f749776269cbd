"""A wall clock that tests set."""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 86_400_000


@dataclass
class Clock:
    """A clock that stands still until `now_ms` is set."""

    now_ms: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms
