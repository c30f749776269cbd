"""The options of the dump that concern indexes."""

from __future__ import annotations

from typing import Protocol


class IndexOptions(Protocol):
    """What the dump of an index asks the command line for."""

    index_sanity_only: bool
    verify_only: bool
    max_message_size: int
