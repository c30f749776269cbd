"""Closing by `with`, for a store and its clients."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ..model import OfOneProcess


class ClosedInWith(OfOneProcess):
    """An object that a `with` block closes; an error of `close` does not hide the error of the block."""

    def _close_block(self, *, in_order: bool) -> None:
        """Close at the end of a block; not in order if an exception leaves it."""
        self.close()

    def close(self) -> None:
        """Close; a second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._close_block(in_order=error is None)
        except Exception as close_error:
            if error is None:
                raise
            error.add_note(f"Then closing failed: {close_error!r}")
