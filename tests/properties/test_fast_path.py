"""The fast path of an append and the slow one lead to the same answers and the same files."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import RecordColumns
from logstore.config.topic import parse_config
from logstore.disk.seam import Seam
from logstore.errors import KafkaStorageError, LogstoreError, UsageError
from logstore.folds.producer_update import AppendOrigin
from logstore.log import log_appends
from logstore.log.append.records import RecordsRequest
from logstore.log.append.request import AppendInfo
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec
from tests.kafka.append_cases import NOW, Case, random_case
from tests.support.clock import Clock
from tests.support.fast_and_slow import (
    CONFIGS,
    START_MS,
    assert_a_failed_write_counts_for_nothing,
    open_fast_or_slow,
)
from tests.support.sampling import examples
from tests.support.seams import FullDisk, OtherSystem, WritingSeam

ROOT = Path(__file__).parents[2]
ITEMS = st.one_of(st.none(), st.binary(max_size=40))
STEPS = st.tuples(
    st.lists(ITEMS, min_size=1, max_size=4),
    st.booleans(),
    st.none() | st.integers(970, 1050),
    st.sampled_from([(-1, -1, False), (5, 0, False), (5, 0, True), (6, 1, True), (5, 1, False)]),
    st.sampled_from([0, 0, 0, -1, 3]),  # how far the sequence is from the next one
    # what comes before: nothing, a later leader, a restart, another configuration
    st.sampled_from([0, 0, 1, 2, {"message.timestamp.type": "LogAppendTime"}, {"max.message.bytes": "100"}]),
)


class LazySystem(OtherSystem):
    """Of three calls of the system's write one fails, and one takes a part."""

    call_count = 0

    def system_write(self, descriptor: int, data: bytes) -> int:
        self.call_count += 1
        part = self.call_count % 3
        return os.write(descriptor, data[: len(data) * part // 2]) if part else -1


def run(
    path: Path,
    config: dict[str, str],
    script: list[Any],
    *,
    is_fast: bool,
    codec: Codec | None = None,
    seam: Seam | None = None,
) -> tuple[list[Any], dict[str, bytes]]:
    """Answers of all steps and the files of the closed log; with a codec the batches are built before."""
    clock, answers, epoch = Clock(START_MS), [], 0
    next_sequence: dict[tuple[int, int], int] = {}
    log = open_fast_or_slow(path, config, clock, is_fast=is_fast, seam=seam)
    for values, has_keys, timestamp, (producer_id, producer_epoch, is_transactional), skip, event in script:
        clock.now_ms += 7
        epoch += event == 1
        if event == 2:
            log.close()
            log = open_fast_or_slow(path, config, clock, is_fast=is_fast, seam=seam)
        if isinstance(event, dict):
            log.update_config(parse_config({**config, **event}))
        sequence = max(next_sequence.get((producer_id, producer_epoch), 0) + skip, 0) if producer_id >= 0 else -1
        try:
            info = _append(
                log,
                codec,
                values,
                [b"k"] * len(values) if has_keys else None,
                [clock() if timestamp is None else timestamp] * len(values),
                leader_epoch=epoch,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=sequence,
                is_transactional=is_transactional,
            )
            answers.append(info)
            next_sequence[producer_id, producer_epoch] = sequence + len(values)
        except LogstoreError as error:
            answers.append((type(error), error.message))
        answers.append((log.log_end_offset, log.last_stable_offset, log.high_watermark, log.recovery_point, log.size))
    log.close()
    return answers, {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def _append(
    log: PartitionLog,
    codec: Codec | None,
    values: list[bytes | None],
    keys: list[bytes | None] | None,
    timestamps: list[int],
    *,
    leader_epoch: int,
    **producer: Any,
) -> AppendInfo:
    if codec is None:
        return log.append_records(values, keys, timestamps, leader_epoch=leader_epoch, **producer)
    rows = zip(keys or [None] * len(values), values, timestamps, [()] * len(values), strict=True)
    batch = build_batch(RecordColumns.from_records(rows), codec=codec, **producer)
    return log.append_as_leader(batch, leader_epoch=leader_epoch)


@given(CONFIGS, st.lists(STEPS, max_size=25))
@settings(max_examples=examples(20), deadline=None)
def test_both_paths_are_the_same(config: dict[str, str], script: list[Any]) -> None:
    assert_same(config, script, None)


@given(CONFIGS, st.lists(STEPS, max_size=25), st.sampled_from([Codec.NONE, Codec.LZ4]))
@settings(max_examples=examples(20), deadline=None)
def test_both_paths_of_batches_are_the_same(config: dict[str, str], script: list[Any], codec: Codec) -> None:
    assert_same(config, script, codec)


def assert_same(config: dict[str, str], script: list[Any], codec: Codec | None) -> None:
    with tempfile.TemporaryDirectory() as place:
        for name in ("fast", "slow", "seam", "lazy"):
            Path(place, name).mkdir()
        fast = run(Path(place, "fast", "t-0"), config, script, is_fast=True, codec=codec)
        slow = run(Path(place, "slow", "t-0"), config, script, is_fast=False, codec=codec)
        assert fast == slow
        if codec is None:
            assert run(Path(place, "seam", "t-0"), config, script, is_fast=True, seam=WritingSeam()) == slow
            assert run(Path(place, "lazy", "t-0"), config, script, is_fast=True, seam=LazySystem()) == slow


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=6))
@settings(max_examples=examples(40), deadline=None)
def test_batches_of_all_kinds_are_answered_by_both_paths_alike(numbers: list[int]) -> None:
    cases = [replace(case, origin="CLIENT") if case.origin[0] == "R" else case for case in map(random_case, numbers)]
    with tempfile.TemporaryDirectory() as place:
        answers, contents = [], []
        for name in ("fast", "slow"):
            Path(place, name).mkdir()
            log = open_fast_or_slow(Path(place, name, "t-0"), cases[0].config, Clock(NOW), is_fast=name == "fast")
            answers.append([answer for case in cases for answer in _answers(log, case)])
            contents.append(log.state.segments.last.data.tobytes())
            log.close()
    assert answers[0] == answers[1]
    assert contents[0] == contents[1]


def _answers(log: PartitionLog, case: Case) -> Iterator[object]:
    """What the log makes of the batch, of the leader that wrote last and of the case's."""
    for leader_epoch in (log.state.epochs.entries[-1][0] if log.state.epochs.entries else 0, case.leader_epoch):
        data, before = np.frombuffer(case.data, np.uint8).copy(), case.data
        try:
            yield log.append_as_leader(
                data, leader_epoch=leader_epoch, origin=AppendOrigin[case.origin], transaction_version=1
            )
        except LogstoreError as error:
            yield type(error), str(error), error.java_class, getattr(error, "record_errors", None)
        assert data.tobytes() == before


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True)
    log.append_records([b"first"], producer_id=5, producer_epoch=0, base_sequence=0)
    yield log
    log.close()


