"""`logstore salvage`, `repair` and `sample`: copies of a partition, with everything beside the log made anew."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import click

from logstore.layout.file_names import parse_partition_directory

from .audit_options import dry_run_option, form_option, now_option, print_object, print_rows, time_or_clock, told_errors
from .paths import partition_directory

if TYPE_CHECKING:
    from logstore.log.load.loader import LoadSettings
    from logstore.log.salvage.salvage import Piece

_COLUMNS = ("segment", "byte", "to", "first offset", "end offset", "batches", "kept", "why not")


@click.command("salvage")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("destination", type=click.Path(), required=False)
@now_option
@dry_run_option
@form_option
def salvage(source: str, destination: str | None, now: int | None, dry_run: bool, form: str) -> None:
    """Copy all good batches of the partition directory SOURCE to the new directory DESTINATION, or into one there is.

    Without a DESTINATION nothing is written, and what would be kept is printed. Batches before and behind damage keep
    their offsets; indexes, snapshots and epochs are made anew. Readers pass over the holes; a transaction whose marker
    was lost stays open, see `logstore txns`. The exit code is 1 if something has to be left out.
    """
    pieces, _ = _copy(source, None if dry_run else destination, now, form, is_repair=False)
    sys.exit(1 if any(piece.problem is not None for piece in pieces) else 0)


@click.command("repair")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("destination", type=click.Path(), required=False)
@now_option
@dry_run_option
@form_option
def repair(source: str, destination: str | None, now: int | None, dry_run: bool, form: str) -> None:
    """Copy the partition directory SOURCE to the new directory DESTINATION, with everything beside the log made anew.

    For wrong indexes, snapshots and epochs beside a log that is whole; only a torn tail is left out. A log that has
    lost more than that is refused with exit code 1: see `logstore salvage`. Without a DESTINATION nothing is written.
    """
    _, lost = _copy(source, None if dry_run else destination, now, form, is_repair=True)
    if lost:
        sys.stderr.write(f"logstore: the log of {source} is damaged in the middle; `logstore salvage` keeps the rest\n")
    sys.exit(1 if lost else 0)


def _copy(
    source: str, destination: str | None, now: int | None, form: str, *, is_repair: bool
) -> tuple[list[Piece], list[Piece]]:
    """Copy what is good to `destination`, if there is one and a repair would lose nothing by it, and print the plan.

    Returns the pieces of the log, and those that a repair would lose.
    """
    from logstore.audit.partition import open_partition
    from logstore.log.salvage import salvage as salvaging

    destination = _new_directory(source, destination)
    with told_errors():
        pieces = salvaging.plan_salvage(partition_directory(source))
        lost = salvaging.losses(pieces) if is_repair else []
        if lost:
            destination = None
        if destination is not None:
            settings = _settings(now, log_start_offset=open_partition(source).first_offset)
            salvaging.salvage(source, destination, settings, pieces=pieces)
    _print_plan(pieces, destination, form)
    return pieces, lost


def _new_directory(source: str, destination: str | None) -> str | None:
    """Return where the copy goes: into a directory that is there and is no partition, under the name of the source."""
    if destination is None or not os.path.isdir(destination):
        return destination
    if parse_partition_directory(os.path.basename(os.path.abspath(destination))) is not None:
        return destination
    return os.path.join(destination, os.path.basename(os.path.abspath(source)))


def _settings(now: int | None, *, log_start_offset: int) -> LoadSettings:
    """Return what a copy is loaded by: nothing beside its log counts."""
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings

    return LoadSettings(False, 0, log_start_offset, time_or_clock(now), parse_config({}))


def _print_plan(pieces: list[Piece], destination: str | None, form: str) -> None:
    """Print each piece of the log, and whether it is kept."""
    rows = [piece._asdict() for piece in pieces]
    if form == "json":
        print_object({"destination": destination, "pieces": rows}, form)
        return
    print_rows(rows, form, _COLUMNS, map(_row, pieces))
    if form != "table":
        return
    batch_count = sum(piece.batch_count for piece in pieces if piece.problem is None)
    size = sum(piece.end - piece.start for piece in pieces if piece.problem is not None)
    what = "would be" if destination is None else "were"
    click.echo(f"\n{batch_count} batches {what} kept, {size} bytes left out.")
    click.echo("Nothing was written: name a destination." if destination is None else f"They are in {destination}.")


def _row(piece: Piece) -> tuple[object, ...]:
    kept = "yes" if piece.problem is None else "no"
    offsets = (piece.first_offset, piece.end_offset)
    return (piece.base_offset, piece.start, piece.end, *offsets, piece.batch_count, kept, piece.problem)


@click.command("sample")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("destination", type=click.Path())
@click.option("--offset", type=int, help="Where to begin; by default where the log does.")
@click.option("--batches", type=click.IntRange(min=1), default=100, show_default=True, help="How many to take at most.")
@click.option("--redact", is_flag=True, help="Put letters in the place of keys, values and values of headers.")
@now_option
def sample(source: str, destination: str, offset: int | None, batches: int, redact: bool, now: int | None) -> None:
    """Copy some batches of the partition directory SOURCE to the new directory DESTINATION, to be shown to others.

    They are of one segment, and keep their offsets, times, producers and sequences. Redacted keys and values have their
    length, and are equal where they were; each sample has a secret of its own, which is not kept.
    """
    from logstore.audit.partition import open_partition
    from logstore.log.salvage.sample import Redaction
    from logstore.log.salvage.sample import sample as copy_sample

    with told_errors():
        partition = open_partition(partition_directory(source))
        first_offset = partition.first_offset if offset is None else offset
        redaction = Redaction(secrets.token_bytes(32)) if redact else None
        found = copy_sample(
            source,
            destination,
            _settings(now, log_start_offset=0),
            first_offset=first_offset,
            batch_count=batches,
            redaction=redaction,
        )
    what = "redacted" if redact else "as they are"
    click.echo(f"{found.batch_count} batches up to offset {found.log.log_end_offset}, {what}, in {destination}")
    if found.skipped_count:
        click.echo(f"{found.skipped_count} batches could not be read, and were left out")
