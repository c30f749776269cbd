"""How a with block closes what it is about."""

from __future__ import annotations

from collections.abc import Callable


def close_in_with(close: Callable[[], None], error: BaseException | None) -> None:
    """Call `close` at the end of a with block; an error that ends the block is not hidden by one of closing."""
    try:
        close()
    except Exception as close_error:
        if error is None:
            raise
        error.add_note(f"Then closing failed: {close_error!r}")
