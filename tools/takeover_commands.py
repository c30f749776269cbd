"""`logstore import` and `logstore promote`: from a broker's hands into a store's, and back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from logstore import clock
from logstore.disk.directory import list_data_directory
from logstore.errors import UsageError

from .audit_options import FINDINGS, dry_run_option, form_option, print_object, told_errors, yes_option
from .losses import loss_text, losses_of_directory, require_consent
from .paths import data_directory, require_accessible
from .server_properties import require_nameable, require_new_file, server_properties, start_command, warnings

if TYPE_CHECKING:
    from logstore.log.salvage.salvage import Piece
    from logstore.store.opening.inspection import Inspection


@click.command("import")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@yes_option
@dry_run_option
@form_option
def import_(directory: str, yes: bool, dry_run: bool, form: str) -> None:
    """Take over the data DIRECTORY of a single-node broker that is stopped: see whether that can be, and recover it.

    Nothing is converted: the directory stays one that the broker can have again. `logstore.open` does the same by
    itself; this tells before what there is, and whether it can. Where a partition is damaged, recovery removes all
    batches behind the damage, those that can be read too: that needs --yes, and `logstore salvage` keeps them.
    """
    from logstore.store.opening.inspection import inspect

    with told_errors(FINDINGS):
        require_accessible(data_directory(directory), writes=not dry_run)
        found = inspect(directory)
        if found.properties is None:
            raise UsageError(
                "There is no meta.properties, so this is no broker's directory",
                path=directory,
                advice="`logstore promote` makes one of partitions that lie in a directory",
            )
        lost, done = losses_of_directory(directory), None
        if not dry_run:
            require_consent({} if yes else lost)
            done = _recover(directory, found)
            found, lost = inspect(directory), {}
    _print_directory(found, lost, done, form)


@click.command("promote")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--out", metavar="FILE", help="Write the configuration to a new file.")
@yes_option
@dry_run_option
@form_option
def promote(directory: str, out: str | None, yes: bool, dry_run: bool, form: str) -> None:
    """Make the data DIRECTORY one that an unmodified Kafka 4.3.1 starts with, and print the configuration to start it.

    A directory that a store has closed is that already, and nothing is changed. One that was not closed in order is
    recovered: where a partition is damaged, all batches behind the damage are removed, those that can be read too,
    which needs --yes. Partitions that lie in a directory without meta.properties get a metadata log of their own.
    """
    from logstore.disk.atomic import replace_file
    from logstore.disk.seam import SEAM
    from logstore.store.opening.adoption import adopt
    from logstore.store.opening.inspection import inspect

    with told_errors(FINDINGS):
        require_accessible(data_directory(directory), writes=not dry_run)
        found = inspect(directory)
        require_nameable(found.path)
        if out is not None:
            require_new_file(out)
        lost, done, config = losses_of_directory(directory) if found.steps else {}, None, None
        if not dry_run:
            require_consent({} if yes else lost)
            if found.properties is None:
                adopt(directory, seam=SEAM, now_ms=clock.now_ms)
            done = _recover(directory, found) if found.steps else []
            found, lost = inspect(directory), {}
            config = server_properties(found)
            if out is not None:
                replace_file(SEAM, os.path.abspath(out), config.encode())
    _print_directory(found, lost, done, form, warnings=warnings(found), config=config, out=out)


def _as_json(found: Inspection, lost: dict[str, list[Piece]]) -> dict[str, Any]:
    """The directory as JSON's objects; of a dry run, what would be removed is one of the steps."""
    properties = found.properties
    return {
        "path": found.path,
        "clusterId": None if properties is None else properties.cluster_id,
        "nodeId": None if properties is None else properties.node_id,
        "directoryId": None if properties is None else properties.directory_id,
        "features": found.features,
        "topics": found.topics,
        "nextProducerId": found.next_producer_id,
        "wasClean": found.was_clean,
        "steps": [*found.steps, *(f"remove {loss_text(pieces)}, in {path}" for path, pieces in lost.items())],
        "strays": list(found.stray_directories),
    }


def _recover(directory: str, found: Inspection) -> list[str]:
    """Open the directory and close it; return what that did, with the bytes that every log has lost."""
    from logstore import open as open_store

    before = _log_sizes(directory)
    open_store(directory).close()
    after = _log_sizes(directory)
    cut = {path: size - after[path] for path, size in before.items() if after.get(path, size) < size}
    return [*found.steps, *(f"remove {size:,} bytes from the first damage on, in {path}" for path, size in cut.items())]


def _log_sizes(directory: str) -> dict[str, int]:
    """Return the bytes of all segments by the path of the partition."""
    partitions = list_data_directory(directory).partitions
    return {one.path: sum(os.path.getsize(segment.log) for segment in one.segments) for one in partitions}


def _print_directory(
    found: Inspection,
    lost: dict[str, list[Piece]],
    done: list[str] | None,
    form: str,
    *,
    warnings: list[str] | None = None,
    config: str | None = None,
    out: str | None = None,
) -> NoReturn:
    """Print what it is and what has to be done, and exit: with FINDINGS if recovery would remove what can be read.

    Args:
        done: what recovery did; None of a dry run.
        config: for a broker, in the file `out` if there is one.
    """
    start = start_command(out or "server.properties")
    values = _as_json(found, lost) | ({} if done is None else {"done": done})
    values |= {} if warnings is None else {"warnings": warnings}
    if form != "table":
        print_object(values | ({} if config is None else {"brokerConfig": config, "startCommand": start}), form)
    else:
        print_object(values, form)
        if config is not None:
            where = "in server.properties" if out is None else f"which is in {out}"
            click.echo(f"\nA broker starts here with\n\n{config}\n{where}, by\n\n{start}")
    sys.exit(FINDINGS if lost else 0)
