"""The fast path of what begins and ends transactions and the slow one lead to the same answers and files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.errors import KafkaStorageError, LogstoreError
from logstore.log import log_appends
from logstore.log.append.fast import FastPath
from logstore.log.append.request import AppendInfo
from logstore.log.partition_log import PartitionLog
from tests.support.clock import Clock
from tests.support.fast_and_slow import (
    CONFIGS,
    START_MS,
    assert_a_failed_write_counts_for_nothing,
    open_fast_or_slow,
)
from tests.support.sampling import examples
from tests.support.seams import FullDisk

MARKERS = st.fixed_dictionaries(
    {
        "producer_id": st.sampled_from([5, 5, 6, -1]),
        "producer_epoch": st.sampled_from([0, 0, 1, 2, 32767, 40_000]),
        "is_commit": st.booleans(),
        "coordinator_epoch": st.sampled_from([0, 0, 1, -3, 2**31]),
        "transaction_version": st.sampled_from([0, 1, 2, 2, 3]),
        "leader_epoch": st.sampled_from([0, 0, 0, 1]),
    }
)
RECORDS = st.tuples(st.sampled_from([5, 6, -1]), st.booleans(), st.sampled_from([0, 0, 1]))
EVENTS = st.sampled_from(["roll", "restart", "verify"])
VERIFIED = st.tuples(
    st.just("verified"),
    st.sampled_from([5, 5, 6]),
    st.sampled_from([0, 0, 1]),  # epoch
    st.sampled_from([0, 0, 0, 1]),  # how far the sequence is from the one asked for
    st.booleans(),  # epochs are bumped
    st.sampled_from([True, True, False]),  # the guard is shown
)
PRODUCER_IDS = (5, 6)
SCRIPTS = st.lists(st.one_of(MARKERS, RECORDS, VERIFIED, VERIFIED, EVENTS), max_size=30)


def run(path: Path, config: dict[str, str], script: list[Any], *, is_fast: bool) -> tuple[list[Any], dict[str, bytes]]:
    """Answers of all steps and the files of the closed log."""
    clock, answers = Clock(START_MS), []
    sequences: dict[tuple[int, int], int] = {}
    log = _opened(path, config, clock, is_fast=is_fast)
    for step in script:
        clock.now_ms += 7
        if step == "restart":
            log.close()
            log = _opened(path, config, clock, is_fast=is_fast)
            continue
        try:
            answers.append(_do(log, step, sequences))
        except LogstoreError as error:
            answers.append((type(error), error.message))
        answers.append((log.log_end_offset, log.last_stable_offset, log.high_watermark, log.recovery_point, log.size))
        state = log.state.producers.state
        asked = {one: state.verification.get(one) for one in PRODUCER_IDS}
        waiting = {one: replace(known, guard=None) for one, known in asked.items() if known is not None}  # type: ignore[arg-type]
        assert len(waiting) == len(state.verification)
        answers.append((log.first_unstable_offset, state.map_end_offset, list(state), waiting))
    log.close()
    return answers, {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def _opened(path: Path, config: dict[str, str], clock: Clock, *, is_fast: bool) -> PartitionLog:
    log = open_fast_or_slow(path, config, clock, is_fast=is_fast)
    log.state.producers.state.requires_verification = True
    return log


def _do(log: PartitionLog, step: Any, sequences: dict[tuple[int, int], int]) -> object:
    if isinstance(step, dict):
        return log.append_end_transaction(**step)
    if step == "roll":
        return log.roll()
    if step == "verify":
        guard = log.begin_verification(5, sequence=0, producer_epoch=1, supports_epoch_bump=True)
        return guard is None
    if step[0] == "verified":
        return _append_verified(log, *step[1:], sequences)
    producer_id, is_transactional, epoch = step
    sequence = sequences.get((producer_id, epoch), 0) if producer_id >= 0 else -1
    info = log.append_records(
        [b"v"],
        [b"k"],
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=sequence,
        is_transactional=is_transactional and producer_id >= 0,
    )
    sequences[producer_id, epoch] = sequence + 1
    return info


def _append_verified(
    log: PartitionLog,
    producer_id: int,
    epoch: int,
    skip: int,
    supports_epoch_bump: bool,
    is_shown: bool,
    sequences: dict[tuple[int, int], int],
) -> AppendInfo:
    """The first batch of a transaction, or another one."""
    sequence = sequences.get((producer_id, epoch), 0)
    guard = log.begin_verification(
        producer_id, sequence=sequence, producer_epoch=epoch, supports_epoch_bump=supports_epoch_bump
    )
    info = log.append_records(
        [b"v"],
        [b"k"],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence + skip,
        is_transactional=True,
        guard=guard if is_shown else None,
    )
    sequences[producer_id, epoch] = sequence + skip + 1
    return info


@given(CONFIGS, SCRIPTS)
@settings(max_examples=examples(60), deadline=None)
def test_both_paths_are_the_same(config: dict[str, str], script: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        for name in ("fast", "slow"):
            Path(place, name).mkdir()
        fast = run(Path(place, "fast", "t-0"), config, script, is_fast=True)
        slow = run(Path(place, "slow", "t-0"), config, script, is_fast=False)
    assert fast == slow


def write(log: PartitionLog, sequence: int) -> AppendInfo:
    return log.append_records([b"v"], producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def end(log: PartitionLog, *, is_commit: bool = True) -> AppendInfo:
    return log.append_end_transaction(5, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=1)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True)
    write(log, 0)
    yield log
    log.close()


def test_a_commit_goes_the_fast_path(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_appends, "append_slowly", None)
    for offset in range(1, 20, 2):
        assert end(log) == AppendInfo(offset, offset, 1000, -1, 0, 1, False)
        assert log.last_stable_offset == offset + 1
        write(log, (offset + 1) // 2)
    assert log.state.active.transaction_index.entry_count == 0


def test_an_abort_is_indexed(log: PartitionLog) -> None:
    for offset in range(1, 20, 2):
        assert end(log, is_commit=False).first_offset == offset
        assert log.last_stable_offset == offset + 1
        write(log, (offset + 1) // 2)
    assert log.state.active.transaction_index.entry_count == 10


def test_the_first_batch_of_a_transaction_goes_the_fast_path(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(log)
    log.state.producers.state.requires_verification = True
    log.state.invalidate()
    log.append_records([b"bind"])
    monkeypatch.setattr(log_appends, "append_slowly", None)
    monkeypatch.setattr(FastPath, "_bind", None)
    for sequence in range(1, 4):
        guard = log.begin_verification(5, sequence=sequence, producer_epoch=0, supports_epoch_bump=False)
        assert guard is not None
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
        assert log.append_records([b"v"], guard=guard, **producer).last_offset == 2 * sequence + 1
        assert len(log.state.producers.state.verification) == 0
        end(log)


def test_a_transaction_from_before_a_restart_goes_the_fast_path_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True)
    log.append_records([b"before"])
    write(log, 0)
    log.close()
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True)
    assert (log.first_unstable_offset, log.last_stable_offset) == (1, 1)
    monkeypatch.setattr(log_appends, "append_slowly", None)
    log.append_records([b"v"])
    assert (log.first_unstable_offset, log.last_stable_offset) == (1, 1)
    log.roll()
    log.state.follow_end()
    assert (log.first_unstable_offset, log.last_stable_offset) == (1, 1)
    assert end(log).first_offset == 3
    assert (log.first_unstable_offset, log.last_stable_offset) == (None, 4)
    log.close()


def test_a_transaction_that_began_below_the_log_start_holds_the_batch_there(tmp_path: Path) -> None:
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=True)
    write(log, 0)
    log.append_records([b"a", b"b", b"c"])
    log.append_records([b"behind"])
    log.increment_log_start_offset(2)
    assert (log.first_unstable_offset, log.last_stable_offset) == (1, 1), "the batch that holds offset 2"
    log.append_records([b"more"])
    assert (log.first_unstable_offset, log.last_stable_offset) == (1, 1)
    assert end(log).first_offset == 6
    assert (log.first_unstable_offset, log.last_stable_offset) == (None, 7)
    log.close()


def test_a_write_that_fails_counts_for_nothing_and_ends_the_writing(tmp_path: Path) -> None:
    seam = FullDisk()
    log = open_fast_or_slow(tmp_path / "t-0", {"index.interval.bytes": "0"}, Clock(START_MS), is_fast=True, seam=seam)
    write(log, 0)
    assert_a_failed_write_counts_for_nothing(log, seam, lambda: end(log))
    producer = log.state.producers.state.get(5)
    assert producer is not None
    assert producer.current_txn_first_offset == 0


@pytest.mark.parametrize("is_fast", [True, False])
def test_an_index_of_aborted_transactions_that_cannot_be_written_ends_the_writing(
    is_fast: bool, tmp_path: Path
) -> None:
    seam = FullDisk()
    log = open_fast_or_slow(tmp_path / "t-0", {}, Clock(START_MS), is_fast=is_fast, seam=seam)
    write(log, 0)
    seam.writes_left = 1
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0"):
        end(log, is_commit=False)
    assert (log.log_end_offset, log.last_stable_offset) == (2, 0)
    with pytest.raises(KafkaStorageError, match="already offline"):
        end(log, is_commit=False)
