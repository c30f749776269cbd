"""Opening and closing a data directory, by its number of partitions, after a clean stop and after a crash; and programs
from start to exit.

Kafka's own time for the same directory is what its broker prints as `Loaded … logs in … ms`, of all logs on two
threads; ours has the metadata and the lock in it too. After a clean stop ours opens a log when it is first asked for,
so there are two rows beside the broker: the store alone, ready for its first append, and with every log asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import logstore
from benchmarks.peers.commands import LOGSTORE, bare_python, printed, run
from benchmarks.peers.kafka import broker_loading
from benchmarks.support.data import steps
from benchmarks.support.measure import Growth, Measured, Side
from logstore.client.store import Store
from logstore.layout import clean_shutdown

PARTITION_COUNTS = steps(1, 100, 1000)
CRASHED_COUNTS = PARTITION_COUNTS[:2]  # a recovery of the largest takes seconds
RECORD_COUNT = 100  # in each partition
ROUND_COUNTS = {"store": 2, "every log": 2}  # of those with a broker, which takes seconds to start
CLOSING_FILES = (clean_shutdown.FILE_NAME, "recovery-point-offset-checkpoint")  # written by a close
FLOORLESS = "few small files: nothing to measure against"
WORDS = {"clean": "clean stop (logs open on first use)", "crash": "crash"}
PICTURE = "partitions of a store"
LISTED_COUNT = 69


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return a function: the directory of a store of so many partitions, made once and closed."""
    return cache(lambda partition_count: made(tmp_path_factory.mktemp("store") / "data", partition_count))


def made(root: Path, partition_count: int) -> Path:
    with logstore.open(root) as store:
        store.create_topic("orders", partition_count)
        for number in range(partition_count):
            store.log("orders", number).append_records([b"v" * 100] * RECORD_COUNT)
    return root


def end_offsets(store: Store) -> list[int]:
    """Open every partition; return their end offsets."""
    return [store.log("orders", number).log_end_offset for number in range(store.topics["orders"].partition_count)]


class Openings:
    """A directory that is opened again and again; what was opened last is closed first."""

    def __init__(self, root: Path, *, was_clean: bool) -> None:
        self.root, self.was_clean = root, was_clean
        self.opened: list[Store] = []

    def close_last(self) -> None:
        while self.opened:
            self.opened.pop().close()
        if not self.was_clean:
            (self.root / clean_shutdown.FILE_NAME).unlink()

    def open(self) -> Store:
        self.opened.append(logstore.open(self.root))
        return self.opened[0]


@pytest.mark.parametrize(
    ("partition_count", "stop"),
    [*((count, "clean") for count in PARTITION_COUNTS), *((count, "crash") for count in CRASHED_COUNTS)],
)
def test_store_open(measured: Measured, laid_out: Callable[[int], Path], partition_count: int, stop: str) -> None:
    root = laid_out(partition_count)
    openings = Openings(root, was_clean=stop == "clean")
    is_largest = openings.was_clean and partition_count == PARTITION_COUNTS[-1]
    found = measured(
        openings.open,
        title=f"open a store of {partition_count:,} partitions after a {WORDS[stop]}",
        count=partition_count,
        unit="partitions",
        peers={"broker": broker_loading(root, partition_count)} if is_largest else None,
        floor=FLOORLESS,
        prepare=openings.close_last,
        rounds=ROUND_COUNTS["store"] if is_largest else None,
        growth=Growth(PICTURE, f"open after a {stop}", partition_count),
        hashed=end_offsets,
    )
    assert end_offsets(found) == [RECORD_COUNT] * partition_count
    openings.opened.pop().close()


@pytest.mark.parametrize("partition_count", PARTITION_COUNTS)
def test_store_open_every_log(measured: Measured, laid_out: Callable[[int], Path], partition_count: int) -> None:
    root = laid_out(partition_count)
    openings = Openings(root, was_clean=True)
    is_largest = partition_count == PARTITION_COUNTS[-1]
    offsets = measured(
        lambda: end_offsets(openings.open()),
        title=f"open a store of {partition_count:,} partitions after a clean stop, and every log, one thread",
        count=partition_count,
        unit="partitions",
        peers={"broker": broker_loading(root, partition_count)} if is_largest else None,
        floor=FLOORLESS,
        prepare=openings.close_last,
        rounds=ROUND_COUNTS["every log"] if is_largest else None,
        growth=Growth(PICTURE, "open after a clean stop, and each log", partition_count),
    )
    assert offsets == [RECORD_COUNT] * partition_count
    openings.opened.pop().close()


