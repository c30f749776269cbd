"""`--follow`: logs as they grow, roll and appear, until the reader leaves or interrupts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import BinaryIO, NoReturn

from logstore.disk.names import java_file
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import LOG_SUFFIX

from .findings import Findings
from .log_printer import dump_log
from .options import DumpOptions
from .output import Output

INTERVAL_S = 0.2  # between two looks at the files


def follow(
    list_paths: Callable[[], list[str]], options: DumpOptions, out: Output, stdout: BinaryIO, findings: Findings
) -> NoReturn:
    """Dump the logs among the paths, then again and again what was added to them, and the logs that are new.

    A batch that is being written is printed when all of it is there. In text the path is told whenever another log goes
    on. A log that was deleted is forgotten.

    Args:
        list_paths: the files, looked up each time.

    Raises:
        DataDirectoryError: a log became shorter, as a broker cuts one that starts after a crash.
        LogstoreError: as `dump_log`.
    """
    positions: dict[str, int] = {}
    sizes: dict[str, int] = {}
    last_path = None
    while True:
        for path in map(java_file, list_paths()):
            if not path.endswith(LOG_SUFFIX) or (path in sizes and not os.path.lexists(path)):
                continue
            size = os.stat(path).st_size if os.path.lexists(path) else -1  # which dump_log tells
            if size == sizes.get(path):
                continue
            if size < positions.get(path, 0):
                raise DataDirectoryError(
                    "The log was cut while it was followed", path=path, expected=positions[path], found=size
                )
            if options.format == "text" and path != last_path:
                out.print(f"Dumping {path}")
            try:
                positions[path] = dump_log(path, options, out, findings, start=positions.get(path, 0))
            finally:
                out.flush()
                stdout.flush()
            sizes[path], last_path = size, path
        threading.Event().wait(INTERVAL_S)
