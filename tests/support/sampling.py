"""How many cases the random tests try, and which.

`make test` tries a sample, the same each time, so that a commit does not pass today and fail tomorrow. `make
test-slow`, which CI runs too, tries what takes seconds of a processor each (marked `slow`). `make test-long`
(`LOGSTORE_LONG=1`) tries the whole, from a fresh seed that it prints: `LOGSTORE_SEED` makes a run again. Variables of
single tests make those longer; these too then draw a fresh seed, and tell it when something is wrong.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Container, Iterable
from typing import Any

import pytest

IS_LONG = os.environ.get("LOGSTORE_LONG", "0") == "1"
IS_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
SAMPLE_SEED = "logstore"
INTERPRETED_EXAMPLES_MAX = 15


def case_count(variable: str, *, sample: int, whole: int) -> int:
    """Return the number of cases that `variable` asks for, else the sample or the whole.

    >>> case_count("NO_VARIABLE", sample=3, whole=3)
    3
    """
    return int(os.environ.get(variable) or (whole if IS_LONG else sample))


def examples(whole: int) -> int:
    """Return how many examples of a property to try: a tenth in `make test`, few where kernels are interpreted.

    >>> examples(whole=10) if not IS_LONG else 1
    1
    """
    if IS_LONG:
        return whole
    return min(whole // 10, INTERPRETED_EXAMPLES_MAX) if IS_INTERPRETED else whole // 10


def sampled(values: Iterable[Any], sample: Container[Any], mark: pytest.MarkDecorator = pytest.mark.long) -> list[Any]:
    """Return the parameters of a test: values outside of `sample` are for `make test-long`, or as `mark` says.

    >>> [type(value).__name__ for value in sampled([1, 2], sample=[1])]
    ['int', 'ParameterSet']
    """
    return [value if value in sample else pytest.param(value, marks=mark) for value in values]


def seed_of(kind: str) -> str:
    """Return `LOGSTORE_<kind>_SEED` or `LOGSTORE_SEED`, which make a run again, else a seed as the module says.

    >>> seed_of("NOTHING") if not IS_LONG else SAMPLE_SEED
    'logstore'
    """
    given = os.environ.get(f"LOGSTORE_{kind}_SEED") or os.environ.get("LOGSTORE_SEED")
    is_drawn = IS_LONG or f"LOGSTORE_{kind}_CASES" in os.environ
    return given or (secrets.token_hex(4) if is_drawn else SAMPLE_SEED)