@pytest.mark.parametrize("partition_count", PARTITION_COUNTS)
def test_store_close(measured: Measured, laid_out: Callable[[int], Path], partition_count: int) -> None:
    root = laid_out(partition_count)
    opened: list[Store] = []
    measured(
        lambda: opened.pop().close(),
        title=f"close {partition_count:,} partitions of which none was used",
        count=partition_count,
        unit="partitions",
        floor=FLOORLESS,
        prepare=lambda: opened.append(logstore.open(root)),
        hashed=lambda _: [(root / name).read_bytes() for name in CLOSING_FILES],
        growth=Growth(PICTURE, "close", partition_count),
    )
    assert (root / clean_shutdown.FILE_NAME).exists()


@pytest.mark.parametrize("partition_count", PARTITION_COUNTS)
def test_store_open_read_only(measured: Measured, laid_out: Callable[[int], Path], partition_count: int) -> None:
    root = laid_out(partition_count)
    store = measured(
        lambda: logstore.open(root, read_only=True),
        title=f"open {partition_count:,} partitions to read only",
        count=partition_count,
        unit="partitions",
        floor=FLOORLESS,
        growth=Growth(PICTURE, "open to read only", partition_count),
        hashed=lambda store: [f"{name} {topic.partition_count}" for name, topic in sorted(store.topics.items())],
    )
    assert store.topics["orders"].partition_count == partition_count


@pytest.mark.parametrize("module", ["logstore", "logstore_tools.main"])
def test_start_import(measured: Measured, tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", f"import {module}; print({module}.__name__)"]
    start = {"title": f"start with `import {module}`", "floor": bare_python(tmp_path), "rounds": 7}
    said = measured(printed, command, tmp_path, **start)
    assert said == f"{module}\n".encode()


def test_start_version(measured: Measured, tmp_path: Path) -> None:
    start = {"title": "`logstore --version`", "floor": bare_python(tmp_path), "rounds": 7}
    assert measured(printed, [*LOGSTORE, "--version"], tmp_path, **start).startswith(b"logstore")


READING = """
import logstore, sys
with logstore.open(sys.argv[1]) as store:
    print(sum(1 for _ in store.read("orders")))
"""
STORY = """
import logstore, sys
with logstore.open(sys.argv[1]) as store:
    store.create_topic("orders", partitions=1)
    producer = store.producer(transactional_id="billing")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"paid", b"42")
    producer.commit_transaction()
    committed = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with store.consumer("orders", group_id="audit", **committed) as consumer:
        polled = []
        while not polled:
            polled = [record.value for records in consumer.poll(1000).values() for record in records]
        print(polled)
"""


def numpy_alone(cwd: Path) -> Side:
    """Return a side: seconds of a program that only imports numpy."""
    return lambda: run([sys.executable, "-c", "import numpy"], cwd / "numpy.txt", cwd)


def test_start_first_transaction(measured: Measured, tmp_path: Path) -> None:
    number = iter(range(1 << 30))

    def story() -> bytes:
        return printed([sys.executable, "-c", STORY, str(tmp_path / f"data-{next(number)}")], tmp_path)

    said = measured(
        story,
        title="a new store, a committed transaction and a poll of a group, start to exit",
        peers={"import numpy": numpy_alone(tmp_path)},
        floor=bare_python(tmp_path),
        rounds=7,
    )
    assert said == b"[b'paid']\n"


def test_start_existing_store(measured: Measured, laid_out: Callable[[int], Path], tmp_path: Path) -> None:
    """A small store that is there already, one record read, start to exit; beside `import numpy` as the one above."""
    said = measured(
        printed,
        *([sys.executable, "-c", READING, str(laid_out(1))], tmp_path),
        title="an existing store of a partition opened and read, start to exit",
        peers={"import numpy": numpy_alone(tmp_path)},
        floor=bare_python(tmp_path),
        rounds=7,
    )
    assert said == b"100\n"


def test_start_txns_list(measured: Measured, tmp_path: Path) -> None:
    """All partitions of a store, those of the coordinators' topics too."""
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("orders", LISTED_COUNT - 50)  # beside the 50 of `__transaction_state`
        producer = store.producer(transactional_id="billing")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"paid")
        producer.flush()
        text = measured(
            printed,
            *([*LOGSTORE, "txns", "list", str(tmp_path / "data")], tmp_path),
            title=f"`logstore txns list` over {LISTED_COUNT} partitions, start to exit",
            count=LISTED_COUNT,
            unit="partitions",
            peers={"import numpy": numpy_alone(tmp_path)},
            floor=bare_python(tmp_path),
            rounds=7,
            hashed=lambda text: b"billing" in text,
        )
        producer.abort_transaction()
    assert b"billing" in text
