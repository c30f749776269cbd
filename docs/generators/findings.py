"""The page of the findings: the closed list of rules, with cause and advice."""

from __future__ import annotations

from itertools import groupby

from logstore.audit.checks import RULES, examples
from logstore.audit.finding import Rule

_HEAD = """\
# Findings of an audit

Written by `python -m docs.generators` from the rules in `logstore/audit/`; do not edit.

`logstore verify` asks the rules about bytes and about the files beside a log, `logstore audit` and `logstore report`
ask all of them, and the Spark table `findings` has a row for each finding. A finding names its rule, where it is, what
was expected and what was found. Only what is wrong is a finding: an open transaction, an aborted offset or a group that
is behind is not. Where what breaks a rule may be no fault, the rule is not asked, and the summary of an audit names it
with the reason; each rule says which reasons it has. A name, once published, stays. The example of a rule is what a
planted fault was told as; `logstore audit --explain RULE` prints the same.

An *error*: records are lost, unreadable, or given out wrongly. A *warning*: a broker repairs it by itself, or is slowed
down by it.
"""

_TITLES = {  # with why it matters
    "log": (
        "Batches and segments",
        "Records are what consumers get: where these are wrong, they lose some, get some twice, or stop.",
    ),
    "directory": (
        "Directories and files",
        "A broker reads these before any log: it does not start, or takes a directory for something else.",
    ),
    "index": (
        "Files beside a log",
        "Where a fetch begins, which time an offset has, what `read_committed` leaves out and where an epoch begins "
        "come from these; after a clean shutdown a broker believes them.",
    ),
    "sequence": (
        "Producers",
        "By what it knows of producers a broker refuses what was sent twice or in a wrong order. If that is wrong, a "
        "record is there twice, or a producer is refused.",
    ),
    "transaction": (
        "Transactions",
        "`read_committed` consumers stop at a transaction that has no marker; a wrong marker gives them what was "
        "aborted, or keeps back what was committed.",
    ),
    "group": (
        "Groups, and chains of read-process-write",
        "A group goes on from its committed offsets: by a wrong one it processes records twice, or never.",
    ),
}
_TITLE_OF = {
    **dict.fromkeys(("log", "offsets", "timestamp"), "log"),
    **dict.fromkeys(
        (
            *("directory", "orphan", "swap", "partition", "internal", "checkpoint", "meta", "metadata", "newer"),
            *("startup", "quorum"),
        ),
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
    sections: list[str] = []
    for key, found in groupby(rules, _title):
        title, why = _TITLES[key]
        sections.append(f"\n## {title}\n\n{why}\n" + "".join(map(_section, found)))
    return _HEAD + "".join(sections)


def _section(rule: Rule) -> str:
    about = f"{rule.about} {rule.more}".rstrip()
    example = examples().get(rule.name)
    shown = f"\n```text\n{example}\n```\n" if example else ""
    unasked = f"\nNot asked where: {rule.unless_text}.\n" if rule.unless else ""
    head = f"\n### `{rule.name}`\n\n*{rule.severity.value.capitalize()}.* {about}\n"
    return f"{head}{shown}\nWhat to do: {rule.advice}\n{unasked}"


def _title(rule: Rule) -> str:
    return _TITLE_OF.get(rule.name) or _TITLE_OF[rule.name.partition("-")[0]]
