"""`logstore segments`."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from .audit_options import exit_code_of, form_option, print_objects, tell, told_errors

_COLUMNS = (
    *("partition", "base offset", "end offset", "bytes", "batches", "records", "control", "transactional", "damaged"),
    *("first time", "largest time", ".index", ".timeindex", ".txnindex", "codecs"),
)


@click.command("segments")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@form_option
def command(paths: tuple[str, ...], form: str) -> None:
    """List the segments of each PATH, a data directory, a partition or a glob: offsets, sizes, times, index entries."""
    from logstore.audit.evidence import Evidence
    from logstore.audit.log_pass import run_checks
    from logstore.audit.partition import open_partition, open_partitions
    from logstore.audit.segment_table import SegmentTable

    from .paths import input_paths

    segments: list[dict[str, Any]] = []
    codes = []
    with told_errors():
        for path, is_partition in input_paths(paths, tell):
            for partition in [open_partition(path)] if is_partition else open_partitions(path):
                table = SegmentTable()
                run_checks(Evidence(partition), [table])
                for row in table.rows:
                    values = dataclasses.asdict(row) | {"codecs": sorted(row.codecs)}
                    segments.append({"partition": partition.files.path, **values})
            codes.append(0 if is_partition else exit_code_of(path))
    print_objects(segments, form, _COLUMNS, _cells)
    sys.exit(max(codes))


def _cells(segment: dict[str, Any]) -> tuple[Any, ...]:
    from .timestamps import utc_text

    times = {name: utc_text(segment[name]) for name in ("first_timestamp", "largest_timestamp")}
    return tuple((segment | times | {"codecs": " ".join(segment["codecs"])}).values())
