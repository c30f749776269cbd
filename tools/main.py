"""The command line `logstore`."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script."""
    from .dump import run

    code = run(sys.argv[2:], sys.stdout.buffer, sys.stderr)
    sys.exit(code)
