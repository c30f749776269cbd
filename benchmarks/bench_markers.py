"""A transaction, its marker and the last stable offset, while other producers have transactions open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.floors import writing_each
from benchmarks.logs import NAME, SEGMENT, opened, twin, values
from benchmarks.measured import Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_producers
from benchmarks.sizes import steps
from benchmarks.written import written
from logstore.clock import now_ms
from logstore.log.partition_log import PartitionLog

KAFKA_CALL_COUNT = 500
PRODUCER_ID = 2_000_000_000
WRITTEN_SIZES = (172, 78)  # bytes of a batch with one record of 100, and of a marker

Opened = tuple[PartitionLog, int, Path]


@pytest.fixture(scope="module", params=steps(1, 1000, 1_000_000))
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A log with so many open transactions, and a copy of its directory for Kafka."""
    directory = tmp_path_factory.mktemp("markers") / NAME
    directory.mkdir()
    write_producers(directory / SEGMENT, request.param, is_transactional=True, now_ms=now_ms())
    copy = twin(directory)
    log = opened(directory, was_clean=False)
    yield log, request.param, copy
    log.close()


class KafkasTransactions:
    """Kafka's log over a copy, held open from the first round on."""

    def __init__(self, kafka: WarmKafka, directory: Path) -> None:
        self.kafka = kafka
        self.directory = directory
        self.sequence = 0

    def run(self) -> float:
        """Seconds of one transaction."""
        if self.sequence == 0:
            self.kafka.measure(op="hold", dir=str(self.directory), clean=False)
        order = {"op": "mark", "count": KAFKA_CALL_COUNT, "id": PRODUCER_ID, "sequence": self.sequence}
        self.sequence += KAFKA_CALL_COUNT
        # the first open transaction began at offset 0: it is the last stable offset however many end
        return self.kafka.seconds(**order, call_count=KAFKA_CALL_COUNT, expected_count=0)


def test_transaction_beside_open_ones(measured: Measured, kafka: WarmKafka, log: Opened, tmp_path: Path) -> None:
    opened_log, open_count, directory = log
    batch, sequence = values(1), 0

    def transact() -> int:
        nonlocal sequence
        opened_log.append_records(
            batch, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )
        opened_log.append_end_transaction(PRODUCER_ID, 0, is_commit=True, coordinator_epoch=0, transaction_version=1)
        sequence += 1
        return opened_log.last_stable_offset

    kafkas = KafkasTransactions(kafka, directory)
    stable = measured(
        transact,
        title=f"transaction, marker and LSO beside {open_count:,} open ones",
        size=sum(WRITTEN_SIZES),
        count=1,
        unit="transactions",
        peers={"Kafka": kafkas.run},
        floor=writing_each(tmp_path / "floor", WRITTEN_SIZES, 1000),
        growth=Growth("open transactions", "transaction, marker, LSO", open_count),
        hashed=lambda stable: (stable, *written(opened_log, 2)),
    )
    if kafkas.sequence:
        kafka.measure(op="release")
    assert stable == 0
    assert opened_log.log_end_offset == open_count + 2 * sequence


def test_last_stable_offset(measured: Measured, log: Opened) -> None:
    opened_log, open_count, _ = log
    growth = Growth("open transactions", "LSO", open_count)
    title = f"LSO of {open_count:,} open transactions"
    look = {"count": 1, "unit": "looks", "growth": growth, "floor": "a word of memory: less than a call"}
    assert measured(lambda: opened_log.last_stable_offset, title=title, **look) == 0
    assert opened_log.producers.state.transactions.ongoing_count == open_count
