"""`logstore salvage`."""

from __future__ import annotations

import sys

import click

from .audit_options import form_option, now_option, time_or_clock, told_errors


@click.command("salvage")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("destination", type=click.Path(), required=False)
@now_option
@form_option
def command(source: str, destination: str | None, now: int | None, form: str) -> None:
    """Copy all good batches of the partition directory SOURCE to the new directory DESTINATION.

    Without a DESTINATION nothing is written, and what would be kept is printed. Batches before and behind damage keep
    their offsets; indexes, snapshots and epochs are made anew. Readers pass over the holes; a transaction whose marker
    was lost stays open, see `logstore txns`. The exit code is 1 if something has to be left out.
    """
    from logstore.log.salvage.salvage import plan_salvage

    from .salvage_text import print_plan, write_copy

    with told_errors():
        pieces = plan_salvage(source)
        if destination is not None:
            write_copy(source, destination, pieces, time_or_clock(now))
    print_plan(pieces, destination, form)
    sys.exit(1 if any(piece.problem is not None for piece in pieces) else 0)
