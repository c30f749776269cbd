"""The command line `logstore`: the steps that must be quick, before click and `commands` are imported."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import NoReturn

from .endings import dump_program, name_stdout, open_closed_streams, tell

# numpy would start a thread for each processor, for linear algebra that nothing here does: a fifth of a small dump
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Entry point of the console script."""
    open_closed_streams()
    signal.signal(signal.SIGTERM, _end)
    _end_when_cut()
    name_stdout()
    words = sys.argv[1:]
    if words[:1] == ["dump"]:
        sys.exit(dump_program(words[1:]))
    from .commands import logstore

    try:
        logstore(prog_name="logstore")
    except OSError as error:  # but for a reader that has gone, where click ends by itself
        sys.exit(tell(error))


def _end(number: int, frame: object) -> NoReturn:
    """End by an exception, which undoes what is half done, with the exit code that a shell has for SIGTERM."""
    from .progress import ERASE

    sys.stderr.write(f"{ERASE if sys.stderr.isatty() else ''}logstore: terminated\n")
    sys.exit(143)


def _end_when_cut() -> None:
    """Print a message instead of dying by SIGBUS when another process cuts a file that is mapped here.

    The handler is one of C: Python would repeat the failed instruction before it called a handler of its own.
    """
    _handlers.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(_cut))
    ctypes.CDLL(None).signal(int(signal.SIGBUS), _handlers[0])


_handlers: list[object] = []  # keeps alive what C calls


def _cut(number: int) -> NoReturn:
    sys.stderr.write("logstore: another process cut a file while it was read; look again, or at a copy of it\n")
    os._exit(3)
