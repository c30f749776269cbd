"""What salvage and repair have in common: the writing, and the plan for people and programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from .tables import print_table

if TYPE_CHECKING:
    from logstore.log.salvage.salvage import Piece


def write_copy(source: str, destination: str, pieces: list[Piece], now_ms: int) -> None:
    """Make `destination`; raises LogstoreError."""
    from logstore.audit.partition import open_partition
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings
    from logstore.log.salvage.salvage import salvage

    settings = LoadSettings(
        was_clean=False,
        recovery_point=0,
        log_start_offset=open_partition(source).first_offset,
        now_ms=now_ms,
        config=parse_config({}),
    )
    salvage(source, destination, settings, pieces=pieces)


def print_plan(pieces: list[Piece], destination: str | None, form: str) -> None:
    """Each piece of the log, and whether it is kept."""
    if form == "json":
        click.echo(json.dumps({"destination": destination, "pieces": [piece._asdict() for piece in pieces]}))
        return
    columns = ("segment", "byte", "to", "first offset", "end offset", "batches", "kept", "why not")
    print_table(columns, [_row(piece) for piece in pieces])
    batch_count = sum(piece.batch_count for piece in pieces if piece.problem is None)
    size = sum(piece.end - piece.start for piece in pieces if piece.problem is not None)
    what = "would be" if destination is None else "were"
    click.echo(f"\n{batch_count} batches {what} kept, {size} bytes left out.")
    click.echo("Nothing was written: name a destination." if destination is None else f"They are in {destination}.")


def _row(piece: Piece) -> tuple[int, int, int, int | None, int | None, int, str, str | None]:
    kept = "yes" if piece.problem is None else "no"
    return (
        piece.base_offset,
        piece.start,
        piece.end,
        piece.first_offset,
        piece.end_offset,
        piece.batch_count,
        kept,
        piece.problem,
    )