def test_the_common_append_goes_the_fast_path(log: PartitionLog) -> None:
    request = RecordsRequest((b"v",), (b"k",), [1000], None, 5, 0, 1, False, 0, None)
    answer = log.fast.try_append(request)
    assert answer == AppendInfo(1, 1, 1000, -1, 0, 1, False)


def test_the_common_batch_goes_the_fast_path(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_appends, "append_slowly", None)
    for sequence in (1, 2):
        rows = [(b"k", b"v", 1000, ())]
        header: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
        answer = log.append_as_leader(build_batch(RecordColumns.from_records(rows), codec=Codec.ZSTD, **header))
        assert answer == AppendInfo(sequence, sequence, 1000, -1, 0, 1, False)


def test_fast_path_notices_what_was_changed_in_between(log: PartitionLog) -> None:
    log.append_records([b"v"], producer_id=5, producer_epoch=0, base_sequence=1)
    log.roll()
    log.append_records([b"w"], producer_id=5, producer_epoch=0, base_sequence=2)
    assert [segment.size for segment in log.state.segments] == [142, 69]
    log.truncate_fully_and_start_at(1)
    assert log.append_records([b"again"], producer_id=5, producer_epoch=0, base_sequence=1).first_offset == 1
    log.update_config(parse_config({"max.message.bytes": "10"}))
    with pytest.raises(LogstoreError, match="exceeds the maximum configured value of 10"):
        log.append_records([b"too large"], producer_id=5, producer_epoch=0, base_sequence=2)


