"""The command line `logstore`: what has to be quick before click is imported, then `commands`."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import NoReturn

# numpy starts a thread a processor for linear algebra, which nothing here does: a fifth of a small dump's time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HELP_SETTINGS = {"help_option_names": ["-h", "--help"]}  # of every command, whoever calls it


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGTERM, _end)
    _end_when_cut()
    words = sys.argv[1:]
    if words[:1] == ["dump"]:
        sys.exit(dump_program(words[1:]))
    from .commands import logstore

    logstore(prog_name="logstore")


def dump_program(argv: list[str]) -> int:
    """Dump what `argv` (the words after `dump`) asks for to standard output; returns the exit code."""
    from .dump import run

    try:
        return run(argv, sys.stdout.buffer, sys.stderr)
    except BrokenPipeError:
        _forget_stdout()  # the reader has what it wanted
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("logstore: interrupted\n")
        return 130
    except OSError as error:
        if error.filename is None:  # every file has a name but standard output
            _forget_stdout()
        where = f"{error.filename}" if error.filename is not None else "cannot write to standard output"
        sys.stderr.write(f"logstore: {where}: {error.strerror}\n")
        return 1


def _forget_stdout() -> None:
    """Let what Python still flushes at exit go nowhere, so that it does not complain too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, frame: object) -> NoReturn:
    """End as an interrupted command does, so that what is half done is taken back, with a shell's code for SIGTERM."""
    from .progress import ERASE

    sys.stderr.write(f"{ERASE if sys.stderr.isatty() else ''}logstore: terminated\n")
    sys.exit(143)


def _end_when_cut() -> None:
    """Let the process end with a word, and not by SIGBUS, when another one cuts a file that is mapped here.

    In C, as Python would go back to the instruction that failed before it called a handler of its own.
    """
    _handlers.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(_cut))
    ctypes.CDLL(None).signal(int(signal.SIGBUS), _handlers[0])


_handlers: list[object] = []  # kept, as C calls them


def _cut(number: int) -> NoReturn:
    sys.stderr.write("logstore: another process cut a file while it was read; look again, or at a copy of it\n")
    os._exit(3)
