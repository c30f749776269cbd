"""A log made shorter as a power failure may leave it; to be opened as not cleanly closed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from logstore.columns.batch_table import scan


def cut_log(directory: Path, offset: int) -> None:
    """Cut the only `.log` of a partition in front of the batch that begins at `offset`."""
    (path,) = directory.glob("*.log")
    table = scan(np.fromfile(path, np.uint8))
    (row,) = np.flatnonzero(table.base_offset == offset)
    with path.open("r+b") as log:
        log.truncate(int(table.position[row]))
