"""`logstore salvage`, `repair` and `sample`: copies of a partition, with everything beside the log rebuilt."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import click

from logstore.disk.directory import list_partition_directory
from logstore.disk.names import path_text
from logstore.disk.recognition import require_outside
from logstore.disk.seam import SEAM
from logstore.layout.file_names import directory_name

from .paths import readable_partition
from .progress import Progress, log_size
from .rows import PATH, Cells, JsonField, RowType, TypedRows, VerbAnswer, members, one_row
from .tables import count_of
from .verbs import FINDINGS, Verb, code_of_problems, dry_run_option, now_option, path_argument

if TYPE_CHECKING:
    from logstore.audit.finding import Finding
    from logstore.errors import LogstoreError
    from logstore.log.load.loader import LoadSettings

    from .salvage.salvage import Piece

_COLUMNS = ("segment", "byte", "to", "first offset", "end offset", "batches", "kept", "why not")

COPY = RowType(
    "copy",
    "A copy of a partition, or of a dry run, the plan of one.",
    (
        PATH,
        JsonField("destination", "string?", "where the copy is; null if nothing was written"),
        JsonField("keptBatches", "integer", "batches in the copy, as they were read there again"),
        JsonField("leftOutBytes", "integer", "bytes that are not in it"),
        JsonField("logStartOffset", "integer?", "where the log started; null if no checkpoint tells; the copy has all"),
        JsonField(
            "pieces",
            "array",
            "the log, as objects: `baseOffset` (of the segment), `start` and `end` (bytes), `firstOffset`, "
            "`endOffset`, `batchCount`, `problem` (why it is left out; null: it is kept), `copyBaseOffset` (of the "
            "copy's segment)",
        ),
    ),
)
SAMPLE = RowType(
    "sample",
    "Some batches that were copied.",
    (
        PATH,
        JsonField("destination", "string", "where they are"),
        JsonField("batches", "integer", "how many"),
        JsonField("endOffset", "integer", "behind the last one"),
        JsonField("isRedacted", "boolean", "whether letters stand for keys and values"),
        JsonField("skippedBatches", "integer", "batches that could not be read, and were left out"),
    ),
)

_source = path_argument("source", readable_partition)
_destination = click.argument("destination", type=click.Path(), required=False)


@click.command("salvage", cls=Verb, prints=[COPY], example="logstore salvage /var/lib/kafka/data/orders-0 /mnt/rescued")
@_source
@_destination
@now_option
@dry_run_option
def salvage(source: str, destination: str | None, now: int, dry_run: bool) -> VerbAnswer:
    """Copy all good batches of a partition into the directory DESTINATION, which is made if it is not there.

    The copy is DESTINATION/topic-partition; a DESTINATION of that name is the copy itself. Without a DESTINATION
    nothing is written, and what would be kept is printed. Batches before and behind damage keep their offsets, and so
    do those below the log start. Unusual batches that a broker takes are kept; indexes, snapshots and epochs are made
    anew. Readers pass over the holes; a transaction whose marker was lost stays open, see `logstore txns`. The exit
    code is 1 if something has to be left out.
    """
    from .salvage.salvage import plan_salvage

    settings, problems = _settings(source, now)
    with Progress("salvage", lambda: log_size(source, is_partition=True)) as progress:
        pieces = plan_salvage(source, progress.advance, config=settings.config)
        copy = _copy(source, destination, settings, pieces, _why_not(destination, dry_run))
    return _answer(source, copy, pieces, any(piece.problem is not None for piece in pieces), problems)


@click.command("repair", cls=Verb, prints=[COPY], example="logstore repair /var/lib/kafka/data/orders-0 /mnt/repaired")
@_source
@_destination
@now_option
@dry_run_option
def repair(source: str, destination: str | None, now: int, dry_run: bool) -> VerbAnswer:
    """Copy a partition into the directory DESTINATION, with everything beside the log made anew.

    For wrong indexes, snapshots and epochs beside a log that is whole; only a torn tail is left out. A log that has
    lost more than that is refused with exit code 1: see `logstore salvage`. DESTINATION is as there, and without one
    nothing is written.
    """
    from .salvage.salvage import losses, plan_salvage

    settings, problems = _settings(source, now)
    with Progress("repair", lambda: log_size(source, is_partition=True)) as progress:
        pieces = plan_salvage(source, progress.advance, config=settings.config)
        lost = losses(pieces)
        damaged = "the log is damaged in the middle" if lost else None
        copy = _copy(source, destination, settings, pieces, damaged or _why_not(destination, dry_run))
    told = f"the log of {source} is damaged in the middle; `logstore salvage` keeps the rest"
    return _answer(source, copy, pieces, bool(lost), problems, [told] if lost else [])


class _Copy(NamedTuple):
    """A copy that was made, or why none was: the directory, and the batches and bytes that were read there again."""

    directory: str | None
    batch_count: int
    size: int
    why_not: str | None = None


def _why_not(destination: str | None, dry_run: bool) -> str | None:
    """Return why nothing is to be written; None if something is."""
    return "name a destination" if destination is None else "this is a dry run" if dry_run else None


def _copy(
    source: str, destination: str | None, settings: LoadSettings, pieces: list[Piece], why_not: str | None
) -> _Copy:
    """Copy the good pieces, unless there is a reason not to."""
    from .salvage.copying import require_new_directory, require_possible
    from .salvage.salvage import salvage as copy_pieces

    if destination is None or why_not is not None:
        if destination is not None:
            place = os.path.abspath(_place_of_copy(source, destination))
            check = require_possible if _makes(source, destination) else require_new_directory
            check(list_partition_directory(source), place)
        kept = [piece for piece in pieces if piece.problem is None]
        batch_count, size = sum(piece.batch_count for piece in kept), sum(piece.end - piece.start for piece in kept)
        return _Copy(None, batch_count, size, why_not)
    with _new_directory(source, destination) as directory:
        copied = copy_pieces(source, directory, settings, pieces=pieces)
    return _Copy(directory, copied.batch_count, copied.size)


@contextmanager
def _new_directory(source: str, destination: str) -> Iterator[str]:
    """Yield the directory of the copy: `destination` if it has the partition's name, else one of that name in it.

    A `destination` that is not there is made, and removed again if the block fails.
    """
    from .salvage.copying import new_directory

    with new_directory(os.path.abspath(destination), SEAM) if _makes(source, destination) else nullcontext():
        yield _place_of_copy(source, destination)


def _makes(source: str, destination: str) -> bool:
    """Return whether a copy makes `destination`, to be in it; raises UsageError if that is in a data directory."""
    place = os.path.abspath(destination)
    is_copy = _place_of_copy(source, destination) == destination
    if is_copy or os.path.lexists(place) or not os.path.isdir(os.path.dirname(place)):
        return False
    require_outside(place)
    return True


def _place_of_copy(source: str, destination: str) -> str:
    """Return the directory of the copy; a partition that a broker has set aside gets its live name again."""
    name, destination = directory_name(*list_partition_directory(source).key), path_text(destination)
    return destination if os.path.basename(os.path.abspath(destination)) == name else os.path.join(destination, name)


def _broken_metadata(source: str) -> list[LogstoreError]:
    """Return which files beside the log are not in a copy, and why."""
    from .salvage.copying import broken_metadata

    return broken_metadata(list_partition_directory(source))


def _settings(source: str, now: int) -> tuple[LoadSettings, list[Finding]]:
    """Return the settings for loading a copy by its log alone, and why its topic's configuration may lack some."""
    from logstore.audit.partition import open_partition
    from logstore.log.load.loader import LoadSettings

    from .topic_config import topic_config

    config, problems = topic_config(source)
    return LoadSettings(False, 0, open_partition(source).first_offset, now, config), problems


