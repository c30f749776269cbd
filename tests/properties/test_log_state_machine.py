"""The running log beside a model in memory: any order of appends, markers, cuts, restarts and reads.

`LOGSTORE_STATE_MACHINE_RUNS` (default 60) is the number of runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from logstore.errors import InvalidProducerEpochError, InvalidTxnStateError, OutOfOrderSequenceError
from logstore.log.config import parse_config
from logstore.log.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.naive.partition import ABORT, COMMIT, Partition, Producer, Written
from tests.recovery.comparison import UnsyncedSeam

RUN_COUNT = int(os.environ.get("LOGSTORE_STATE_MACHINE_RUNS", "60"))
PRODUCER_IDS = st.sampled_from([1, 2, 17])
COUNTS = st.sampled_from([1, 1, 2, 5])
CONFIGS = st.sampled_from(
    [
        {"index.interval.bytes": "0", "internal.segment.bytes": "500"},
        {"index.interval.bytes": "200", "segment.ms": "40"},
        {"segment.index.bytes": "36", "index.interval.bytes": "100"},
        {},
    ]
)


class LogBesideModel(RuleBasedStateMachine):
    """Each rule does the same to both."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.now_ms = 1000
        self.model = Partition()
        self.record_count = 0
        self.retired: set[int] = set()  # producers that a restart may forget, for their batches are gone

    @initialize(config=CONFIGS)
    def open(self, config: dict[str, str]) -> None:
        self.config = parse_config(config)
        self.log = self._opened(was_clean=True)

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.place)

    def _opened(self, *, was_clean: bool) -> PartitionLog:
        start = self.model.start_offset
        recovery_point = self.log.recovery_point if hasattr(self, "log") else 0
        return PartitionLog.open(
            str(self.place / "t-0"),
            LoadSettings(was_clean, recovery_point, start, self.now_ms, self.config),
            seam=UnsyncedSeam(),
            now_ms=lambda: self.now_ms,
            requires_verification=False,
        )

    def _producer(self, number: int) -> tuple[int, Producer]:
        """The producer that goes by this number now."""
        producer_id = number
        while producer_id in self.retired:
            producer_id += 100
        return producer_id, self.model.producers().get(producer_id, Producer())

    def _batch(self, count: int, producer_id: int, epoch: int, sequence: int, is_transactional: bool) -> Written:
        values = [b"%d" % (self.record_count + number) for number in range(count)]
        self.record_count += count
        return Written(self.model.end_offset, self.now_ms, values, producer_id, epoch, sequence, is_transactional)

    def _append(self, batch: Written) -> tuple[int, int]:
        info = self.log.append_records(
            list(batch.values),
            None,
            [batch.timestamp] * len(batch.values),
            producer_id=batch.producer_id,
            producer_epoch=batch.epoch,
            base_sequence=batch.sequence,
            is_transactional=batch.is_transactional,
        )
        return info.first_offset, info.last_offset

    @rule(ms=st.sampled_from([0, 1, 7, 50, -3]))
    def let_time_pass(self, ms: int) -> None:
        self.now_ms += ms

    @rule(count=COUNTS)
    def append_plain(self, count: int) -> None:
        batch = self._batch(count, -1, -1, -1, False)
        assert self._append(batch) == (batch.base_offset, batch.end_offset - 1)
        self.model.append(batch)

    @rule(count=COUNTS, number=PRODUCER_IDS, bump=st.sampled_from([0, 0, 0, 1]), is_transactional=st.booleans())
    def append_in_sequence(self, count: int, number: int, bump: int, is_transactional: bool) -> None:
        producer_id, producer = self._producer(number)
        if producer.open_since is not None:
            is_transactional, bump = True, 0
        epoch = max(producer.epoch, 0) + bump
        sequence = producer.next_sequence if epoch == producer.epoch else 0
        batch = self._batch(count, producer_id, epoch, sequence, is_transactional)
        assert self._append(batch) == (batch.base_offset, batch.end_offset - 1)
        self.model.append(batch)

    @rule(number=PRODUCER_IDS)
    def repeat_the_last_batch(self, number: int) -> None:
        last = self._producer(number)[1].last
        if last is not None:
            assert self._append(last) == (last.base_offset, last.end_offset - 1)

    @rule(number=PRODUCER_IDS, gap=st.sampled_from([1, 5]))
    def leave_a_gap(self, number: int, gap: int) -> None:
        producer_id, producer = self._producer(number)
        if producer.epoch >= 0:
            is_open = producer.open_since is not None
            batch = self._batch(1, producer_id, producer.epoch, producer.next_sequence + gap, is_open)
            with pytest.raises(OutOfOrderSequenceError):
                self._append(batch)

    @rule(number=PRODUCER_IDS)
    def write_as_a_zombie(self, number: int) -> None:
        producer_id, producer = self._producer(number)
        if producer.epoch > 0:
            batch = self._batch(1, producer_id, producer.epoch - 1, 0, False)
            with pytest.raises(InvalidProducerEpochError):
                self._append(batch)

    @rule(number=PRODUCER_IDS)
    def write_outside_of_the_open_transaction(self, number: int) -> None:
        producer_id, producer = self._producer(number)
        if producer.open_since is not None:
            batch = self._batch(1, producer_id, producer.epoch, producer.next_sequence, False)
            with pytest.raises(InvalidTxnStateError):
                self._append(batch)

    @rule(number=PRODUCER_IDS, is_commit=st.booleans())
    def end_the_transaction(self, number: int, is_commit: bool) -> None:
        producer_id, producer = self._producer(number)
        if producer.open_since is not None:
            info = self.log.append_end_transaction(
                producer_id, producer.epoch, is_commit=is_commit, coordinator_epoch=0, transaction_version=1
            )
            assert info.first_offset == self.model.end_offset
            marker = COMMIT if is_commit else ABORT
            self.model.append(Written(info.first_offset, self.now_ms, (), producer_id, producer.epoch, marker=marker))

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.model.end_offset

    @rule(was_clean=st.booleans())
    def restart(self, was_clean: bool) -> None:
        if was_clean:
            self.log.close()
        else:
            self.log.active.release()
        self.log = self._opened(was_clean=was_clean)

    @precondition(lambda self: self.model.batches)
    @rule(part=st.floats(0, 0.99))
    def truncate(self, part: float) -> None:
        offset = self.model.batches[int(part * len(self.model.batches))].base_offset
        assert self.log.truncate_to(offset)
        self.model.truncate(offset)

    @rule(
        isolation=st.sampled_from([FetchIsolation.READ_UNCOMMITTED, FetchIsolation.READ_COMMITTED]),
        part=st.floats(0, 1),
    )
    def read(self, isolation: FetchIsolation, part: float) -> None:
        start, end = self.model.start_offset, self.model.end_offset
        offset = start + int(part * (end - start))
        reader = self.log.records(offset, isolation=isolation)
        found = [record for chunk in reader.chunks() for record in chunk.to_records()]
        expected = self.model.records(offset, is_committed=isolation is FetchIsolation.READ_COMMITTED)
        assert [(record.offset, record.timestamp, record.value) for record in found] == expected

    @rule(ago_ms=st.integers(-5, 100))
    def look_for_a_time(self, ago_ms: int) -> None:
        found = self.log.offset_for_timestamp(self.now_ms - ago_ms)
        expected = self.model.first_at_or_after(self.now_ms - ago_ms)
        assert (found and (found.timestamp, found.offset)) == expected

    @invariant()
    def offsets_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.log_start_offset == self.model.start_offset
        assert self.log.log_end_offset == self.log.high_watermark == self.model.end_offset
        assert self.log.last_stable_offset == self.model.last_stable_offset()

    @invariant()
    def producers_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        known = {producer.producer_id: producer for producer in self.log.producers.state}
        for producer_id, expected in self.model.producers().items():
            if producer_id in self.retired:
                continue
            assert known[producer_id].producer_epoch == expected.epoch
            assert known[producer_id].current_txn_first_offset == expected.open_since


LogBesideModel.TestCase.settings = settings(
    max_examples=RUN_COUNT, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


class TestLogBesideModel(LogBesideModel.TestCase):  # type: ignore[misc,name-defined]
    """The runs."""
