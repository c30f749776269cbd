"""`logstore dump`."""

from __future__ import annotations

import sys

import click

from .dump_program import dump_program


class _AsKafka(click.Command):
    """Leaves the arguments alone: they are parsed as Kafka's tool parses them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["argv"] = list(args)
        return []


@click.command("dump", cls=_AsKafka, add_help_option=False)
def command(argv: list[str]) -> None:
    """Print segments, indexes and snapshots as kafka-dump-log does."""
    sys.exit(dump_program(argv))
