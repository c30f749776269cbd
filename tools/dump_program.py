"""`logstore dump` as a program: what it does to standard output, and the exit code. It does not need click."""

from __future__ import annotations

import os
import sys


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
