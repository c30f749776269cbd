"""`logstore salvage`, `repair` and `sample`: copies of a partition, with everything beside the log rebuilt."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import click

from .paths import name_of_partition, partition_directory
from .progress import Progress, log_size
from .rows import PATH, RowField, RowType, members, print_row
from .tables import count_of, print_lines, print_table, visible
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
    from logstore.log.salvage.salvage import plan_salvage

    with Progress("salvage", lambda: log_size(source, is_partition=True)) as progress:
        pieces = plan_salvage(source, progress.advance)
        copy = _copy(source, None if dry_run else destination, now, pieces)
    _print_copy(source, copy, pieces, form)
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
    from logstore.log.salvage.salvage import losses, plan_salvage

    with Progress("repair", lambda: log_size(source, is_partition=True)) as progress:
        pieces = plan_salvage(source, progress.advance)
        lost = losses(pieces)
        copy = _copy(source, None if dry_run or lost else destination, now, pieces)
    _print_copy(source, copy, pieces, form)
    if lost:
        text = f"logstore: the log of {source} is damaged in the middle; `logstore salvage` keeps the rest"
        sys.stderr.write(f"{visible(text)}\n")
    return FINDINGS if lost else 0


def _copy(source: str, destination: str | None, now: int, pieces: list[Piece]) -> str | None:
    """Copy the good pieces, and return the directory of the copy; do nothing if `destination` is None."""
    from logstore.audit.partition import open_partition
    from logstore.log.salvage.salvage import salvage as copy_pieces

    if destination is None:
        return None
    directory = _new_directory(source, destination)
    settings = _settings(now, log_start_offset=open_partition(source).first_offset)
    copy_pieces(source, directory, settings, pieces=pieces)
    return directory


def _new_directory(source: str, destination: str) -> str:
    """Return the directory of the copy: `destination`, or below it if it exists and is no partition."""
    if os.path.isdir(destination) and name_of_partition(destination) is None:
        return os.path.join(destination, os.path.basename(os.path.abspath(source)))
    return destination


def _settings(now: int, *, log_start_offset: int) -> LoadSettings:
    """Return the settings for loading a copy by its log alone."""
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings

    return LoadSettings(False, 0, log_start_offset, now, parse_config({}))


def _print_copy(source: str, copy: str | None, pieces: list[Piece], form: str) -> None:
    """Print the pieces of the log, and the directory of the copy if there is one."""
    kept_count = sum(piece.batch_count for piece in pieces if piece.problem is None)
    left_out_size = sum(piece.end - piece.start for piece in pieces if piece.problem is not None)
    if form != "table":
        row = {"path": source, "destination": copy, "keptBatches": kept_count, "leftOutBytes": left_out_size}
        print_row(COPY, row | {"pieces": list(map(members, pieces))}, form)
        return
    cells = [(*piece[:6], "yes" if piece.problem is None else "no", piece.problem) for piece in pieces]
    print_table(_COLUMNS, cells, ("byte", "to", "batches"))
    kept, left_out = count_of(kept_count, "batch"), count_of(left_out_size, "byte")
    if copy is None:
        print_lines("", f"A copy would keep {kept} and leave out {left_out}.")
        print_lines("Nothing was written: name a destination.")
    else:
        print_lines("", f"The copy in {copy} has {kept}; {left_out} were left out.")


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
    kept = count_of(found.batch_count, "batch")
    print_lines(f"{kept} up to offset {found.log.log_end_offset}, {what}, in {destination}")
    if found.skipped_count:
        print_lines(f"{count_of(found.skipped_count, 'batch')} left out, which could not be read")
    return 0
