"""The end of a store or of one of its clients, by `with`."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class ClosedInWith:
    """What a `with` block closes at its end; an error of `close` does not hide the one that ends the block."""

    def close(self) -> None:
        """End; a second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as close_error:
            if error is None:
                raise
            error.add_note(f"Then closing failed: {close_error!r}")
