"""Findings for people: a table of what is wrong and where, then the advice, once for each rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .tables import print_table

if TYPE_CHECKING:
    from logstore.audit.finding import Finding


def print_findings(findings: Sequence[Finding]) -> None:
    """On standard output, errors first; one line if there are none."""
    if not findings:
        click.echo("\nno findings")
        return
    ordered = sorted(findings, key=lambda finding: finding.severity.value)
    click.echo()
    print_table(
        ("severity", "rule", "where", "byte", "offset", "expected", "found"), [_row(finding) for finding in ordered]
    )
    click.echo()
    advice = {finding.rule: finding.advice for finding in ordered}
    print_table(("rule", "what to do"), sorted(advice.items()))


def _row(finding: Finding) -> tuple[str, str, str, int | None, int | None, str, str]:
    where = finding.where
    place = where.path or f"{where.topic}-{where.partition}"
    return (
        finding.severity.value,
        finding.rule,
        place,
        where.position,
        where.offset,
        finding.expected,
        finding.found,
    )
