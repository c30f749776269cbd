"""`logstore verify`, `audit` and `report`: findings in a data directory. Exit code 1: there are some."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from logstore.disk.names import absolute_path
from logstore.errors import UsageError
from logstore.rows.findings import AuditedRow, FindingRow, VerifiedRow

from .paths import data_directory, is_in_directory
from .progress import Progress, log_size
from .rows import PATH, Cells, Column, JsonField, Row, RowType, TypedRows, VerbAnswer
from .tables import count_of, print_lines
from .verbs import Verb, code_of, hint, now_option, path_argument, paths_argument

if TYPE_CHECKING:
    from logstore.audit.directory_audit import AuditedDirectory
    from logstore.audit.finding import Finding
    from logstore.audit.verify import PartitionFacts


def _where(row: Row) -> str:
    from logstore.audit.finding import Where

    return Where(row["path"], row["topic"], row["partition"]).name


FINDING = RowType.of(
    FindingRow,
    "finding",
    {
        "severity": "severity",
        "rule": "rule",
        "path": Column("where", _where),
        "position": "byte",
        "offset": "offset",
        "expected": "expected",
        "found": "found",
    },
)
VERIFIED = RowType.of(
    VerifiedRow,
    "verified",
    {
        "path": "partition",
        "segment_count": Column("segments", is_minor=True),
        "batch_count": Column("batches", is_minor=True),
        "size": "bytes",
        "log_end_offset": "log end offset",
        "finding_count": "findings",
    },
)
AUDITED = RowType.of(AuditedRow, "audited", {})
REPORTED = RowType(
    "reported",
    "A page that was written.",
    (PATH, JsonField("file", "string", "the page"), JsonField("findingCount", "integer", "how many findings")),
)

_checksums_option = click.option(
    "--checksums-only", is_flag=True, help="Trust records whose batch has the right checksum: do not decode them."
)


@click.command("verify", cls=Verb, prints=[VERIFIED, FINDING], example="logstore verify '/var/lib/kafka/data/orders-*'")
@paths_argument()
@_checksums_option
def verify(paths: list[tuple[str, bool]], checksums_only: bool) -> VerbAnswer:
    """Prove that partitions are what a broker wrote: every batch, and every file beside the log.

    Nothing is changed, and a broker may be running. The exit code is 1 if something is wrong.
    """
    from logstore.audit.answers import verified_rows
    from logstore.audit.cluster import Cluster
    from logstore.audit.directory_verify import verify_directory
    from logstore.audit.partition import directory_around
    from logstore.audit.verify import verify_partition_directory

    clusters = {
        root: Cluster(root) for root in {directory_around(path) for path, is_partition in paths if is_partition}
    }
    partitions: list[PartitionFacts] = []
    findings: list[Finding] = []
    sizes = (log_size(path, is_partition=is_partition) for path, is_partition in paths)
    with Progress("verify", lambda: sum(sizes)) as progress:
        for path, is_partition in paths:
            if is_partition:
                cluster = clusters[directory_around(path)]
                facts = verify_partition_directory(
                    path, cluster=cluster, decodes=not checksums_only, advance=progress.advance
                )
                partitions.append(facts)
                findings += facts.findings
            else:
                verified = verify_directory(path, decodes=not checksums_only, advance=progress.advance)
                partitions += verified.partitions
                findings += verified.findings
    verified_partitions = TypedRows(VERIFIED, list(verified_rows(partitions, findings)))
    return _answer(findings, verified_partitions, [verified_partitions], [count_of(len(partitions), "partition")])


def _explain(context: click.Context, _: click.Parameter, name: str | None) -> None:
    """Explain a rule, and exit."""
    if name is None:
        return
    from logstore.audit.checks import BY_NAME, examples

    found = BY_NAME.get(name)
    if found is None:
        raise click.BadParameter(f"No finding is called {name!r}. {hint(name, sorted(BY_NAME))}")
    paragraphs = [found.about, *filter(None, [found.more]), f"What to do: {found.advice}"]
    paragraphs += [f"Not asked where: {found.unless_text}."] if found.unless else []
    if name in examples():
        paragraphs.append(f"For example: {examples()[name]}")
    print_lines(f"{found.name} ({found.severity.value})")
    for paragraph in paragraphs:
        print_lines("", paragraph)
    context.exit()


@click.command("audit", cls=Verb, prints=[AUDITED, FINDING], example="logstore audit /var/lib/kafka/data")
@path_argument("directory", data_directory)
@now_option
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
def audit(directory: str, now: int, checksums_only: bool, master: str | None) -> VerbAnswer:
    """Check a data directory: its bytes, its side files, its transactions, its groups.

    Nothing is changed, and a broker may be running. The exit code is 1 if something is wrong.
    """
    from logstore.audit.answers import audited_row

    if master is None:
        from logstore.audit.directory_audit import audit_directory, follow_all

        with Progress("audit", lambda: log_size(directory)) as progress:
            follow = partial(follow_all, decodes=not checksums_only, advance=progress.advance)
            audited = audit_directory(directory, now, follow)
    else:
        from spark_dumps.session import audit_with_spark

        audited = audit_with_spark(master, directory, now, decodes=not checksums_only)
    row = audited_row(directory, audited)
    summary = _summary(directory, audited, row)
    return _answer(audited.findings, TypedRows(AUDITED, [row]), summary, summary)


def _summary(directory: str, audited: AuditedDirectory, row: AuditedRow) -> list[str]:
    """Return the lines that say what was audited, which transactions are open, and what could not be asked."""
    from logstore.audit.open_transactions import held_back

    from .report.findings import unasked_lines

    lines = [
        f"{count_of(row.partition_count, 'partition')}, {count_of(row.size, 'byte')}, "
        f"{count_of(row.batch_count, 'batch')}, {count_of(row.transaction_count, 'part')} of transactions, "
        f"{count_of(row.group_offset_count, 'group offset')}"
    ]
    if row.open_count:
        held, overdue = held_back(audited.transactions.open), row.overdue_count or "none"
        lines.append(f"{held}: `logstore txns list {quote(directory)}`; {overdue} of them overdue")
    return lines + [f"not asked: {line}" for line in unasked_lines(audited)]


@click.command(
    "report", cls=Verb, prints=[REPORTED], example="logstore report /var/lib/kafka/data --output report.html"
)
@path_argument("directory", data_directory)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The HTML file, outside PATH.")
@now_option
def report(directory: str, output: str, now: int) -> VerbAnswer:
    """Write one HTML page about a data directory: findings with advice, offsets, transactions, segments, in pictures.

    It asks what `logstore audit` asks, and exits as that does. The page needs no network and holds no record.
    """
    from logstore.audit.directory_audit import audit_directory, follow_all
    from logstore.disk.atomic import write_output
    from logstore.disk.seam import SEAM

    from .report import page

    path = absolute_path(directory)
    _require_page(output, path)
    with Progress("report", lambda: log_size(path)) as progress:
        audited = audit_directory(path, now, partial(follow_all, advance=progress.advance))
        write_output(SEAM, output, page(path, audited, now).encode())
    count = len(audited.findings)
    row = {"path": directory, "file": output, "findingCount": count}
    return VerbAnswer(
        [TypedRows(REPORTED, [row])], code_of(audited.findings), [f"{output}: {count_of(count, 'finding')}"]
    )


def _require_page(output: str, directory: str) -> None:
    """Raise UsageError if the page cannot be written, would lie in the data directory, or replace what is no page."""
    from logstore.disk.file_range import FileRange
    from logstore.disk.paths import real_path

    from .report.page import PAGE_START

    advice = "name another file with --output"
    if Path(real_path(directory)) in Path(output).resolve().parents:
        raise UsageError(
            "The page would lie among the files that it is about",
            path=output,
            expected="a file outside the data directory",
            found=f"one in {directory}",
            advice=advice,
        )
    is_link = os.path.islink(output)
    if is_link or not is_in_directory(output):
        raise UsageError(
            "No page can be written here",
            path=output,
            expected="a file in a directory that exists",
            found="a symbolic link" if is_link else "no directory for it",
            advice=advice,
        )
    start = b""
    if os.path.isfile(output):  # a device is only written to
        start = FileRange(output).read(0, len(PAGE_START)).tobytes()
    if start not in (b"", PAGE_START):
        raise UsageError(
            "There is another file, which stays as it is",
            path=output,
            expected=f"no file, an empty one, or a page, which begins with {PAGE_START.decode()}",
            found=repr(start),
            advice=advice,
        )


def _answer(
    findings: Sequence[Finding], head: TypedRows, lines: Sequence[str | TypedRows], verdict: Sequence[str]
) -> VerbAnswer:
    """Return findings, of which a table has errors first and what to do, behind what was looked at.

    Args:
        head: what was looked at, for programs.
        lines: the same for people.
        verdict: the same beside CSV, which has the findings alone.
    """
    from logstore.audit.answers import finding_row

    shown: list[str | Cells | TypedRows] = ["", "no findings"]
    if findings:
        ordered = sorted(findings, key=lambda finding: finding.severity.value)
        advice = sorted({finding.rule: finding.advice for finding in ordered}.items())
        shown = ["", TypedRows(FINDING, list(map(finding_row, ordered))), "", Cells(("rule", "what to do"), advice)]
    count = count_of(len(findings), "finding") if findings else "no findings"
    rows = [head, TypedRows(FINDING, list(map(finding_row, findings)))]
    return VerbAnswer(rows, code_of(findings), [*lines, *shown], verdict=[*verdict, count])
