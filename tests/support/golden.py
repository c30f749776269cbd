"""The golden directories as tests ask for them (see the fixture `golden`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Golden = Callable[[str], Path]
WRITTEN = (
    *("demo", "records", "transactions", "transactions-v1", "transactions-v0"),
    *("killed", "compacted", "groups", "cluster", "newest"),
)
AFTER_GOLDEN_MS = 1_795_247_000_000  # some minutes after the golden directories were written
