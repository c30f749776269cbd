"""How large the inputs of the benchmarks are: tiny in `make test`, real in `make bench`.

LOGSTORE_BENCH_SCALE is the part of the real size: unset or 0 tiny, 1 real, 0.01 to see quickly that all runs, 4 for the
GiB that some ratios are asked for. LOGSTORE_BENCH_SECONDS bounds the rounds of one benchmark, all its sides together.
"""

from __future__ import annotations

import os

SCALE = float(os.environ.get("LOGSTORE_BENCH_SCALE") or 0)
REAL_SECONDS, TINY_SECONDS = 1.25, 0.05  # unless it is said
SECONDS = float(os.environ.get("LOGSTORE_BENCH_SECONDS") or (REAL_SECONDS if SCALE else TINY_SECONDS))

KIB, MIB = 2**10, 2**20


def scaled(tiny: int, real: int, scale: float = SCALE) -> int:
    """`real` times the scale, and never less than `tiny`.

    >>> scaled(10, 1000, 0), scaled(10, 1000, 0.5), scaled(10, 1000, 0.001)
    (10, 500, 10)
    """
    return max(tiny, round(real * scale))


def steps(*sizes: int, scale: float = SCALE) -> list[int]:
    """Sizes to show growth over: those that fit the scale, and always the first two.

    >>> steps(1, 1000, 1_000_000, scale=0), steps(1, 1000, 1_000_000, scale=0.01), steps(1, 1000, 1_000_000, scale=1)
    ([1, 1000], [1, 1000, 10000], [1, 1000, 1000000])
    """
    largest = max(sizes[1], round(sizes[-1] * scale))
    kept = [size for size in sizes if size <= largest]
    return kept if kept[-1] == largest or largest < sizes[1] or largest > sizes[-1] else [*kept, largest]
