"""`logstore audit`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .audit_options import directory_argument, form_option, now_option, time_or_clock, told_errors

if TYPE_CHECKING:
    from logstore.audit.finding import Finding


@click.command("audit")
@directory_argument
@now_option
@form_option
@click.option("--spark", "master", metavar="MASTER", help="As a job of this Spark master, such as local[*].")
def command(directory: str, now: int | None, form: str, master: str | None) -> None:
    """Check a data DIRECTORY: its bytes, its side files, its transactions, its groups.

    Nothing is changed, and a broker may be running. The exit code is 1 if something is wrong.
    """
    from logstore.audit.finding import as_json

    from .findings_text import print_findings
    from .paths import data_directory

    with told_errors():
        summary, findings = _audited(data_directory(directory), time_or_clock(now), master)
    if form == "json":
        click.echo(json.dumps([as_json(finding) for finding in findings]))
    else:
        click.echo(summary)
        print_findings(findings)
    sys.exit(1 if findings else 0)


def _audited(directory: str, now_ms: int, master: str | None) -> tuple[str, Sequence[Finding]]:
    """Return what was looked at and what was not asked, a line each, and what was found."""
    if master is not None:
        from spark_dumps.audit import audit_with_spark

        return f"{directory}, with Spark at {master}", audit_with_spark(master, directory, now_ms)
    from logstore.audit.directory_audit import audit_directory

    audited = audit_directory(directory, now_ms)
    partitions = audited.verified.partitions
    batch_count = sum(one.size.batch_count for one in partitions)
    size = sum(one.size.size for one in partitions)
    histories = audited.transactions.histories.values()
    transaction_count = sum(len(history.transactions) for history in histories)
    summary = (
        f"{len(partitions)} partitions, {size} bytes, {batch_count} batches, {transaction_count} parts of "
        f"transactions, {len(audited.groups.log.commits)} group offsets"
    )
    unasked = [
        f"not asked: {rule} in {count} partitions: {reason}"
        for (rule, reason), count in sorted(audited.verified.unasked.items())
    ]
    return "\n".join([summary, *unasked]), audited.findings
