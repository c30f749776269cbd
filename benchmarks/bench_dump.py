"""The dump of one segment at three depths, from the mapped file to text in memory."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
import xxhash
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.segments import write_segment
from logstore_tools.dump import run

SIZE = int(os.environ.get("LOGSTORE_BENCH_SIZE", 256 * 1024))
SEGMENT = "00000000000000000000.log"
TINY_HASHES = {
    (): "a0891189c7e2e52c",
    ("--deep-iteration",): "d8a18b6a5d7dc92c",
    ("--print-data-log",): "dede25cab31dec8f",
}


@pytest.mark.parametrize("options", TINY_HASHES, ids=" ".join)
def test_dump_of_a_segment(
    options: tuple[str, ...], benchmark: BenchmarkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_segment(tmp_path / SEGMENT, SIZE)

    def dump() -> bytes:
        stdout = io.BytesIO()
        assert run(["--files", SEGMENT, *options], stdout, io.StringIO()) == 0
        return stdout.getvalue()

    text = benchmark(dump)
    benchmark.extra_info["bytes"] = SIZE
    if SIZE == 256 * 1024:
        assert xxhash.xxh64_hexdigest(text) == TINY_HASHES[options]
