"""`logstore dump`."""

from __future__ import annotations

import os
import sys

import click


class _AsKafka(click.Command):
    """Leaves the arguments alone: they are parsed as Kafka's tool parses them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["argv"] = list(args)
        return []


@click.command("dump", cls=_AsKafka, add_help_option=False)
def command(argv: list[str]) -> None:
    """Print segments, indexes and snapshots as kafka-dump-log does."""
    from .dump import run

    try:
        code = run(argv, sys.stdout.buffer, sys.stderr)
    except BrokenPipeError:
        _forget_stdout()  # the reader has what it wanted
        code = 0
    except OSError as error:
        _forget_stdout()
        sys.stderr.write(f"logstore: cannot write to standard output: {error.strerror}\n")
        code = 1
    sys.exit(code)


def _forget_stdout() -> None:
    """Let what Python still flushes at exit go nowhere, so that it does not complain too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
