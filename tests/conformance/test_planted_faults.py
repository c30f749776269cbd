"""Audits find every kind of fault that is planted in a directory of a real broker, where it is, and nothing else.

The whole is `make prove-faults`; here each kind is planted once, in one of the directories that suit it. `make test`
plants one kind for each rule, `make test-slow` a few more.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore_tools.salvage.salvage import losses, plan_salvage
from tests.planted.planter import KINDS, Planter
from tests.planted.prove import BASES, GOOD, UNSUITABLE, outcome
from tests.support.dice import Dice
from tests.support.sampling import sampled, seed_of

SEED = seed_of("PLANTED")
CONTENT = {"log-records", "log-codec", "log-record-count"}  # wrong under a right checksum


def of_each_rule(count: int) -> list[str]:
    """Return the first kinds of each rule, and of each set of rules one of which finds it."""
    chosen, counts = [], Counter[object]()
    for name, kind in KINDS.items():
        keys = [kind.rules, *kind.rules]
        if any(counts[key] < count for key in keys[1:]) or not counts[keys[0]]:
            counts.update(keys)
            chosen.append(name)
    return chosen


FEW, MORE = of_each_rule(1), of_each_rule(3)
OTHERS = [name for name in KINDS if name not in MORE]


@pytest.mark.parametrize("name", [*sampled(MORE, FEW, pytest.mark.slow), *sampled(OTHERS, ())])
def test_a_fault_is_found_where_it_was_planted(name: str, golden: Callable[[str], Path], tmp_path: Path) -> None:
    dice, bases, found = Dice(f"{SEED}/{name}"), list(BASES), None
    while bases and (found is None or found.verdict == UNSUITABLE):
        base = bases.pop(dice.below(len(bases)))
        found = outcome(KINDS[name], golden(base), tmp_path / "planted", f"{SEED}/{base}/{name}")
    assert found is not None
    assert found.verdict == GOOD, (SEED, base, found)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.rules <= CONTENT and "__" not in name])
def test_salvage_keeps_what_a_broker_loads(name: str, golden: Callable[[str], Path], tmp_path: Path) -> None:
    root = shutil.copytree(golden("records"), tmp_path / "planted")
    planted = KINDS[name].plant(Planter(root, Dice(f"{SEED}/{name}")))
    assert losses(plan_salvage(str(root / planted.name))) == []


def test_there_are_faults_of_many_kinds() -> None:
    assert len(KINDS) >= 150
