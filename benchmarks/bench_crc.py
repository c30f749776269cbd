"""CRC-32C of bytes in memory, as the processor does it best."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.floors import Bytes, reading
from benchmarks.measured import Growth, Measured, Side
from benchmarks.peers.crc32c_package import crc32c_package
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.kernels.scan.crc32c import crc32c_range

CALL_COUNT = 3  # of Kafka's in one order


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crc") / "00000000000000000000.log"
    write_segment(path, scaled(256 * KIB, 256 * MIB))  # more than the caches hold
    return path


@pytest.fixture(scope="module")
def data(path: Path) -> Bytes:
    return np.fromfile(path, np.uint8)


@pytest.fixture(scope="module")
def near(data: Bytes) -> Bytes:
    """As much as the last cache may hold."""
    return data[: 16 * MIB]


def test_crc_of_memory(measured: Measured, kafka: WarmKafka, path: Path, data: Bytes) -> None:
    def kafkas() -> float:
        return kafka.seconds(op="crc", file=str(path), count=CALL_COUNT, call_count=CALL_COUNT, expected_count=crc)

    peers: dict[str, Side] = {"Kafka": kafkas, "crc32c": crc32c_package(data)}
    crc = crc32c_range(data, 0, data.size)
    found = measured(
        crc32c_range,
        *(data, 0, data.size),
        title=f"CRC of {data.size / MIB:.1f} MiB in memory",
        size=data.size,
        count=data.size,
        unit="bytes",
        peers=peers,
        floor=reading(data),
    )
    assert found == crc


@pytest.mark.parametrize("size", steps(64, 1024, 16 * KIB, MIB))
def test_crc32c_range(measured: Measured, near: Bytes, size: int) -> None:
    part = near[: min(size, near.size)]
    growth = Growth("bytes of a batch", "CRC", part.size)
    title = f"CRC of {part.size:,} bytes"
    crc = measured(crc32c_range, part, 0, part.size, title=title, size=part.size, floor=reading(part), growth=growth)
    assert 0 <= crc < 1 << 32
