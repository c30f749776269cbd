"""What a Spark task does with a segment, without Spark: walk, check, decode, and copy into Arrow batches.

`bench_spark_queries` measures whole queries beside their peers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash

from benchmarks.floors import copying
from benchmarks.measured import Measured
from benchmarks.segments import write_segment
from benchmarks.sizes import MIB, scaled
from tests.spark.planned import Planned

SIZE_TINY = MIB
SIZE = scaled(SIZE_TINY, 128 * MIB)
VALUES_HASH = "002d4aec27d03f31"


@pytest.mark.parametrize("schema", [None, "value binary"], ids=["all columns", "values"])
def test_read_records(schema: str | None, tmp_path: Path, measured: Measured) -> None:
    (tmp_path / "orders-0").mkdir()
    count = write_segment(tmp_path / "orders-0" / "00000000000000000000.log", SIZE, value_size=1000)
    planned = Planned(tmp_path, schema)

    def read() -> int:
        return sum(batch.num_rows for batch in planned.batches())

    def digest_of_values() -> str:
        digest = xxhash.xxh64()
        for batch in planned.batches():
            digest.update(b"".join(batch.column("value").to_pylist()))
        return digest.hexdigest()

    title = f"what a Spark task does with {SIZE / MIB:.4g} MiB, {'all columns' if schema is None else 'values'}"
    digest = digest_of_values()
    found = {"count": count, "hashed": lambda rows: (rows, digest)}
    assert measured(read, title=title, size=SIZE, floor=copying(SIZE), reads=tmp_path.glob("*/*.log"), **found) == count
    if SIZE == SIZE_TINY:
        assert digest == VALUES_HASH
