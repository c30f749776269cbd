"""The page of the findings: the closed list of rules, with cause and advice."""

from __future__ import annotations

from itertools import groupby

from logstore.audit.finding import Rule
from logstore.audit.rules import RULES, examples

from .markdown import table

_HEAD = """\
# Findings of an audit

Written by `python -m docs.generators` from the rules in `logstore/audit/`; do not edit.

`logstore verify` asks the rules about bytes and about the files beside a log, `logstore audit` and `logstore report`
ask all of them, and the Spark table `findings` has a row for each finding. A finding names its rule, where it is, what
was expected and what was found. Only what is wrong is a finding: an open transaction, an aborted offset or a group that
is behind is not. A rule that cannot be answered for a partition is not asked there, and the summary of an audit names
it with the reason. A name, once published, stays. In
italics: what a planted fault was told as; `logstore audit --explain RULE` prints the same.

An *error*: records are lost, unreadable, or given out wrongly. A *warning*: a broker repairs it by itself, or is slowed
down by it.
"""

_TITLES = {
    "log": "Batches and segments",
    "directory": "Directories and files",
    "index": "Files beside a log",
    "sequence": "Producers",
    "transaction": "Transactions",
    "group": "Groups, and chains of read-process-write",
}
_TITLE_OF = {
    **dict.fromkeys(("log", "offsets", "timestamp"), "log"),
    **dict.fromkeys(
        ("directory", "orphan", "swap", "partition", "internal", "checkpoint", "meta", "metadata", "startup"),
        "directory",
    ),
    **dict.fromkeys(("offset", "time", "transaction-index", "index", "snapshot", "leader"), "index"),
    **dict.fromkeys(("sequence", "producer"), "sequence"),
    **dict.fromkeys(("transaction", "marker", "coordinator"), "transaction"),
    **dict.fromkeys(("group", "chain"), "group"),
}


def page() -> str:
    """Return the page."""
    order = list(_TITLES)
    rules = sorted(RULES, key=lambda rule: order.index(_title(rule)))
    sections = [
        f"\n## {_TITLES[title]}\n\n" + table(["rule", "severity", "what is wrong", "what to do"], map(_row, found))
        for title, found in groupby(rules, _title)
    ]
    return _HEAD + "".join(sections)


def _row(rule: Rule) -> tuple[str, ...]:
    about = " ".join([rule.about, *rule.more])
    if rule.name in examples():
        about += f"<br>*{examples()[rule.name]}*"
    return f"`{rule.name}`", rule.severity.value, about, rule.advice


def _title(rule: Rule) -> str:
    return _TITLE_OF.get(rule.name) or _TITLE_OF[rule.name.partition("-")[0]]
