"""How a command ends when standard output cannot be written, or the system refuses a file; and the dump's endings."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

_STDOUT_DESCRIPTOR, _STDERR_DESCRIPTOR = 1, 2
_STDOUT = "cannot write to standard output"  # in place of a file's name


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
        return tell(error)


def tell(error: OSError) -> int:
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


def open_closed_streams() -> None:
    """Lead standard streams that the caller has closed nowhere: a file opened later would become one of them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR_DESCRIPTOR:  # each is the lowest one that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = _text_stream(_STDOUT_DESCRIPTOR)
    if sys.stderr is None:
        sys.stderr = _text_stream(_STDERR_DESCRIPTOR)


def _text_stream(descriptor: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False)))


def name_stdout() -> None:
    old = sys.stdout
    buffer = io.BufferedWriter(_StandardOutput(old.fileno(), "w", closefd=False))
    sys.stdout = io.TextIOWrapper(buffer, old.encoding, "backslashreplace", line_buffering=old.isatty())


def _forget_stdout() -> None:
    """Lead standard output nowhere, or Python would complain too when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
