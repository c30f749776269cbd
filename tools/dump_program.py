"""`logstore dump` as a program: what it does to standard output, and the exit code. It does not need click."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast


def dump_program(argv: list[str]) -> int:
    """Dump what `argv` (the words after `dump`) asks for to standard output; returns the exit code."""
    from .dump import run

    try:
        return run(argv, cast(BinaryIO, _StandardOutput(sys.stdout.buffer)), sys.stderr)
    except BrokenPipeError:
        _forget_stdout()  # the reader has what it wanted
        return 0
    except _CannotWrite as error:
        _forget_stdout()
        sys.stderr.write(f"logstore: cannot write to standard output: {error}\n")
    except OSError as error:
        sys.stderr.write(f"logstore: {error.strerror}{f': {error.filename}' if error.filename else ''}\n")
    return 1


class _CannotWrite(Exception):
    """Standard output takes no more; the message is the operating system's reason."""


class _StandardOutput:
    """Standard output whose failures can be told from those of the files that are dumped."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.isatty = stream.isatty

    def write(self, content: Any) -> None:
        """Write bytes."""
        with _told():
            self._stream.write(content)

    def flush(self) -> None:
        """Write what is buffered."""
        with _told():
            self._stream.flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _CannotWrite(error.strerror) from error


def _forget_stdout() -> None:
    """Let what Python still flushes at exit go nowhere, so that it does not complain too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
