"""`logstore salvage`, `repair` and `sample`: copies of a partition, with everything beside the log rebuilt."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import click

from logstore.layout.file_names import parse_partition_directory

from .paths import partition_directory
from .progress import Progress, log_size
from .rows import PATH, Row, RowField, RowType, members, print_row
from .tables import print_lines, print_table, visible
from .verbs import FINDINGS, Verb, dry_run_option, now_option, path_argument

if TYPE_CHECKING:
    from logstore.log.load.loader import LoadSettings
    from logstore.log.salvage.salvage import Piece

_COLUMNS = ("segment", "byte", "to", "first offset", "end offset", "batches", "kept", "why not")

COPY = RowType(
    "copy",
    "A copy of a partition, or of a dry run, the plan of one.",
    (
        PATH,
        RowField("destination", "string?", "where the copy is; null if nothing was written"),
        RowField("keptBatches", "integer", "batches in the copy"),
        RowField("leftOutBytes", "integer", "bytes that are not in it"),
        RowField(
            "pieces",
            "array",
            "the log, as objects: `baseOffset` (of the segment), `start` and `end` (bytes), `firstOffset`, "
            "`endOffset`, `batchCount`, `problem` (why it is left out; null: it is kept)",
        ),
    ),
)
SAMPLE = RowType(
    "sample",
    "Some batches that were copied.",
    (
        PATH,
        RowField("destination", "string", "where they are"),
        RowField("batches", "integer", "how many"),
        RowField("endOffset", "integer", "behind the last one"),
        RowField("isRedacted", "boolean", "whether letters stand for keys and values"),
        RowField("skippedBatches", "integer", "batches that could not be read, and were left out"),
    ),
)

_source = path_argument("source", partition_directory)
_destination = click.argument("destination", type=click.Path(), required=False)


@click.command("salvage", cls=Verb, prints=[COPY], example="logstore salvage /var/lib/kafka/data/orders-0 /mnt/rescued")
@_source
@_destination
@now_option
@dry_run_option
def salvage(source: str, destination: str | None, now: int, dry_run: bool, form: str) -> int:
    """Copy all good batches of a partition to the new directory DESTINATION, or into one that is there.

    Without a DESTINATION nothing is written, and what would be kept is printed. Batches before and behind damage keep
    their offsets; indexes, snapshots and epochs are made anew. Readers pass over the holes; a transaction whose marker
    was lost stays open, see `logstore txns`. The exit code is 1 if something has to be left out.
    """
    pieces, _ = _copy(source, None if dry_run else destination, now, form, is_repair=False)
    return FINDINGS if any(piece.problem is not None for piece in pieces) else 0


@click.command("repair", cls=Verb, prints=[COPY], example="logstore repair /var/lib/kafka/data/orders-0 /mnt/repaired")
@_source
@_destination
@now_option
@dry_run_option
def repair(source: str, destination: str | None, now: int, dry_run: bool, form: str) -> int:
    """Copy a partition to the new directory DESTINATION, with everything beside the log made anew.

    For wrong indexes, snapshots and epochs beside a log that is whole; only a torn tail is left out. A log that has
    lost more than that is refused with exit code 1: see `logstore salvage`. Without a DESTINATION nothing is written.
    """
    _, lost = _copy(source, None if dry_run else destination, now, form, is_repair=True)
    if lost:
        text = f"logstore: the log of {source} is damaged in the middle; `logstore salvage` keeps the rest"
        sys.stderr.write(f"{visible(text)}\n")
    return FINDINGS if lost else 0


def _copy(
    source: str, destination: str | None, now: int, form: str, *, is_repair: bool
) -> tuple[list[Piece], list[Piece]]:
    """Copy the good pieces to `destination`, unless it is None or a repair would lose pieces, and print the plan.

    Returns:
        The pieces of the log, and those that a repair would lose.
    """
    from logstore.audit.partition import open_partition
    from logstore.log.salvage import salvage as salvaging

    with Progress("repair" if is_repair else "salvage", log_size(source, is_partition=True)) as progress:
        pieces = salvaging.plan_salvage(source, progress.advance)
        lost = salvaging.losses(pieces) if is_repair else []
        if lost:
            destination = None
        if destination is not None:
            destination = _new_directory(source, destination)
            settings = _settings(now, log_start_offset=open_partition(source).first_offset)
            salvaging.salvage(source, destination, settings, pieces=pieces)
    row = {
        "path": source,
        "destination": destination,
        "keptBatches": sum(piece.batch_count for piece in pieces if piece.problem is None),
        "leftOutBytes": sum(piece.end - piece.start for piece in pieces if piece.problem is not None),
        "pieces": list(map(members, pieces)),
    }
    if form == "table":
        _print_plan(pieces, row)
    else:
        print_row(COPY, row, form)
    return pieces, lost


def _new_directory(source: str, destination: str) -> str:
    """Return the directory of the copy: `destination`, or below it if it exists and is no partition."""
    name, source_name = (os.path.basename(os.path.abspath(path)) for path in (destination, source))
    if os.path.isdir(destination) and parse_partition_directory(name) is None:
        return os.path.join(destination, source_name)
    return destination


def _settings(now: int, *, log_start_offset: int) -> LoadSettings:
    """Return the settings for loading a copy by its log alone."""
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings

    return LoadSettings(False, 0, log_start_offset, now, parse_config({}))


def _print_plan(pieces: list[Piece], row: Row) -> None:
    """Print a line for each piece of the log, and a summary."""
    destination = row["destination"]
    kept = ["yes" if piece.problem is None else "no" for piece in pieces]
    cells = [(*piece[:6], word, piece.problem) for piece, word in zip(pieces, kept, strict=True)]
    print_table(_COLUMNS, cells, ("byte", "to", "batches"))
    what = "would be" if destination is None else "were"
    print_lines("", f"{row['keptBatches']} batches {what} kept, {row['leftOutBytes']} bytes left out.")
    print_lines("Nothing was written: name a destination." if destination is None else f"They are in {destination}.")


@click.command(
    "sample",
    cls=Verb,
    prints=[SAMPLE],
    example="logstore sample /var/lib/kafka/data/orders-0 /mnt/shown --redact",
)
@_source
@click.argument("destination", type=click.Path())
@click.option("--offset", type=int, help="Where to begin; by default where the log does.")
@click.option("--batches", type=click.IntRange(min=1), default=100, show_default=True, help="How many to take at most.")
@click.option("--redact", is_flag=True, help="Put letters in the place of keys, values and values of headers.")
@now_option
def sample(source: str, destination: str, offset: int | None, batches: int, redact: bool, now: int, form: str) -> int:
    """Copy some batches of a partition to the new directory DESTINATION, or into one that is there, to show them.

    They are of one segment, and keep their offsets, times, producers and sequences. Redacted keys and values have their
    length, and are equal where they were; each sample has a secret of its own, which is not kept.
    """
    from logstore.audit.partition import open_partition
    from logstore.log.salvage.sample import Redaction
    from logstore.log.salvage.sample import sample as copy_sample

    destination = _new_directory(source, destination)
    found = copy_sample(
        source,
        destination,
        _settings(now, log_start_offset=0),
        first_offset=open_partition(source).first_offset if offset is None else offset,
        batch_count=batches,
        redaction=Redaction(secrets.token_bytes(32)) if redact else None,
    )
    row = {
        "path": source,
        "destination": destination,
        "batches": found.batch_count,
        "endOffset": found.log.log_end_offset,
        "isRedacted": redact,
        "skippedBatches": found.skipped_count,
    }
    if form != "table":
        print_row(SAMPLE, row, form)
        return 0
    what = "redacted" if redact else "as they are"
    print_lines(f"{row['batches']} batches up to offset {row['endOffset']}, {what}, in {destination}")
    if found.skipped_count:
        print_lines(f"{found.skipped_count} batches could not be read, and were left out")
    return 0
