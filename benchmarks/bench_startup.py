"""From start to exit: the library imported, the command asked for its version, 10 KB dumped beside the real tool."""

from __future__ import annotations

import filecmp
import sys
from pathlib import Path

import pytest

from benchmarks.floors import Floor
from benchmarks.measured import Measured
from benchmarks.peers.kafka_dump_log import kafka_dump_log
from benchmarks.peers.processes import LOGSTORE, run
from benchmarks.segments import write_segment

SEGMENT = "00000000000000000000.log"
SMALL_SIZE = 10_000


def bare_python(tmp_path: Path) -> Floor:
    """Python that starts and ends."""
    return Floor("bare Python", lambda: run([sys.executable, "-c", "pass"], tmp_path / "python.txt", tmp_path).wall_s)


@pytest.mark.parametrize("module", ["logstore", "logstore_tools.main"])
def test_import(measured: Measured, tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", f"import {module}; print({module}.__name__)"]

    def start() -> bytes:
        run(command, tmp_path / "ours.txt", tmp_path)
        return (tmp_path / "ours.txt").read_bytes()

    said = measured(start, title=f"start with `import {module}`", floor=bare_python(tmp_path), rounds=7)
    assert said == f"{module}\n".encode()


def test_version(measured: Measured, tmp_path: Path) -> None:
    def start() -> bytes:
        run([*LOGSTORE, "--version"], tmp_path / "ours.txt", tmp_path)
        return (tmp_path / "ours.txt").read_bytes()

    assert measured(start, title="`logstore --version`", floor=bare_python(tmp_path), rounds=7).startswith(b"logstore")


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


def test_first_transaction(measured: Measured, tmp_path: Path) -> None:
    number = iter(range(1 << 30))

    def story() -> bytes:
        run([sys.executable, "-c", STORY, str(tmp_path / f"data-{next(number)}")], tmp_path / "ours.txt", tmp_path)
        return (tmp_path / "ours.txt").read_bytes()

    def numpy_alone() -> float:
        return run([sys.executable, "-c", "import numpy"], tmp_path / "numpy.txt", tmp_path).wall_s

    said = measured(
        story,
        title="a new store, a committed transaction and a poll of a group, start to exit",
        peers={"import numpy": numpy_alone},
        floor=bare_python(tmp_path),
        rounds=7,
    )
    assert said == b"[b'paid']\n"


def test_dump_of_a_small_file(measured: Measured, tmp_path: Path) -> None:
    write_segment(tmp_path / SEGMENT, SMALL_SIZE, batch_size=SMALL_SIZE // 3)
    argv = ["--files", SEGMENT, "--print-data-log"]
    ours, kafkas = tmp_path / "logstore.txt", tmp_path / "kafka.txt"

    def start() -> bytes:
        run([*LOGSTORE, "dump", *argv], ours, tmp_path)
        return ours.read_bytes()

    text = measured(
        start,
        title="`logstore dump`, 10 KB, --print-data-log, start to exit",
        size=SMALL_SIZE,
        peers={"kafka-dump-log": kafka_dump_log(argv, kafkas, tmp_path)},
        floor=bare_python(tmp_path),
        rounds=7,
    )
    assert len(text) > SMALL_SIZE
    assert not kafkas.exists() or filecmp.cmp(ours, kafkas, shallow=False)
