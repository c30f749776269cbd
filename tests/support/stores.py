"""Stores as tests need them, and what tests do to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from logstore import clock
from logstore.client import store as client_store
from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.disk.seam import Seam
from logstore.disk.side_files import read_offset_checkpoint
from logstore.errors import DataDirectoryError
from logstore.model import FetchIsolation
from logstore.replay.metadata_state import read_metadata
from logstore.store.metadata.batches import data_batch
from tests.support.clock import Clock
from tests.support.logs import records_of
from tests.support.seams import UnsyncedSeam

#: internal topics of one partition, which are made sooner than fifty
FEW_PARTITIONS = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
#: a `linger_ms` within which no test ends
LONG_MS = 600_000


class FailingRenames(Seam):
    """Renames below `directory` fail, once it is set."""

    directory: str | None = None

    def rename(self, path: str, new_path: str) -> None:
        if self.directory is not None and self.directory in path:
            raise DataDirectoryError("No space left on device", path=path, java_class="java.io.IOException")
        super().rename(path, new_path)


def open_store(
    path: Path,
    *,
    seam: Seam | None = None,
    now_ms: Callable[[], int] = clock.now_ms,
    config: Mapping[str, Any] | None = None,
) -> Store:
    """`logstore.open` with a seam; without one it waits for no disk."""
    return client_store.open_store(
        str(path), config=config or {}, now_ms=now_ms, progress=None, seam=seam or UnsyncedSeam()
    )


def patient_producer(store: Store, **config: Any) -> Producer:
    """A producer that writes no batch before it is full or flushed."""
    return store.producer(**{"linger_ms": LONG_MS, **config})


def values_of(
    store: Store, topic: str, partition: int = 0, isolation: FetchIsolation = FetchIsolation.READ_COMMITTED
) -> list[bytes | None]:
    """The values that a consumer reads."""
    return [record.value for record in records_of(store.log(topic, partition), isolation=isolation)]


def append_metadata(root: Path, *values: bytes) -> None:
    """Append records to the metadata log of a closed directory."""
    partition = root / "__cluster_metadata-0"
    log = partition / f"{0:020d}.log"
    batch = data_batch(values, read_metadata(str(partition)).next_offset, 1, 0)
    log.write_bytes(log.read_bytes() + batch.tobytes())


def read_checkpoint(store: Store, name: str) -> dict[tuple[str, int], int]:
    """Read `name`-offset-checkpoint; a missing one is empty."""
    path = Path(store.path) / f"{name}-offset-checkpoint"
    return read_offset_checkpoint(str(path)) if path.exists() else {}


def append_segments(store: Store, topic: str, count: int) -> None:
    """Append records to partition 0 of `topic`, and roll after each."""
    for number in range(count):
        store.log(topic, 0).append_records([b"v" * 50], keys=[str(number % 3).encode()])
        store.log(topic, 0).roll()


def run_later(store: Store, clock: Clock, ms: int) -> list[str]:
    """Move the clock by `ms` and run what is due then; the names of the jobs."""
    clock.now_ms += ms
    return store.run_due()


def begun(store: Store, transactional_id: str = "x", **config: Any) -> Producer:
    """A producer in a transaction."""
    producer = store.producer(transactional_id=transactional_id, **config)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def contents(root: Path, *, but: str | None = None) -> dict[str, bytes]:
    """All files by their path, but those of one name."""
    files = [path for path in root.rglob("*") if path.is_file() and path.name != but]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
