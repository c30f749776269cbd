"""All rules of audits, and the one way to ask them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ..finding import Breach, Finding, Rule
from . import directory, groups, indexes, log, producers, transactions

RULES: tuple[Rule, ...] = tuple(
    value
    for module in (log, indexes, producers, directory, transactions, groups)
    for value in vars(module).values()
    if isinstance(value, Rule)
)
BY_NAME = {rule.name: rule for rule in RULES}
_RULES_OF: dict[type, list[Rule]] = {}


@cache
def examples() -> dict[str, str]:
    """Return an example of a finding for each rule, that of a planted fault; the tests keep them up to date."""
    lines = files(__package__).joinpath("examples.txt").read_text("utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def ask(facts: object) -> list[Finding]:
    """Ask each rule that needs such facts; for a breach, only the rule that it names."""
    if isinstance(facts, Breach):
        return [BY_NAME[facts.rule].finding(*facts.broken)]
    kind = type(facts)
    if kind not in _RULES_OF:  # to ask the type of each rule anew took a fifth of the time of a small partition
        _RULES_OF[kind] = [rule for rule in RULES if issubclass(kind, rule.needs)]
    return [finding for rule in _RULES_OF[kind] for finding in rule.ask(facts)]
