"""A few seconds of `make soak`: everything runs beside everything, and leaves no file, thread or object behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import BOUNDS, LATENCY_BOUND, soaked, verdict
from benchmarks.support.soak_picture import drawn


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for the memory and files of a process")
@pytest.mark.slow
def test_a_store_in_use_has_at_the_end_what_it_had_at_first() -> None:
    samples = soaked(6, 3, told=lambda _: None)
    assert len(samples) == 3
    assert {"send and poll", "handed out", "transaction", "group joined and left"} <= samples[-1].keys()
    counts = [{name: sample[name] for name in ("files", "threads", "objects")} for sample in samples]
    assert verdict(counts) == []
    assert drawn(samples, 0.1).count("<path") == 5 + 7


def test_what_grows_is_told() -> None:
    first = dict.fromkeys(BOUNDS, 100.0)
    for name, (factor, amount) in BOUNDS.items():
        assert verdict([first, first | {name: 100 * factor + amount + 1}]) == [
            f"{name}: 100 at first, {100 * factor + amount + 1:.6g} at the end"
        ]
    factor, amount = LATENCY_BOUND
    assert verdict([{"poll": 1.0}, {"poll": factor + amount}]) == []
    assert len(verdict([{"poll": 1.0}, {"poll": 1.1 * factor}])) == 1
