"""Findings on the page: what is broken, what to do about it, and where, one block a rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .markup import Markup, count_of, folded, name_text, prose, section, stack, text

if TYPE_CHECKING:
    from logstore.audit.finding import Finding, Where

PLACE_COUNT_MAX = 8  # of one rule, before the rest is folded
FOLDED_COUNT_MAX = 500  # of one rule, on the page at all


def findings_section(findings: Sequence[Finding], root: str) -> str:
    """Rules that are broken, errors first, then by how often; places are told within `root`."""
    if not findings:
        return ""
    return section("findings", "Findings", "".join(_block(found, root) for found in _by_rule(findings)))


def rule_links(findings: Sequence[Finding]) -> str:
    """The rules that are broken, in a line, each with a link to its block."""
    links = (
        f'<a class="badge {found[0].severity.value}" href="#{text(found[0].rule)}">{text(found[0].rule)} '
        f"×{len(found):,}</a>"
        for found in _by_rule(findings)
    )
    return f'<p class="legend">{"".join(links)}</p>' if findings else ""


def severity_counts(findings: Sequence[Finding]) -> str:
    """In words, errors first.

    >>> severity_counts([])
    'nothing'
    """
    errors = sum(finding.severity.value == "error" for finding in findings)
    warnings = len(findings) - errors
    parts = [count_of(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
    return " and ".join(parts) or "nothing"


def _by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    return sorted(by_rule.values(), key=lambda found: (found[0].severity.value, -len(found), found[0].rule))


def _block(found: Sequence[Finding], root: str) -> str:
    from logstore.audit.rules import BY_NAME

    first = found[0]
    severity = first.severity.value
    about = prose(BY_NAME[first.rule].about)
    shown, rest = found[:PLACE_COUNT_MAX], found[PLACE_COUNT_MAX:FOLDED_COUNT_MAX]
    more = folded(f"{len(found) - len(shown):,} more places", _places(rest, root)) if rest else ""
    if len(found) > FOLDED_COUNT_MAX:
        left_out = len(found) - FOLDED_COUNT_MAX
        more += f'<p class="note">{left_out:,} more are left out here; `logstore audit` tells them all.</p>'
    rule_name, severity_badge = text(first.rule), f'<span class="badge {severity}">{severity}</span>'
    return (
        f'<div class="finding {severity}" id="{rule_name}"><h3>{severity_badge} {rule_name} '
        f'<span class="note">{count_of(len(found), "place")}</span></h3><p>{about}</p>'
        f"<p><b>What to do:</b> {prose(first.advice)}</p>{_places(shown, root)}{more}</div>"
    )


def _places(found: Sequence[Finding], root: str) -> str:
    return stack(("where", "expected", "found"), [(_where(one.where, root), one.expected, one.found) for one in found])


def _where(where: Where, root: str) -> Markup:
    """File or directory, then byte and offset where they apply."""
    path = where.path or f"{where.topic}-{where.partition}"
    parts = ["/".join(name_text(part) for part in path.removeprefix(root).lstrip("/").split("/")) or name_text(path)]
    parts += [] if where.position is None else [f"byte {where.position:,}"]
    parts += [] if where.offset is None else [f"offset {where.offset:,}"]
    return Markup(", ".join(parts))
