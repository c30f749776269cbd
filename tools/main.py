"""The command line `logstore`: what has to be quick before click is imported, then `commands`."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

# numpy starts a thread a processor for linear algebra, which nothing here does: a fifth of a small dump's time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGTERM, _end)
    words = sys.argv[1:]
    if words[:1] == ["dump"]:
        from .dump_program import dump_program

        sys.exit(dump_program(words[1:]))
    if words == ["--version"]:
        from logstore import __version__

        sys.stdout.write(f"logstore, version {__version__}\n")
        return
    from .commands import logstore

    logstore(prog_name="logstore")


def _end(number: int, frame: object) -> NoReturn:
    """End as an interrupted command does, so that what is half done is taken back, with a shell's code for SIGTERM."""
    sys.stderr.write("logstore: terminated\n")
    sys.exit(143)
