"""`logstore import` and `logstore promote`: take a data directory over from a broker, and give it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from logstore import clock
from logstore.errors import UsageError

from .losses import loss_text, losses_of_directory, require_consent
from .paths import data_directory, require_accessible
from .progress import Progress, log_size, log_sizes
from .rows import PATH, Row, RowField, RowType, members, print_row
from .server_properties import (
    require_nameable,
    require_new_file,
    require_startable,
    server_properties,
    start_command,
    warnings,
)
from .tables import print_lines
from .verbs import FINDINGS, Verb, dry_run_option, path_argument, yes_option

if TYPE_CHECKING:
    from logstore.log.salvage.salvage import Piece
    from logstore.store.opening.inspection import Inspection

_DIRECTORY = (
    PATH,
    RowField("clusterId", "string?", "of meta.properties"),
    RowField("nodeId", "integer?", "of meta.properties"),
    RowField("directoryId", "string?", "of meta.properties"),
    RowField("features", "object", "finalized levels by name"),
    RowField("topics", "object", "numbers of partitions by name"),
    RowField("nextProducerId", "integer", "the first that no producer has got"),
    RowField("wasClean", "boolean", "whether it was closed in order"),
    RowField("steps", "array", "what has to be done, in words; of a dry run also what would be removed"),
    RowField("strays", "array", "paths of partitions that the metadata does not know"),
    RowField("done", "array?", "what was done, in words; null of a dry run"),
    RowField(
        "warnings",
        "array",
        "what a broker does with other directories, what retention deletes, and what the configuration lacks",
    ),
)
IMPORTED = RowType("imported", "The directory of a broker.", _DIRECTORY)
PROMOTED = RowType(
    "promoted",
    "A directory that a broker starts with.",
    (
        *_DIRECTORY,
        RowField("brokerConfig", "string?", "content of server.properties; null of a dry run"),
        RowField("startCommand", "string?", "starts the broker; null of a dry run"),
    ),
)


@click.command(
    "import",
    cls=Verb,
    prints=[IMPORTED],
    error_code=FINDINGS,
    example="logstore import /var/lib/kafka/data --dry-run",
)
@path_argument("directory", data_directory)
@yes_option
@dry_run_option
def import_(directory: str, yes: bool, dry_run: bool, form: str) -> int:
    """Take over the data directory of a single-node broker that is stopped: see whether that can be, and recover it.

    Nothing is converted: the directory stays one that the broker can have again. `logstore.open` does the same by
    itself; this tells before what there is, and whether it can. Where a partition is damaged, recovery removes all
    batches behind the damage, those that can be read too: that needs --yes, and `logstore salvage` keeps them.
    """
    from logstore.store.opening.inspection import inspect

    require_accessible(directory, writes=not dry_run)
    found = inspect(directory)
    if found.properties is None:
        raise UsageError(
            "There is no meta.properties, so this is no broker's directory",
            path=directory,
            advice="`logstore promote` makes one of partitions that lie in a directory",
        )
    with Progress("import", lambda: log_size(directory)) as progress:
        lost, done = losses_of_directory(directory, progress.advance), None
    if not dry_run:
        require_consent({} if yes else lost)
        with Progress("import"):
            done = _recover(directory, found)
        found, lost = inspect(directory), {}
    print_row(IMPORTED, _directory(found, lost, done), form)
    return FINDINGS if lost else 0


@click.command(
    "promote",
    cls=Verb,
    prints=[PROMOTED],
    error_code=FINDINGS,
    example="logstore promote /var/lib/kafka/data --dry-run",
)
@path_argument("directory", data_directory)
@click.option("--out", metavar="FILE", help="Write the configuration to a new file.")
@yes_option
@dry_run_option
def promote(directory: str, out: str | None, yes: bool, dry_run: bool, form: str) -> int:
    """Make a data directory one that an unmodified Kafka 4.3.1 starts with, and print the configuration to start it.

    A directory that a store has closed is that already, and nothing is changed. One that was not closed in order is
    recovered: where a partition is damaged, all batches behind the damage are removed, those that can be read too,
    which needs --yes. Partitions that lie in a directory without meta.properties get a metadata log of their own.
    """
    from logstore.disk.atomic import write_output
    from logstore.disk.seam import SEAM
    from logstore.store.opening.adoption import adopt
    from logstore.store.opening.inspection import inspect

    require_accessible(directory, writes=not dry_run)
    found = inspect(directory)
    require_nameable(found.path)
    require_startable(found)
    if out is not None:
        require_new_file(out)
    with Progress("promote", lambda: log_size(directory)) as progress:
        lost = losses_of_directory(directory, progress.advance) if found.steps else {}
    done, config = None, None
    if not dry_run:
        require_consent({} if yes else lost)
        if found.properties is None:
            adopt(directory, seam=SEAM, now_ms=clock.now_ms)
        with Progress("promote"):
            done = _recover(directory, found) if found.steps else []
        found, lost = inspect(directory), {}
        config = server_properties(found)
        if out is not None:
            write_output(SEAM, out, config.encode())
    row = _directory(found, lost, done) | {"brokerConfig": None, "startCommand": None}
    row["warnings"] += warnings(found)
    start = start_command(out or "server.properties")
    if form != "table" and config is not None:  # for people they stand below, to be copied
        row |= {"brokerConfig": config, "startCommand": start}
    print_row(PROMOTED, row, form)
    if form == "table" and config is not None:
        where = "in server.properties" if out is None else f"which is in {out}"
        print_lines("", "A broker starts here with", "", *config.split("\n"), f"{where}, by", "", start)
    return FINDINGS if lost else 0


def _directory(found: Inspection, lost: dict[str, list[Piece]], done: list[str] | None) -> Row:
    """Return the members of _DIRECTORY.

    Args:
        done: what recovery did; None of a dry run.
    """
    nobody = dict.fromkeys(("clusterId", "nodeId", "directoryId"))
    row = members(found) | (nobody if found.properties is None else members(found.properties))
    return row | {
        "steps": [*found.steps, *(f"remove {loss_text(pieces)}, in {path}" for path, pieces in lost.items())],
        "strays": list(found.stray_directories),
        "done": done,
        "warnings": [*found.obstacles, *found.warnings],
    }


def _recover(directory: str, found: Inspection) -> list[str]:
    """Open and close the directory; return the steps that this took, and the bytes that it removed from each log."""
    from logstore import open as open_store

    before = log_sizes(directory)
    open_store(directory).close()
    after = log_sizes(directory)
    cut = {path: size - after[path] for path, size in before.items() if after.get(path, size) < size}
    return [*found.steps, *(f"remove {size:,} bytes from the first damage on, in {path}" for path, size in cut.items())]
