"""`logstore verify`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from .audit_options import form_option, tell, told_errors

if TYPE_CHECKING:
    from logstore.audit.finding import Finding
    from logstore.audit.verify import Verified

_SIZE_NAMES = ("segments", "batches", "bytes", "logEndOffset")


@click.command("verify")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@form_option
def command(paths: tuple[str, ...], form: str) -> None:
    """Prove that what lies in PATH is what a broker wrote: every batch, and every file beside the log.

    A PATH is a data directory, the directory of one partition, or a glob of such. Nothing is changed, and a broker may
    be running. The exit code is 1 if something is wrong.
    """
    from .paths import input_paths

    partitions: list[Verified] = []
    findings: list[Finding] = []
    with told_errors():
        for path, is_partition in input_paths(paths, tell):
            _verify(path, is_partition, partitions, findings)
    if form == "json":
        _print_json(partitions, findings)
    else:
        _print_text(partitions, findings)
    sys.exit(1 if findings else 0)


def _verify(path: str, is_partition: bool, partitions: list[Verified], findings: list[Finding]) -> None:
    from logstore.audit.verify import verify_directory, verify_partition_directory

    if is_partition:
        found = [verify_partition_directory(path)]
    else:
        directory = verify_directory(path)
        found = list(directory.partitions)
        findings.extend(directory.findings)
    partitions.extend(found)
    findings.extend(finding for one in found for finding in one.findings)


def _sizes(one: Verified) -> tuple[int, int, int, int]:
    return one.size.segment_count, one.size.batch_count, one.size.size, one.size.log_end_offset


def _print_json(partitions: list[Verified], findings: list[Finding]) -> None:
    from logstore.audit.finding import as_json

    verified: list[dict[str, Any]] = [
        {"path": one.partition.files.path, **dict(zip(_SIZE_NAMES, _sizes(one), strict=True))} for one in partitions
    ]
    click.echo(json.dumps({"partitions": verified, "findings": [as_json(finding) for finding in findings]}))


def _print_text(partitions: list[Verified], findings: list[Finding]) -> None:
    from .findings_text import print_findings
    from .tables import print_table

    rows = [(one.partition.files.path, *_sizes(one), len(one.findings)) for one in partitions]
    print_table(("partition", "segments", "batches", "bytes", "log end offset", "findings"), rows)
    print_findings(findings)
