"""`logstore repair`."""

from __future__ import annotations

import sys

import click

from .audit_options import form_option, now_option, time_or_clock, told_errors


@click.command("repair")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("destination", type=click.Path(), required=False)
@now_option
@form_option
def command(source: str, destination: str | None, now: int | None, form: str) -> None:
    """Copy the partition directory SOURCE to the new directory DESTINATION, with everything beside the log made anew.

    For wrong indexes, snapshots and epochs beside a log that is whole; only a torn tail is left out. A log that has
    lost more than that is refused with exit code 1: see `logstore salvage`. Without a DESTINATION nothing is written.
    """
    from logstore.log.salvage.salvage import losses, plan_salvage

    from .salvage_text import print_plan, write_copy

    with told_errors():
        pieces = plan_salvage(source)
    lost = losses(pieces)
    if not lost and destination is not None:
        with told_errors():
            write_copy(source, destination, pieces, time_or_clock(now))
    print_plan(pieces, None if lost else destination, form)
    if lost:
        sys.stderr.write(f"logstore: the log of {source} is damaged in the middle; `logstore salvage` keeps the rest\n")
    sys.exit(1 if lost else 0)