def _answer(
    source: str,
    copy: _Copy,
    pieces: list[Piece],
    is_bad: bool,
    problems: Sequence[Finding],
    notes: Sequence[str] = (),
) -> VerbAnswer:
    """Return the pieces of the log, and the directory of the copy if there is one.

    What is left out is a finding if it `is_bad`; `problems` are those of the metadata.
    """
    from logstore.audit.partition import open_partition

    start = open_partition(source).surroundings.log_start_offset
    left_out_size = sum(piece.end - piece.start for piece in pieces) - copy.size
    row = {
        "path": source,
        "destination": copy.directory,
        "keptBatches": copy.batch_count,
        "leftOutBytes": left_out_size,
        "logStartOffset": start,
        "pieces": list(map(members, pieces)),
    }
    cells = [(*piece[:6], "yes" if piece.problem is None else "no", piece.problem) for piece in pieces]
    kept, left_out = count_of(copy.batch_count, "batch"), count_of(left_out_size, "byte")
    lines: list[str | Cells | TypedRows] = [Cells(_COLUMNS, cells, ("byte", "to", "batches")), ""]
    if copy.directory is None:
        lines.append(f"A copy would keep {kept} and leave out {left_out}.")
    else:
        lines.append(f"The copy in {copy.directory} has {kept}; {left_out} were left out.")
    first = next((piece.first_offset for piece in pieces if piece.problem is None), None)
    if start is not None and first is not None and first < start:
        lines.append(f"The log started at offset {start}; a copy begins at offset {first}, with what is below too.")
    if copy.why_not is not None:
        lines.append(f"Nothing was written: {copy.why_not}.")
    broken = _broken_metadata(source)
    code = max(code_of_problems(problems), FINDINGS if broken or is_bad else 0)
    return VerbAnswer([one_row(COPY, row)], code, lines, [*notes, *broken, *problems])


