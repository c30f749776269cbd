"""Checks: each file has the rules about one thing, which its first line names, and what finds where they are broken.

A check of a partition is a follower of the pass (`evidence.Follower`); others are functions over what passes left.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from .. import finding
from ..finding import Rule
from . import (
    batches,
    checkpoints,
    directory,
    epochs,
    groups,
    indexes,
    internal_records,
    metadata_log,
    producers,
    records,
    sequences,
    transactions,
)

_MODULES = (
    batches,
    records,
    finding,
    indexes,
    producers,
    sequences,
    epochs,
    directory,
    checkpoints,
    internal_records,
    metadata_log,
    transactions,
    groups,
)
RULES = tuple(dict.fromkeys(value for module in _MODULES for value in vars(module).values() if isinstance(value, Rule)))
BY_NAME = {rule.name: rule for rule in RULES}


@cache
def examples() -> dict[str, str]:
    """Return an example of a finding for each rule, that of a planted fault; the tests keep them up to date."""
    lines = files(__package__).joinpath("examples.txt").read_text("utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)
