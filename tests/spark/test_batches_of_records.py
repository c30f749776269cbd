"""How many records Spark is given at a time: each Arrow batch costs the worker and the JVM."""

from __future__ import annotations

from pathlib import Path

from benchmarks.support.data import write_segment
from tests.spark.planned import Planned


def test_a_batch_has_all_that_a_scan_gives(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    count = write_segment(tmp_path / "t-0" / f"{0:020d}.log", 3 * 1024 * 1024, value_size=100)
    assert count > 20_000
    planned = Planned(tmp_path)
    assert [batch.num_rows for batch in planned.batches()] == [count]
    assert planned.offsets() == list(range(count))
