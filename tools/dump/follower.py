"""`--follow`: what is added to logs, and logs that are new."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import BinaryIO, NoReturn

from logstore.disk.names import java_file
from logstore.disk.paths import exists, stat
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import LOG_SUFFIX

from .findings import Findings
from .log_dump import Place, dump_log
from .options import DumpOptions
from .output import Output

INTERVAL_S = 0.2  # between two looks at the files
_GONE = -1  # size of a log that was deleted


class DumpFollower:
    """Dumps logs that grow, look by look.

    A batch is printed once it is whole, and with `--isolation-level read_committed` once its transaction has ended.
    Text names the path whenever another log than the last one goes on. What is found in a look is told behind it. A log
    that was deleted is forgotten; if it comes back, it is dumped from its start.
    """

    def __init__(self, options: DumpOptions, out: Output, stdout: BinaryIO, findings: Findings) -> None:
        self._options = options
        self._out = out
        self._stdout = stdout
        self._findings = findings
        self._places: dict[str, Place] = {}
        self._sizes: dict[str, int] = {}
        self._last_path: str | None = None

    def run(self, list_paths: Callable[[], list[str]]) -> NoReturn:
        """Look again and again.

        Args:
            list_paths: called for each look at the files.

        Raises:
            DataDirectoryError: a log became shorter; a broker cuts logs when it starts after a crash.
            LogstoreError: as `dump_log`.
        """
        while True:
            paths = [path for path in map(java_file, list_paths()) if path.endswith(LOG_SUFFIX)]
            for path in dict.fromkeys([*paths, *self._sizes]):
                size = stat(path).st_size if exists(path) else _GONE  # dump_log raises for one that never was
                if size == _GONE and path in self._sizes:
                    self._forget(path, is_listed=path in paths)
                else:
                    self._look(path, size)
            threading.Event().wait(INTERVAL_S)

    def _forget(self, path: str, *, is_listed: bool) -> None:
        self._places.pop(path, None)
        if is_listed:
            self._sizes[path] = _GONE
        else:
            del self._sizes[path]

    def _look(self, path: str, size: int) -> None:
        """Dump what was added to a log of `size` bytes, and tell what is found in it."""
        place = self._places.get(path, Place())
        if size == self._sizes.get(path) and not place.is_held:
            return
        if size < place.position:
            raise DataDirectoryError(
                "The log was cut while it was followed",
                path=path,
                expected=f"at least {place.position} bytes, which were dumped",
                found=f"{size} bytes",
                advice="a recovery or a new leader cuts a log: follow it anew",
            )
        out = self._out
        is_titled = self._options.format == "text" and path != self._last_path
        title = f"Dumping {path}\n".encode("utf-8", "replace") if is_titled else b""
        out.write(title)
        is_printed = False
        try:
            self._places[path] = dump_log(path, self._options, out, self._findings, self._places.get(path))
            is_printed = out.array[: out.size] != title
            if not is_printed:
                out.size = 0
        finally:
            out.flush()
            self._stdout.flush()
        self._findings.print()
        self._sizes[path] = size
        if is_printed:
            self._last_path = path
