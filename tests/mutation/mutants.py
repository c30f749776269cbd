"""Mutants of the product: sources with one operator, number, condition or loop changed, by cosmic-ray's operators.

cosmic-ray is imported where it is used: `make prove-tests` alone installs it.
"""

from __future__ import annotations

import difflib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutation.programs import program

#: operators that change nothing that runs, and `is` in place of `==` and back: the same of numbers and enumerations
LEFT_OUT = re.compile(
    "core/(RemoveDecorator|ReplaceComparisonOperator_((Eq|NotEq|Lt|LtE|Gt|GtE)_Is(Not)?|Is_Eq|IsNot_NotEq))"
)


class Mutant(NamedTuple):
    """One change of one file.

    Attributes:
        path: of the file, from the root of the checkout.
        line, column: of what is changed, from 1 and from 0.
        operator, occurrence: cosmic-ray's name, and which of its places in the file.
    """

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    def source(self, original: str) -> str:
        """Return the file's source with the change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        mutated: str = mutate_code(original, get_operator(self.operator)(), self.occurrence)
        return mutated

    def is_other_program(self, original: str) -> bool:
        """Return whether the change is one of what runs; some operators write what is no Python, or fail."""
        try:
            return program(self.source(original)) != program(original)
        except (SyntaxError, AttributeError):  # an exception that is caught by a dotted name is more than they take
            return False

    def change(self, original: str) -> str:
        """Return the lines that differ, before and after, in one line."""
        lines = list(difflib.unified_diff(original.splitlines(), self.source(original).splitlines(), lineterm="", n=0))
        changed = [line for line in lines[2:] if not line.startswith("@@")]
        return " ".join(f"{line[0]} {line[1:].strip()}" for line in changed)


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Return every mutant of a file, some of which only change annotations."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if LEFT_OUT.fullmatch(name) or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        places = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(places):
            yield Mutant(path, line, column, name, occurrence)


def sampled(root: Path, paths: Iterable[str], count: int, seed: str) -> list[Mutant]:
    """Return so many mutants: of each place that can be changed at most one, whatever its number of changes."""
    draw = random.Random(seed)
    by_place: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    for path in paths:
        for mutant in mutants_of(path, (root / path).read_text()):
            by_place[mutant[:3]].append(mutant)
    places = sorted(by_place)
    draw.shuffle(places)
    chosen: list[Mutant] = []
    for place in places:
        if len(chosen) == count:
            break
        mutant = draw.choice(by_place[place])
        if mutant.is_other_program((root / mutant.path).read_text()):
            chosen.append(mutant)
    return chosen
