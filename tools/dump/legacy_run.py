"""Rows of v0/v1 entries on their way to text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.columns.batch_table import BatchTable

if TYPE_CHECKING:
    from .log_text import LogDump


def print_legacy(dump: LogDump, table: BatchTable, start: int, end: int) -> None:
    """Lines of rows start … end - 1, which are v0/v1 entries."""
    raise NotImplementedError