def test_an_epoch_that_a_refused_batch_left_begins_where_the_next_batch_is(tmp_path: Path) -> None:
    """`UnifiedLog.append` notes the epoch of a batch before it looks at its size."""
    log = open_fast_or_slow(tmp_path / "t-0", {"internal.segment.bytes": "200"}, Clock(START_MS), is_fast=True)
    rows = [(None, b"v" * 300, 1000, ())]
    too_large = bytearray(build_batch(RecordColumns.from_records(rows), codec=Codec.NONE))
    too_large[:16] = struct.pack(">qii", 2, len(too_large) - 12, 0)
    with pytest.raises(LogstoreError, match="exceeds the maximum configured segment size"):
        log.append_as_leader(too_large, origin=AppendOrigin.REPLICATION)
    assert log.state.epochs.entries == [(0, 2)]
    log.append_records([b"v"])
    log.append_records([b"v"])
    assert log.state.epochs.entries == [(0, 0)]


def test_a_seam_that_writes_sees_every_write_and_the_systems_own_is_called_by_the_kernel(tmp_path: Path) -> None:
    assert WritingSeam().write_address() != Seam().write_address() != 0
    lazy = LazySystem()
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True, seam=lazy)
    for number in range(7):
        assert log.append_records([b"v"]).last_offset == number
    assert (lazy.call_count, log.state.active.size) == (6, 7 * 69)  # the first one begins the epoch, the slow path
    log.close()


def test_append_counts_what_was_written_though_the_list_grows_meanwhile(tmp_path: Path) -> None:
    """Other threads run while the system writes."""
    values: list[bytes | None] = [b"v"]

    class Meddling(OtherSystem):
        def system_write(self, descriptor: int, data: bytes) -> int:
            values.append(b"w")
            return super().system_write(descriptor, data)

    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True, seam=Meddling())
    log.append_records([b"first"])
    assert log.append_records(values).record_count == 1
    assert (len(values), log.log_end_offset) == (2, 2)
    log.close()


def test_numbers_beyond_64_bits_are_refused_in_words(log: PartitionLog) -> None:
    with pytest.raises(UsageError, match="producer_id has no room in a batch"):
        log.append_records([b"v"], producer_id=2**63, producer_epoch=0, base_sequence=1)
    assert log.log_end_offset == 1


PIPE = """
import os, threading
from pathlib import Path
from tests.support.clock import Clock
from tests.support.fast_and_slow import open_fast_or_slow

log = open_fast_or_slow(Path("t-0"), {}, Clock(), is_fast=True)
log.append_records([b"v"])
reading, writing = os.pipe()
os.dup2(writing, log.state.active.descriptor)
os.close(writing)
reader = threading.Timer(0.1, lambda: [os.read(reading, 1 << 16) for _ in range(20)])
reader.start()
print(log.append_records([bytes(300_000)]).last_offset, flush=True)
os._exit(0)
"""


def test_other_threads_run_while_the_system_writes(tmp_path: Path) -> None:
    """What is written is more than a pipe takes before another thread has read of it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", PIPE]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=True)
    assert done.stdout == b"1\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is there on Linux only")
def test_an_error_of_the_systems_write_ends_the_writing(log: PartitionLog) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log.state.active.descriptor)
    os.close(full)
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0") as refused:
        log.append_records([b"w"], producer_id=5, producer_epoch=0, base_sequence=1)
    assert refused.value.found == "No space left on device; at /dev/full"
    assert (log.log_end_offset, log.state.active.size) == (1, 73)
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.append_records([b"w"], producer_id=5, producer_epoch=0, base_sequence=1)


def test_a_write_that_fails_counts_for_nothing_and_ends_the_writing(tmp_path: Path) -> None:
    seam = FullDisk()
    log = open_fast_or_slow(tmp_path / "t-0", {"index.interval.bytes": "0"}, Clock(START_MS), is_fast=True, seam=seam)
    for sequence in range(3):
        log.append_records([b"v"], producer_id=5, producer_epoch=0, base_sequence=sequence)
    repeat = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 3}
    assert_a_failed_write_counts_for_nothing(log, seam, lambda: log.append_records([b"w"], **repeat))
    producer = log.state.producers.state.get(5)
    assert producer is not None
    assert producer.batches[-1].last_sequence == 2
