"""A running log and a model of it in memory, to which the rules of a state machine do the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from logstore.columns.record_columns import RecordColumns
from logstore.log.append.request import AppendInfo
from logstore.log.partition_log import PartitionLog
from tests.naive.partition import ABORT, COMMIT, Partition, Producer, Written
from tests.support.logs import open_partition_log

CONFIGS = st.sampled_from(
    [
        {"index.interval.bytes": "0", "internal.segment.bytes": "500"},
        {"index.interval.bytes": "200", "segment.ms": "40"},
        {"segment.index.bytes": "36", "index.interval.bytes": "100", "compression.type": "zstd"},
        {"index.interval.bytes": "0", "internal.segment.bytes": "400", "compression.type": "lz4"},
        {"internal.segment.bytes": "300", "compression.type": "gzip"},
        {"cleanup.policy": "", "compression.type": "snappy"},
        {},
    ]
)
VALUE_SIZE = 30  # bytes; two such records are more than a producer takes one for beforehand


class LogBesideModel(RuleBasedStateMachine):
    """Both, how they are appended to, and what always goes for both."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.now_ms = 1000
        self.record_count = 0
        self.retired: set[int] = set()  # producers of which a restart may have forgotten something
        self.remembered_from = 0  # batches from here on were appended since the producers were last read from the disk

    @initialize(config=CONFIGS)
    def open(self, config: dict[str, str]) -> None:
        self.given_config = config
        self.model = Partition()
        self.log = self.opened(was_clean=True, recovery_point=0)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.place)

    def opened(self, *, was_clean: bool, recovery_point: int) -> PartitionLog:
        return open_partition_log(
            self.place / "t-0",
            self.given_config,
            was_clean=was_clean,
            recovery_point=recovery_point,
            log_start_offset=self.model.start_offset,
            time_ms=self.now_ms,
            now_ms=lambda: self.now_ms,
            requires_verification=False,
        )

    def producer(self, number: int) -> tuple[int, Producer]:
        """The producer that goes by this number now."""
        producer_id = number
        while producer_id in self.retired:
            producer_id += 100
        return producer_id, self.model.producers().get(producer_id, Producer())

    def read_producers_from_disk(self, *, forgets: bool) -> None:
        """The log has done so; of what is below its start some may be in a snapshot, and some forgotten."""
        self.remembered_from = self.model.end_offset
        if "segment.index.bytes" in self.given_config:
            self.log.roll()  # a recovery may make more entries than a segment that is written on has, as in Kafka
        if forgets:
            for producer_id, producer in self.model.producers().items():
                if producer.known_from < self.model.start_offset:
                    self.retired.add(producer_id)

    def batch(
        self,
        count: int,
        producer_id: int = -1,
        epoch: int = -1,
        sequence: int = -1,
        is_transactional: bool = False,
    ) -> Written:
        """The next batch, of values that were in none before."""
        values = [b"%0*d" % (VALUE_SIZE, self.record_count + number) for number in range(count)]
        self.record_count += count
        return Written(self.model.end_offset, self.now_ms, values, producer_id, epoch, sequence, is_transactional)

    def ask(self, batch: Written, way: str = "records") -> AppendInfo:
        """Append to the log alone."""
        times = [batch.timestamp] * len(batch.values)
        producer = {
            "producer_id": batch.producer_id,
            "producer_epoch": batch.epoch,
            "base_sequence": batch.sequence,
            "is_transactional": batch.is_transactional,
        }
        if way == "records":
            return self.log.append_records(list(batch.values), None, times, **producer)
        rows = [(None, value, time, ()) for value, time in zip(batch.values, times, strict=True)]
        batch_size = 1 if "alone" in way else 1 << 20
        return self.log.append_columns(RecordColumns.from_records(rows), batch_size=batch_size, **producer)

    def append(self, batch: Written, way: str) -> None:
        info = self.ask(batch, way)
        assert (info.first_offset, info.last_offset, info.is_duplicate) == (
            batch.base_offset,
            batch.end_offset - 1,
            False,
        )
        for part in _alone(batch) if "alone" in way else [batch]:
            self.model.append(part)

    def ask_for_marker(self, producer_id: int, epoch: int, *, is_commit: bool, version: int) -> AppendInfo:
        """End a transaction in the log alone."""
        return self.log.append_end_transaction(
            producer_id, epoch, is_commit=is_commit, coordinator_epoch=0, transaction_version=version
        )

    def append_marker(self, producer_id: int, epoch: int, *, is_commit: bool, version: int) -> None:
        """End a transaction in both; by version 2 the producer's epoch is one more then."""
        epoch += version == 2
        info = self.ask_for_marker(producer_id, epoch, is_commit=is_commit, version=version)
        assert info.first_offset == info.last_offset == self.model.end_offset
        marker = COMMIT if is_commit else ABORT
        self.model.append(Written(info.first_offset, self.now_ms, (), producer_id, epoch, marker=marker))

    @invariant()
    def offsets_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        log, model = self.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.start_offset, model.end_offset)
        assert log.high_watermark == model.high_watermark
        assert log.last_stable_offset == model.last_stable_offset()

    @invariant()
    def producers_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        known = {producer.producer_id: producer for producer in self.log.state.producers.state}
        for producer_id, expected in self.model.producers().items():
            if producer_id in self.retired:
                continue
            assert known[producer_id].producer_epoch == expected.epoch
            assert known[producer_id].current_txn_first_offset == expected.open_since


def _alone(batch: Written) -> list[Written]:
    """Its records as a batch each."""
    return [
        Written(
            batch.base_offset + number,
            batch.timestamp,
            [value],
            batch.producer_id,
            batch.epoch,
            batch.sequence if batch.sequence < 0 else batch.sequence + number,
            batch.is_transactional,
        )
        for number, value in enumerate(batch.values)
    ]
