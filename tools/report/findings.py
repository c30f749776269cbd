"""Findings on the page: a block for each broken rule, with advice and places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from logstore.audit.checks import BY_NAME
from logstore.audit.directory_audit import AuditedDirectory
from logstore.audit.finding import Finding

from ..tables import count_of
from .commands import command_line, next_command, partition_directory_name, path_within
from .markup import first_and_more, folded, name_text, prose, section, stack, text

PLACE_COUNT_MAX = 8  # places of one rule, before the rest is folded
COMMAND_COUNT_MAX = 3  # commands of one rule, before the rest is folded
FOLDED_COUNT_MAX = 500  # places of one rule on the page at all


def findings_section(findings: Sequence[Finding], root: str) -> str:
    """Return a block for each broken rule, errors first, then the most frequent; paths are relative to `root`."""
    if not findings:
        return ""
    return section("findings", "Findings", "".join(_block(found, root) for found in _by_rule(findings)))


def rule_links(findings: Sequence[Finding]) -> str:
    """Return a line of the broken rules, with links to their blocks."""
    links = (
        f'<a class="badge {found[0].severity.value}" href="#{text(found[0].rule)}">{text(found[0].rule)} '
        f"×{len(found):,}</a>"
        for found in _by_rule(findings)
    )
    return f'<p class="legend">{"".join(links)}</p>' if findings else ""


def severity_counts(findings: Sequence[Finding]) -> str:
    """Return the numbers of errors and warnings.

    >>> severity_counts([])
    'nothing'
    """
    errors = sum(finding.severity.value == "error" for finding in findings)
    warnings = len(findings) - errors
    parts = [count_of(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return " and ".join(parts) or "nothing"


def unasked_lines(audited: AuditedDirectory) -> list[str]:
    """Return which rules were not asked, a line for each reason and number of partitions."""
    rules: dict[tuple[str, int], list[str]] = defaultdict(list)
    for (rule, reason), count in sorted(audited.unasked.items()):
        rules[reason, count].append(rule)
    return [
        f"{', '.join(names)} in {count_of(count, 'partition')}: {reason}" for (reason, count), names in rules.items()
    ]


def _by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    return sorted(by_rule.values(), key=lambda found: (found[0].severity.value, -len(found), found[0].rule))


def _block(found: Sequence[Finding], root: str) -> str:
    first = found[0]
    severity = first.severity.value
    about = prose(BY_NAME[first.rule].about)
    heads, rows = _places(found[:FOLDED_COUNT_MAX], root)
    summary = f"{len(found) - PLACE_COUNT_MAX:,} more places"
    places = first_and_more(rows, PLACE_COUNT_MAX, partial(stack, heads), summary)
    if len(found) > FOLDED_COUNT_MAX:
        left_out = len(found) - FOLDED_COUNT_MAX
        places += f'<p class="note">{left_out:,} more are left out here; `logstore audit` tells them all.</p>'
    rule_name, severity_badge = text(first.rule), f'<span class="badge {severity}">{severity}</span>'
    return (
        f'<div class="finding {severity}" id="{rule_name}"><h3>{severity_badge} {rule_name} '
        f'<span class="note">{count_of(len(found), "place")}</span></h3><p>{about}</p>'
        f"<p><b>What to do:</b> {prose(first.advice)}</p>"
        f"{_commands(found[:FOLDED_COUNT_MAX], root)}{places}</div>"
    )


def _commands(found: Sequence[Finding], root: str) -> str:
    """Return the commands to go on with, each once."""
    lines = [command_line(command) for command in dict.fromkeys(next_command(one, root) for one in found)]
    shown, rest = lines[:COMMAND_COUNT_MAX], lines[COMMAND_COUNT_MAX:]
    return "".join(shown) + (folded(count_of(len(rest), "more command"), "".join(rest)) if rest else "")


def _places(found: Sequence[Finding], root: str) -> tuple[list[str], list[list[object]]]:
    """Return heads and rows of the places of one rule, without empty columns."""
    heads = ["partition", "file", "byte", "offset", "expected", "found"]
    rows = [_place(one, root) for one in found]
    filled = [index for index in range(len(heads)) if any(row[index] is not None for row in rows)]
    return [heads[index] for index in filled], [[row[index] for index in filled] for row in rows]


def _place(finding: Finding, root: str) -> tuple[object, ...]:
    """Return the row of a place; what stands in the columns of partition and file is cut out of the sentences."""
    where = finding.where
    directory, path = partition_directory_name(where, root), path_within(where.path or "", root)
    file = path.removeprefix(f"{directory}/") if path != directory else ""
    words = [
        told.replace(f" [{where.path}]", "").replace(f"{where.path}: ", "").replace(f"{root}/", "")
        if where.path
        else told
        for told in (finding.expected, finding.found)
    ]
    names = [name_text(name) if name else None for name in (directory, file)]
    return *names, where.position, where.offset, *words