@click.command(
    "sample",
    cls=Verb,
    prints=[SAMPLE],
    example="logstore sample /var/lib/kafka/data/orders-0 /mnt/shown --redact",
)
@_source
@click.argument("destination", type=click.Path())
@click.option(
    "--offset",
    type=int,
    help="Where to begin; by default where the log starts, or with its first batch if there is none behind.",
)
@click.option("--batches", type=click.IntRange(min=1), default=100, show_default=True, help="How many to take at most.")
@click.option(
    "--redact",
    is_flag=True,
    help="Put letters in the place of keys, values and values of headers; batches of magic 0 and 1 are left out.",
)
@now_option
def sample(source: str, destination: str, offset: int | None, batches: int, redact: bool, now: int) -> VerbAnswer:
    """Copy some batches of a partition into the directory DESTINATION, to show them; it is made if it is not there.

    They are of one segment, and keep their offsets, times, producers and sequences. Redacted keys and values have their
    length, and are equal where they were; each sample has a secret of its own, which is not kept.
    """
    from .salvage.sample import Redaction
    from .salvage.sample import sample as copy_sample

    settings, problems = _settings(source, now)
    with _new_directory(source, destination) as directory:
        found = copy_sample(
            source,
            directory,
            settings,
            first_offset=offset,
            batch_count=batches,
            redaction=Redaction(secrets.token_bytes(32)) if redact else None,
        )
    row = {
        "path": source,
        "destination": directory,
        "batches": found.batch_count,
        "endOffset": found.log.log_end_offset,
        "isRedacted": redact,
        "skippedBatches": found.skipped_count,
    }
    what = "redacted" if redact else "as they are"
    kept = count_of(found.batch_count, "batch")
    lines = [f"{kept} up to offset {found.log.log_end_offset}, {what}, in {directory}"]
    if found.skipped_count:
        why = "cannot be read or redacted" if redact else "cannot be read"
        lines.append(f"{count_of(found.skipped_count, 'batch')} left out, which {why}")
    notes: list[LogstoreError | Finding] = [*_broken_metadata(source), *problems]
    return VerbAnswer([one_row(SAMPLE, row)], code_of_problems(problems), lines, notes)
