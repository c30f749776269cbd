"""`logstore segments`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from .audit_options import errors_as_usage, form_option

_COLUMNS = (
    *("partition", "base offset", "end offset", "bytes", "batches", "records", "control", "transactional", "damaged"),
    *("first time", "largest time", ".index", ".timeindex", ".txnindex", "codecs"),
)


@click.command("segments")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@form_option
def command(paths: tuple[str, ...], form: str) -> None:
    """List the segments of each PATH, a data directory, a partition or a glob: offsets, sizes, times, index entries."""
    from .tables import print_table
    from .timestamps import utc_text

    with errors_as_usage():
        rows = _rows(paths)
    if form == "json":
        click.echo(json.dumps(rows))
        return
    for row in rows:
        row["first_timestamp"] = utc_text(row["first_timestamp"])
        row["largest_timestamp"] = utc_text(row["largest_timestamp"])
        row["codecs"] = " ".join(row["codecs"])
    print_table(_COLUMNS, [tuple(row.values()) for row in rows])


def _rows(paths: tuple[str, ...]) -> list[dict[str, Any]]:
    from logstore.audit.log_pass import run_checks
    from logstore.audit.partition import open_partition, open_partitions
    from logstore.audit.segment_table import SegmentTable

    from .audit_paths import places

    found: list[dict[str, Any]] = []
    for place in places(paths):
        for partition in [open_partition(place.path)] if place.is_partition else open_partitions(place.path):
            table = SegmentTable()
            run_checks(partition, [table])
            for row in table.rows:
                values = dataclasses.asdict(row)
                values["codecs"] = sorted(row.codecs)
                found.append({"partition": partition.files.path, **values})
    return found
