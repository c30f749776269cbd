"""`logstore verify`, `audit` and `report`: what is wrong in a data directory. Exit code 1: something is."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import click

from .audit_options import (
    code_of,
    directory_argument,
    form_option,
    now_option,
    print_rows,
    tell,
    time_or_clock,
    told_errors,
)
from .paths import data_directory, input_paths
from .tables import print_table

if TYPE_CHECKING:
    from logstore.audit.finding import Finding
    from logstore.audit.verify import PartitionFacts

_SIZE_NAMES = ("segments", "batches", "bytes", "logEndOffset")


_checksums_option = click.option(
    "--checksums-only", is_flag=True, help="Trust records whose batch has the right checksum: do not decode them."
)


@click.command("verify")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@_checksums_option
@form_option
def verify(paths: tuple[str, ...], checksums_only: bool, form: str) -> None:
    """Prove that what lies in PATH is what a broker wrote: every batch, and every file beside the log.

    A PATH is a data directory, the directory of one partition, or a glob of such. Nothing is changed, and a broker may
    be running. The exit code is 1 if something is wrong.
    """
    from logstore.audit.finding import as_json
    from logstore.audit.verify import PartitionFacts, verify_directory, verify_partition_directory

    partitions: list[PartitionFacts] = []
    findings: list[Finding] = []
    with told_errors():
        for path, is_partition in input_paths(paths, tell):
            check = verify_partition_directory if is_partition else verify_directory
            found = check(path, decodes=not checksums_only)
            partitions.extend([found] if isinstance(found, PartitionFacts) else found.partitions)
            findings.extend(found.findings)
    if form == "json":
        verified = [
            {"path": one.partition.files.path} | dict(zip(_SIZE_NAMES, _sizes(one), strict=True)) for one in partitions
        ]
        click.echo(json.dumps({"partitions": verified, "findings": [as_json(finding) for finding in findings]}))
        sys.exit(code_of(findings))
    if form == "table":
        told = set(findings)
        rows = [
            (one.partition.files.path, *_sizes(one), sum(finding in told for finding in one.findings))
            for one in partitions
        ]
        print_table(("partition", "segments", "batches", "bytes", "log end offset", "findings"), rows)
    _end(findings, form)


def _sizes(one: PartitionFacts) -> tuple[int, int, int, int]:
    return one.size.segment_count, one.size.batch_count, one.size.size, one.size.log_end_offset


def _explain(context: click.Context, _: click.Parameter, name: str | None) -> None:
    """Print a rule in words, and exit."""
    if name is None:
        return
    from logstore.audit.rules import BY_NAME, examples

    found = BY_NAME.get(name)
    if found is None:
        close = get_close_matches(name, BY_NAME, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(sorted(BY_NAME))}."
        raise click.BadParameter(f"No finding is called {name!r}. {hint}")
    click.echo(f"{found.name} ({found.severity.value})\n\n{found.about}")
    click.echo("".join(f"\n{paragraph}\n" for paragraph in found.more) + f"\nWhat to do: {found.advice}")
    if name in examples():
        click.echo(f"\nFor example: {examples()[name]}")
    context.exit()


@click.command("audit")
@directory_argument
@now_option
@form_option
@_checksums_option
@click.option("--spark", "master", metavar="MASTER", help="As a job of this Spark master, such as local[*].")
@click.option(
    "--explain",
    metavar="RULE",
    is_eager=True,
    expose_value=False,
    callback=_explain,
    help="Say what a finding of this name means, and what to do; look at nothing.",
)
def audit(directory: str, now: int | None, form: str, checksums_only: bool, master: str | None) -> None:
    """Check a data DIRECTORY: its bytes, its side files, its transactions, its groups.

    Nothing is changed, and a broker may be running. The exit code is 1 if something is wrong.
    """
    with told_errors():
        summary, findings = _audited(data_directory(directory), time_or_clock(now), master, not checksums_only)
    if form == "table":
        click.echo(summary)
    _end(findings, form)


def _audited(directory: str, now_ms: int, master: str | None, decodes: bool) -> tuple[str, Sequence[Finding]]:
    """Return what was looked at and what was not asked, a line each, and what was found."""
    if master is None:
        from logstore.audit.directory_audit import audit_directory, follow_all

        audited = audit_directory(directory, now_ms, partial(follow_all, decodes=decodes))
    else:
        from spark_dumps.session import audit_with_spark

        audited = audit_with_spark(master, directory, now_ms, decodes=decodes)
    partitions = audited.partitions
    batch_count = sum(one.size.batch_count for one in partitions)
    size = sum(one.size.size for one in partitions)
    transaction_count = sum(len(history.table) for history in audited.transactions.histories.values())
    summary = (
        f"{len(partitions)} partitions, {size} bytes, {batch_count} batches, {transaction_count} parts of "
        f"transactions, {len(audited.groups.commits)} group offsets"
    )
    unasked = [
        f"not asked: {rule} in {count} partitions: {reason}"
        for (rule, reason), count in sorted(audited.unasked.items())
    ]
    return "\n".join([summary, *unasked]), audited.findings


@click.command("report")
@directory_argument
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The HTML file to write.")
@now_option
def report(directory: str, output: str, now: int | None) -> None:
    """Write one HTML page about a data DIRECTORY: findings with advice, offsets, transactions, segments, in pictures.

    It asks what `logstore audit` asks, and exits as that does. The page needs no network and holds no record.
    """
    from logstore.audit.directory_audit import audit_directory
    from logstore.disk.names import absolute_path
    from logstore.disk.seam import SEAM

    from .report import page

    now_ms = time_or_clock(now)
    with told_errors():
        path = absolute_path(data_directory(directory))
        audited = audit_directory(path, now_ms)
        content = page(path, audited, now_ms).encode()
        descriptor = SEAM.create(output)
        try:
            SEAM.write(descriptor, content)
        finally:
            SEAM.close(descriptor)
    click.echo(f"{output}: {len(audited.findings)} findings")
    sys.exit(code_of(audited.findings))


def _end(findings: Sequence[Finding], form: str) -> NoReturn:
    """Print the findings, in a table errors first or a line if there are none, and exit."""
    from logstore.audit.finding import as_json

    if form != "table":
        print_rows([as_json(finding) for finding in findings], form)
    elif not findings:
        click.echo("\nno findings")
    else:
        ordered = sorted(findings, key=lambda finding: finding.severity.value)
        click.echo()
        print_table(("severity", "rule", "where", "byte", "offset", "expected", "found"), map(_row, ordered))
        click.echo()
        print_table(("rule", "what to do"), sorted({finding.rule: finding.advice for finding in ordered}.items()))
    sys.exit(code_of(findings))


def _row(finding: Finding) -> tuple[str, str, str, int | None, int | None, str, str]:
    where = finding.where
    name = where.path or f"{where.topic}-{where.partition}"
    place = (name, where.position, where.offset)
    return finding.severity.value, finding.rule, *place, finding.expected, finding.found
