"""Checks: each file has the rules about one thing, and what finds where they are broken.

| module             | checks                                                                               |
|--------------------|--------------------------------------------------------------------------------------|
| `batches`          | headers of batches, damage, missing offsets, timestamps                              |
| `records`          | records that cannot be read, or contradict their batch                               |
| `indexes`          | entries of `.index` and `.timeindex`, and the batches they lead to                   |
| `index_check`      | what checks of both indexes share                                                    |
| `producers`        | `.txnindex` and `.snapshot` beside what the log says                                 |
| `sequences`        | sequences and epochs of producers                                                    |
| `epochs`           | `leader-epoch-checkpoint` beside the epochs of batches                               |
| `directory`        | what lies in a data directory and its partitions beside segments                     |
| `checkpoints`      | offset checkpoints beside the logs                                                   |
| `internal_records` | whether records of internal topics parse, and are where they are looked for          |
| `metadata_log`     | the metadata log beside its snapshots and `quorum-state`                             |
| `transactions`     | transactions across partitions, and between partitions and their coordinator         |
| `groups`           | committed offsets of groups, and chains of transactions                              |
| `swaps`            | segments that a copy holds beside the one they were merged into                      |

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
