"""`logstore groups`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from .audit_options import errors_as_usage, form_option

if TYPE_CHECKING:
    from logstore.audit.group_rules import GroupLag

_COLUMNS = ("group", "partition", "committed offset", "lag", "records to read", "producer id", "committed at")


@click.command("groups")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@form_option
def command(directory: str, form: str) -> None:
    """List the committed offsets of all groups in a data DIRECTORY, and how far each is behind.

    Lag counts offsets, as other tools do: markers and aborted records let it stay above 0 for ever. Beside it stand the
    records that a read_committed consumer still gets; ≥ where the cleaner has thinned out the batch it stands in.
    """
    from logstore.audit.directory_audit import read_groups
    from logstore.audit.group_rules import group_lags

    from .tables import print_table

    with errors_as_usage():
        groups, findings = read_groups(directory)
    for finding in findings:
        sys.stderr.write(f"logstore: {finding}\n")
    lags = group_lags(groups.log, groups.views)
    if form == "json":
        click.echo(json.dumps([_json(lag) for lag in lags]))
    else:
        print_table(_COLUMNS, [_row(lag) for lag in lags])


def _json(lag: GroupLag) -> dict[str, Any]:
    return {
        "group": lag.group_id,
        "topic": lag.topic,
        "partition": lag.partition,
        "offset": lag.commit.offset,
        "lag": lag.lag,
        "recordLag": lag.record_lag,
        "recordLagIsExact": lag.is_exact,
        "producerId": lag.commit.producer_id,
        "commitTimestamp": lag.commit.commit_timestamp,
    }


def _row(lag: GroupLag) -> tuple[str, str, int, int | None, str | None, int | None, str]:
    from .timestamps import utc_text

    records = None if lag.record_lag is None else f"{'' if lag.is_exact else '≥ '}{lag.record_lag}"
    place = f"{lag.topic}-{lag.partition}"
    committed_at = utc_text(lag.commit.commit_timestamp)
    return lag.group_id, place, lag.commit.offset, lag.lag, records, lag.commit.producer_id, committed_at
