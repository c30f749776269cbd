"""The command line `logstore`: the steps that must be quick, before click and `commands` are imported."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from typing import Any, NoReturn

# numpy would start a thread for each processor, for linear algebra that nothing here does: a fifth of a small dump
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_STDOUT = "cannot write to standard output"  # in place of a file's name
HELP_SETTINGS = {"help_option_names": ["-h", "--help"]}  # of every command


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGTERM, _end)
    _end_when_cut()
    _name_stdout()
    words = sys.argv[1:]
    if words[:1] == ["dump"]:
        sys.exit(dump_program(words[1:]))
    from .commands import logstore

    try:
        logstore(prog_name="logstore")
    except OSError as error:  # but for a reader that has gone, where click ends by itself
        sys.exit(_tell(error))


def dump_program(argv: list[str]) -> int:
    """Dump to standard output as `argv`, the words after `dump`, ask for; return the exit code."""
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
        return _tell(error)


def _tell(error: OSError) -> int:
    """Print what the system refused, and for which file if it says so; return the exit code."""
    if error.filename == _STDOUT:
        _forget_stdout()
    reason = error.strerror or str(error) or type(error).__name__
    sys.stderr.write(f"logstore: {reason if error.filename is None else f'{error.filename}: {reason}'}\n")
    return 1


class _StandardOutput(io.FileIO):
    """Standard output, whose errors can be told from others that name no file."""

    def write(self, data: Any, /) -> int:
        """Write bytes; an error but that of a reader that has gone names standard output."""
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                error.filename = _STDOUT
            raise


def _name_stdout() -> None:
    if (old := sys.stdout) is None:  # closed by the caller
        return
    buffer = io.BufferedWriter(_StandardOutput(old.fileno(), "w", closefd=False))
    sys.stdout = io.TextIOWrapper(buffer, old.encoding, old.errors, line_buffering=old.isatty())


def _forget_stdout() -> None:
    """Lead standard output nowhere, or Python would complain too when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
