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
        # the reader has what it wanted; what Python still flushes at exit must not complain either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        sys.stderr.write(f"logstore: cannot write to standard output: {error.strerror}\n")
        code = 1
    sys.exit(code)
