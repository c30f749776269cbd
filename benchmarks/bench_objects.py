"""Reading a log in an object store: every byte once, beside obstore's plain ranged reads of the same bytes.

The store is gofakes3, in memory and on this machine: what it takes of the processors is in each time, and a network is
in none. The peers make requests as large as ours, and look at no byte; the floor looks at all, and makes no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import from_url

from benchmarks.bench_audit import write_partition
from benchmarks.support.data import MIB, SEGMENT, scaled
from benchmarks.support.measure import Floor, Measured, Side, timed
from logstore.audit.verify import verify_partition_directory
from logstore.disk import objects
from logstore.disk.object_file import PIECE_COUNT_MAX, PIECE_SIZE
from logstore.view.partition_reader import PartitionReader
from tests.support.object_store import BUCKET, ObjectStore, store_or_skip

SIZE = scaled(MIB, 256 * MIB)
URL = f"s3://{BUCKET}/orders-0"


def reading_records(path: str) -> Callable[[], int]:
    """Return what reads all records of a partition, whose reader is open: it has followed the last segment before."""
    reader = PartitionReader(path)
    return lambda: sum(map(len, reader.records().chunks()))


def verifying(path: str) -> Callable[[], int]:
    """Return what verifies a partition."""
    return lambda: verify_partition_directory(path).evidence.log_end_offset


WAYS = {"records": reading_records, "verify": verifying}


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with store_or_skip() as store:
        yield store


@pytest.fixture
def local(server: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A partition that is at `URL` too, for readers that ask the server without the tests' proxy."""
    for name, value in {**server.environment, "AWS_ENDPOINT_URL": f"http://{server.upstream}"}.items():
        monkeypatch.setenv(name, value)
    objects.forget_all()
    path = write_partition(tmp_path / "orders-0", SIZE)
    server.put_all(path, "orders-0")
    return path


def ranged_reads(size: int, thread_count: int) -> Side:
    """Fetch the log with obstore alone, so many requests at once."""
    store: Any = from_url(f"s3://{BUCKET}", client_options={"allow_http": True})
    pool = ThreadPoolExecutor(thread_count)

    def fetch(start: int) -> int:
        end = min(start + PIECE_SIZE, size)
        return len(obstore.get_range(store, f"orders-0/{SEGMENT}", start=start, end=end))

    return timed(lambda: sum(pool.map(fetch, range(0, size, PIECE_SIZE))))


@pytest.mark.parametrize("way", WAYS)
def test_full_read(way: str, local: Path, measured: Measured) -> None:
    size = (local / SEGMENT).stat().st_size
    found = measured(
        WAYS[way](URL),
        title=f"{way} of a log in an object store, {SIZE / MIB:.4g} MiB",
        size=size,
        peers={
            "obstore, a range after the other": ranged_reads(size, 1),
            f"obstore, {PIECE_COUNT_MAX} ranges at once": ranged_reads(size, PIECE_COUNT_MAX),
        },
        floor=Floor("the same of a local file", timed(WAYS[way](str(local)))),
    )
    assert found == WAYS[way](str(local))()
