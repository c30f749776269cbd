"""Answers from the ends of large logs, beside the size of the logs; and a report about many transactions.

The bytes are those that system calls read, directories aside.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logstore
from benchmarks.support.data import MIB, scaled, write_transactions
from benchmarks.support.logs import settings_of
from benchmarks.support.measure import Measured
from logstore.audit.directory_audit import audit_directory
from logstore.log.load.recover import recover_partition
from logstore_tools.report import page

PARTITION_COUNT = scaled(4, 100)
TRANSACTION_COUNT = scaled(2_000, 10_000_000)
NOW_MS = 1_800_000_000_000
METADATA = "version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ"
NO_FLOOR = "not a transfer of bytes: nothing to measure against"
QUESTIONS: dict[str, Callable[[Path], Any]] = {
    "groups": logstore.groups,
    "txns list": logstore.transactions,
    "txns explain": logstore.explain,
    "producers": logstore.producers,
    "topics": logstore.topics,
    "segments": logstore.segments,
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Partitions of 1 GiB, as a kill leaves them: a large segment, nearly all zeros, and one of some KiB."""
    place = tmp_path_factory.mktemp("tails")
    root = place / "left"
    with logstore.open(place / "data") as store:
        store.create_topic("t", PARTITION_COUNT, config={"internal.segment.bytes": 20_000})
        producer = store.producer(transactional_id="writer")
        producer.init_transactions()
        for _ in range(30):
            producer.begin_transaction()
            for number in range(PARTITION_COUNT):
                producer.send("t", partition=number, value=bytes(1000))
            offsets = {("t", number): store.log("t", number).log_end_offset for number in range(PARTITION_COUNT)}
            producer.send_offsets_to_transaction(offsets, group_id="readers")
            producer.commit_transaction()
        producer.begin_transaction()
        producer.send("t", partition=0, value=b"left open")
        producer.flush()
        shutil.copytree(place / "data", root)
    for log in root.glob("t-*/00000000000000000000.log"):
        os.truncate(log, 1024 * MIB)
    yield root
    shutil.rmtree(place)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answer_from_the_tail(question: str, large: Path, measured: Measured) -> None:
    ask = QUESTIONS[question]
    ask(large)
    before = bytes_read()
    ask(large)
    read, size = bytes_read() - before, sum(log.stat().st_size for log in large.glob("*/*.log"))
    rows = measured(
        lambda: ask(large),
        title=f"{question}, {PARTITION_COUNT} partitions of 1 GiB, {read / 1024:,.0f} KiB read",
        count=PARTITION_COUNT,
        unit="partitions",
        floor=NO_FLOOR,
        hashed=len,
    )
    assert len(rows) > 0
    assert read <= size / 100


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


def test_report_about_many_transactions(measured: Measured, tmp_path: Path) -> None:
    root = tmp_path / "data"
    write_transactions(root / "t-0", TRANSACTION_COUNT)
    (root / "t-0" / "partition.metadata").write_text(METADATA)
    recover_partition(str(root / "t-0"), settings_of(was_clean=False))
    text = measured(
        lambda: page(str(root), audit_directory(str(root), NOW_MS), NOW_MS),
        title=f"report about {TRANSACTION_COUNT:,} transactions",
        count=TRANSACTION_COUNT,
        unit="transactions",
        floor=NO_FLOOR,
    )
    assert f"of {TRANSACTION_COUNT:,} transactions" in text
