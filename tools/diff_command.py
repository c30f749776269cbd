"""`logstore diff`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from logstore.errors import UsageError
from logstore.layout.file_names import parse_partition_directory

from .audit_options import form_option, print_object, told_errors
from .paths import partition_directory
from .tables import print_table

if TYPE_CHECKING:
    from logstore.audit.replica_diff import Difference, DifferencePlace


@click.command("diff")
@click.argument("replica", type=click.Path(exists=True, file_okay=False))
@click.argument("other", type=click.Path(exists=True, file_okay=False))
@click.option("--force", is_flag=True, help="Compare what two partitions have by their names, too.")
@form_option
def command(replica: str, other: str, force: bool, form: str) -> None:
    """Compare two replicas of a partition, REPLICA and OTHER, up to the first batch that is not the same.

    What is missing in one of them below its log start, or compacted, is not compared. The exit code is 1 if they
    differ; one that is only shorter, as a follower's that has not caught up, does not differ.
    """
    from logstore.audit.replica_diff import as_json, compare

    with told_errors():
        for path in (replica, other):
            partition_directory(path)
        if not force:
            _require_same_partition(replica, other)
        difference = compare(replica, other)
    if form != "table":
        print_object(as_json(difference), form)
    else:
        _print(replica, other, difference)
    sys.exit(0 if difference.is_same or difference.is_shorter else 1)


def _require_same_partition(replica: str, other: str) -> None:
    names = [os.path.basename(os.path.abspath(path)) for path in (replica, other)]
    first, second = [parsed and parsed[:2] for parsed in map(parse_partition_directory, names)]
    if first and second and first != second:
        raise UsageError(
            "These are two partitions, not two replicas of one",
            path=other,
            expected=names[0],
            found=names[1],
            advice="--force compares them",
        )


def _print(replica: str, other: str, difference: Difference) -> None:
    click.echo(
        f"{difference.batch_count} batches are the same, from offset {difference.start_offset} up to "
        f"{difference.end_offset}."
    )
    first, second = difference.first
    if difference.is_same:
        click.echo("Both end there.")
    elif first is None or second is None:
        ended, longer = (replica, second) if first is None else (other, first)
        click.echo(f"{ended} ends there; the other goes on in {_place(longer)}.")
    else:
        click.echo(f"They differ in {', '.join(difference.fields)}:\n")
        names = [name for name in first.header if name in difference.fields or name == "base_offset"]
        rows = [(name, first.header[name], second.header[name]) for name in names]
        print_table(("field", _place(first), _place(second)), rows)


def _place(place: DifferencePlace | None) -> str:
    return "" if place is None else f"{place.path} byte {place.position}"
