"""`logstore groups`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from .audit_options import directory_argument, exit_code_of, form_option, print_objects, told_errors

if TYPE_CHECKING:
    from logstore.audit.group_rules import GroupLag

_COLUMNS = ("group", "partition", "committed offset", "lag", "records to read", "producer id", "committed at")


@click.command("groups")
@directory_argument
@form_option
def command(directory: str, form: str) -> None:
    """List the committed offsets of all groups in a data DIRECTORY, and how far each is behind.

    Lag counts offsets, as other tools do: markers and aborted records let it stay above 0 for ever. Beside it stand the
    records that a read_committed consumer still gets; ≥ where the cleaner has thinned out the batch it stands in.
    """
    from logstore.audit.directory_audit import read_groups
    from logstore.audit.group_rules import group_lags

    from .paths import data_directory

    with told_errors():
        groups, findings = read_groups(data_directory(directory))
        code = exit_code_of(directory, findings)
    print_objects([_group_lag(lag) for lag in group_lags(groups.log, groups.views)], form, _COLUMNS, _cells)
    sys.exit(code)


def _group_lag(lag: GroupLag) -> dict[str, Any]:
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


def _cells(lag: dict[str, Any]) -> tuple[str, str, int, int | None, str | None, int | None, str]:
    from .timestamps import utc_text

    records = None if lag["recordLag"] is None else f"{'' if lag['recordLagIsExact'] else '≥ '}{lag['recordLag']}"
    partition = f"{lag['topic']}-{lag['partition']}"
    committed_at = utc_text(lag["commitTimestamp"])
    return lag["group"], partition, lag["offset"], lag["lag"], records, lag["producerId"], committed_at
