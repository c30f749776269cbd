"""The running log by itself: what appends, rolls, truncations and failures leave, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore.columns.record_columns import RecordColumns
from logstore.config.topic import parse_config
from logstore.errors import (
    CheckpointFormatError,
    DataDirectoryError,
    InconsistentTopicIdError,
    InvalidOffsetError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    ReentrantCallError,
    UsageError,
)
from logstore.folds.producer_update import AppendOrigin
from logstore.log.maintain.roll import roll
from logstore.log.partition_log import PartitionLog
from tests.support.encoder import SOME_TIME, Batch, Rec
from tests.support.logs import append_batch, open_partition_log, records_of
from tests.support.seams import UnsyncedSeam

CONFIG = {"internal.segment.bytes": "1000", "index.interval.bytes": "100"}
TOPIC_ID = "dqEnd-x7SkKckvU0_kJgLQ"

Open = Callable[..., PartitionLog]


class Failing(UnsyncedSeam):
    """Writes, syncs or both fail while `is_full` or `is_broken`."""

    is_full = is_broken = False

    def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> None:
        if self.is_full:
            super().write(descriptor, data[: len(data) // 2])
            raise DataDirectoryError("No space left on device", java_class="java.io.IOException")
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        if self.is_broken:
            raise DataDirectoryError("Input/output error", java_class="java.io.IOException")


@pytest.fixture
def open_log(tmp_path: Path) -> Iterator[Open]:
    logs = []

    def opened(config: dict[str, str] | None = None, **options: Any) -> PartitionLog:
        log = open_partition_log(tmp_path / "t-0", CONFIG if config is None else config, **options)
        logs.append(log)
        return log

    yield opened
    for log in logs:
        log.close()


def batch(count: int = 1, **fields: int) -> np.ndarray:
    records = [Rec(b"key", b"value" * 4, offset_delta=number) for number in range(count)]
    return np.frombuffer(Batch(0, records, last_offset_delta=count - 1, **fields).to_bytes(), np.uint8)


def test_a_log_is_made_written_and_opened_again(open_log: Open, tmp_path: Path) -> None:
    log = open_log(topic_id=TOPIC_ID)
    infos = [log.append_as_leader(batch(2), leader_epoch=3) for _ in range(20)]
    assert [info.first_offset for info in infos] == list(range(0, 40, 2))
    assert log.state.segments.base_offsets == [0, 16, 32]
    assert (log.high_watermark, log.last_stable_offset, log.recovery_point) == (40, 40, 32)
    assert log.state.epochs.entries == [(3, 0)]
    log.close()
    assert log.recovery_point == 40
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == f"version: 0\ntopic_id: {TOPIC_ID}"
    again = open_log(topic_id=TOPIC_ID)
    assert (again.log_end_offset, again.state.segments.base_offsets, again.topic_id) == (40, [0, 16, 32], TOPIC_ID)
    assert again.append_as_leader(batch(), leader_epoch=3).first_offset == 40


def test_another_topics_directory_is_refused(open_log: Open) -> None:
    open_log(topic_id=TOPIC_ID).close()
    with pytest.raises(InconsistentTopicIdError, match="Tried to assign topic ID"):
        open_log(topic_id="AAAAAAAAAAAAAAAAAAAAAQ")


def test_a_topic_id_that_does_not_parse_is_written_anew_where_it_is_known(open_log: Open) -> None:
    log = open_log(topic_id=TOPIC_ID)
    path = Path(log.state.directory.file("partition.metadata"))
    whole = path.read_bytes()
    log.close()
    path.write_bytes(b"version: 0\n")
    with pytest.raises(CheckpointFormatError):
        open_log()
    assert open_log(topic_id=TOPIC_ID).topic_id == TOPIC_ID
    assert path.read_bytes() == whole


def test_a_failed_write_ends_the_writing_and_loses_nothing(open_log: Open, tmp_path: Path) -> None:
    seam = Failing()
    log = open_log(seam=seam)
    log.append_as_leader(batch(3))
    seam.is_full = True
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0") as failed:
        log.append_as_leader(batch())
    assert "No space left on device" in str(failed.value)
    seam.is_full = False
    for change in (
        lambda: log.append_as_leader(batch()),
        log.flush,
        log.roll,
        lambda: log.truncate_fully_and_start_at(0),
    ):
        with pytest.raises(KafkaStorageError, match="already offline"):
            change()
    assert log.log_end_offset == 3
    assert log.state.segments.last.data.tobytes() == (tmp_path / "t-0" / f"{0:020}.log").read_bytes()[: log.size]
    log.close()
    again = open_log(was_clean=False)
    assert (again.log_end_offset, again.append_as_leader(batch()).first_offset) == (3, 3)


def test_a_failed_sync_is_not_tried_again(open_log: Open) -> None:
    seam = Failing()
    log = open_log(seam=seam)
    log.append_as_leader(batch())
    seam.is_broken = True
    with pytest.raises(KafkaStorageError, match="Error while flushing log for t-0"):
        log.flush()
    seam.is_broken = False
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.flush()
    assert log.recovery_point == 0


def test_nothing_is_written_to_a_closed_log(open_log: Open) -> None:
    log = open_log()
    log.close()
    log.close()
    with pytest.raises(KafkaStorageError, match="The memory mapped buffer for log of t-0 is already closed"):
        log.append_as_leader(batch())


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list what is mapped")
def test_a_closed_log_that_is_still_held_keeps_no_file(open_log: Open, tmp_path: Path) -> None:
    log = open_log()
    for _ in range(20):
        log.append_as_leader(batch(3))
    offsets = [offset for segment in log.state.segments for offset in segment.data[:8].tolist()]
    assert len(log.state.segments) > 1
    assert str(tmp_path) in Path("/proc/self/maps").read_text()
    log.close()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    assert [offset for segment in log.state.segments for offset in segment.data[:8].tolist()] == offsets


def test_a_torn_tail_is_cut_even_after_a_clean_shutdown(open_log: Open, tmp_path: Path) -> None:
    log = open_log()
    log.append_as_leader(batch(3))
    log.close()
    with (tmp_path / "t-0" / f"{0:020}.log").open("ab") as file:
        file.write(batch()[:50].tobytes())
    again = open_log()
    assert again.append_as_leader(batch()).first_offset == 3
    again.close()
    assert open_log(was_clean=False).log_end_offset == 4


def test_every_new_segment_is_preallocated_until_it_is_closed(open_log: Open, tmp_path: Path) -> None:
    config = {**CONFIG, "preallocate": "true"}
    first, second = (tmp_path / "t-0" / f"{base:020}.log" for base in (0, 1))
    log = open_log(config)
    assert first.stat().st_size == 1000
    log.append_as_leader(batch())
    log.roll()
    assert first.stat().st_size == log.state.segments.first.size < second.stat().st_size == 1000
    log.close()
    open_log(config)
    assert second.stat().st_size == 0


def test_readers_keep_what_a_restart_drops(open_log: Open) -> None:
    log = open_log()
    for _ in range(5):
        log.append_as_leader(batch())
    data = log.state.segments.last.data
    before = data.tobytes()
    log.truncate_fully_and_start_at(9)
    assert data.tobytes() == before
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.size) == (9, 9, 9, 0)
    assert log.append_as_leader(batch()).first_offset == 9


def test_the_log_starts_no_later_than_the_high_watermark(open_log: Open) -> None:
    log = open_log()
    log.append_as_leader(batch(4))
    with pytest.raises(OffsetOutOfRangeError, match="larger than the high watermark 4"):
        log.increment_log_start_offset(5)
    assert log.increment_log_start_offset(3)
    assert not log.increment_log_start_offset(2)
    assert (log.log_start_offset, log.state.epochs.entries) == (3, [(0, 3)])


def test_threads_append_one_after_the_other(open_log: Open) -> None:
    log = open_log()
    found: list[int] = []

    def write() -> None:
        found.extend(log.append_as_leader(batch()).first_offset for _ in range(50))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(200))


def test_a_segment_is_synced_later_if_somebody_does_it(open_log: Open) -> None:
    tasks: list[Callable[[], None]] = []
    log = open_log(flush_later=tasks.append)
    for _ in range(20):
        log.append_as_leader(batch(2))
    assert (log.state.segments.base_offsets, log.recovery_point, len(tasks)) == ([0, 16, 32], 0, 2)
    tasks[0]()
    assert log.recovery_point == 16
    log.close()
    tasks[1]()  # has nothing left to do
    assert (log.recovery_point, log.state.failure.error) == (40, None)


def test_messages_are_flushed_by_their_number_and_by_time(open_log: Open) -> None:
    now = [SOME_TIME]
    log = open_log({"flush.messages": "3", "flush.ms": "100"}, now_ms=lambda: now[0])
    points = []
    for _ in range(4):
        log.append_as_leader(batch())
        points.append(log.recovery_point)
    assert points == [0, 0, 3, 3]
    log.flush_if_due()
    assert log.recovery_point == 3
    now[0] += 100
    log.flush_if_due()
    assert log.recovery_point == 4


def test_a_clock_that_goes_back_delays_no_flush(open_log: Open) -> None:
    now = [SOME_TIME]
    log = open_log({"flush.ms": "100"}, now_ms=lambda: now[0])
    log.append_as_leader(batch())
    now[0] -= 3_600_000
    log.flush_if_due()
    assert log.recovery_point == 1


def test_a_segment_is_full_sooner_by_the_jitter_drawn_for_it(open_log: Open) -> None:
    limits: list[int] = []

    def draw(limit: int) -> int:
        limits.append(limit)
        return 40

    log = open_log({"segment.ms": "100", "segment.jitter.ms": "50"}, draw_below=draw)
    times = [0, 60, 61, 121, 122]
    bases = []
    for time in times:
        stamps = {"base_timestamp": SOME_TIME + time, "max_timestamp": SOME_TIME + time}
        log.append_as_leader(batch(**stamps))
        bases.append(log.state.segments.base_offsets[-1])
    assert bases == [0, 0, 2, 2, 4]
    assert limits == [50, 50, 50]


def test_a_full_segment_without_timestamps_is_as_old_as_the_process_knows_it(open_log: Open) -> None:
    now = [SOME_TIME]
    log = open_log({"segment.ms": "100"}, now_ms=lambda: now[0])
    for time in (0, 100, 101):
        now[0] = SOME_TIME + time
        log.append_as_leader(batch(base_timestamp=-1, max_timestamp=-1))
    assert log.state.segments.base_offsets == [0, 2]


def test_a_roll_below_the_active_segment_is_refused(open_log: Open) -> None:
    """A replica's segment began behind a gap, and the append was refused then."""
    log = open_log()
    log.append_as_leader(batch())
    roll(log.state, 10)
    with pytest.raises(
        InvalidOffsetError, match=r"with start offset 1 .* lower than start offset of the active segment"
    ):
        log.roll()
    assert (log.state.segments.base_offsets, log.log_end_offset, log.state.failure.error) == ([0, 10], 1, None)
    log.close()
    assert open_log().append_as_leader(batch()).first_offset == 10


def test_a_log_whose_append_was_interrupted_is_opened_again(open_log: Open) -> None:
    class Interrupted(UnsyncedSeam):
        is_interrupted = False

        def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> None:
            super().write(descriptor, data)
            if self.is_interrupted:
                raise KeyboardInterrupt

    seam = Interrupted()
    log = open_log(seam=seam)
    log.append_as_leader(batch())
    seam.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        log.append_as_leader(batch())
    seam.is_interrupted = False
    put_aside = log.state
    assert log.append_as_leader(batch()).first_offset == 2  # behind the interrupted batch, whose bytes were all written
    assert log.state is not put_aside
    assert put_aside.active.descriptor == -1
    log.close()
    assert log.is_closed_in_order


def test_a_log_that_cannot_be_opened_again_takes_no_more_changes(open_log: Open) -> None:
    class Failing(UnsyncedSeam):
        fails = False

        def open_at(self, path: str, position: int) -> int:
            if self.fails:
                raise DataDirectoryError("Input/output error", path=path)
            return super().open_at(path, position)

    seam = Failing()
    log = open_log(seam=seam)
    log.append_as_leader(batch())
    log.state.failure.is_cut_off = seam.fails = True
    with pytest.raises(KafkaStorageError, match="opening again"):
        log.append_as_leader(batch())
    seam.fails = False
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.append_as_leader(batch())
    assert log.view().bounds.log_end_offset == 1  # what was acknowledged can be read
    log.close()
    assert not log.is_closed_in_order
    assert open_log(was_clean=False).log_end_offset == 1


def test_a_configuration_that_keeps_a_log_from_being_opened_again_is_what_is_to_be_changed(open_log: Open) -> None:
    log = open_log({"segment.index.bytes": "100"})
    for _ in range(40):
        log.append_as_leader(batch())
    log.update_config(parse_config({"segment.index.bytes": "100", "index.interval.bytes": "0"}))
    log.state.failure.is_cut_off = True
    with pytest.raises(KafkaStorageError, match="opening again") as told:
        log.append_as_leader(batch())
    assert "raise `segment.index.bytes`" in (told.value.advice or "")


def test_a_wrong_call_does_not_end_the_writing(open_log: Open) -> None:
    log = open_log()
    with pytest.raises(UsageError):
        log.truncate_fully_and_start_at(-1)
    assert [log.append_as_leader(each).first_offset for each in (batch(2), batch())] == [0, 2]


def test_indexes_of_the_active_segment_are_as_the_file_will_be(open_log: Open) -> None:
    log = open_log({"index.interval.bytes": "0"})
    for number in range(5):
        log.append_as_leader(batch(base_timestamp=number, max_timestamp=number))
    active = log.state.segments.last
    offsets, timestamps = active.offset_index.offsets.tolist(), active.time_index.timestamps.tolist()
    assert (offsets, timestamps) == ([1, 2, 3, 4], [1, 2, 3, 4])
    log.close()
    closed = open_log().state.segments.last
    assert closed.offset_index.offsets.tolist() == offsets
    assert closed.time_index.timestamps.tolist() == timestamps


def test_a_flush_later_does_not_mind_what_is_gone(open_log: Open) -> None:
    tasks: list[Callable[[], None]] = []
    log = open_log(flush_later=tasks.append)
    for _ in range(20):
        log.append_as_leader(batch(2))
    log.truncate_fully_and_start_at(5)
    log.append_as_leader(batch(9))
    log.append_as_leader(batch(9))
    for task in tasks:
        task()
    assert log.state.failure.error is None
    assert log.recovery_point <= 5  # nothing behind was synced since


def test_epochs_of_batches_before_a_refused_one_are_on_the_disk(open_log: Open) -> None:
    log = open_log()
    batches = [Batch(0, leader_epoch=3), Batch(-1, last_offset_delta=2, leader_epoch=3)]
    data = b"".join(batch.to_bytes() for batch in batches)
    with pytest.raises(UsageError, match="Received invalid partition leader epoch entry"):
        log.append_as_leader(data, leader_epoch=9, origin=AppendOrigin.REPLICATION)
    assert (Path(log.state.directory.path) / "leader-epoch-checkpoint").read_text() == "0\n1\n3 0\n"
    assert log.log_end_offset == 0


def test_a_replica_s_answer_has_the_offsets_of_its_batch(open_log: Open) -> None:
    """Between it and the end of the log offsets may be missing, as a cleaner leaves it."""
    log = open_log()
    data = np.frombuffer(Batch(10, [Rec(b"", b"")], leader_epoch=9).to_bytes(), np.uint8)
    info = log.append_as_leader(data, leader_epoch=9, origin=AppendOrigin.REPLICATION)
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (10, 10, 11)


class Reentrant:
    """An int for `operator.index` that appends or rolls before it says its value."""

    def __init__(self, inner: Callable[[], object], value: int) -> None:
        self.inner, self.value = inner, value

    def __index__(self) -> int:
        self.inner()
        return self.value

    __int__ = __index__


@pytest.mark.parametrize("inner", ["append", "roll"])
@pytest.mark.parametrize("outer", ["timestamp", "leader_epoch", "base_sequence", "clock"])
def test_code_that_runs_inside_of_an_append_leaves_each_batch_whole(open_log: Open, inner: str, outer: str) -> None:
    calls: list[Callable[[], object]] = []

    def now_ms() -> int:
        if calls:
            calls.pop()()
        return SOME_TIME

    log = open_log(now_ms=now_ms)
    for number in range(3):
        log.append_records([b"before %d" % number])

    is_refused = False

    def interfere() -> None:
        nonlocal is_refused
        try:
            if inner == "append":
                log.append_records([b"inner 0", b"inner 1"])
            else:
                log.roll()
        except ReentrantCallError:
            is_refused = True

    strange = Reentrant(interfere, 0)
    if outer == "timestamp":
        times = (interfere() or SOME_TIME for _ in range(3))  # type: ignore[func-returns-value]
        info = log.append_records([b"a", b"b", b"c"], timestamps=times)  # type: ignore[arg-type]
    elif outer == "leader_epoch":
        info = log.append_records([b"a", b"b", b"c"], leader_epoch=strange)  # type: ignore[arg-type]
    elif outer == "base_sequence":
        info = log.append_records([b"a", b"b", b"c"], producer_id=1, producer_epoch=0, base_sequence=strange)  # type: ignore[arg-type]
    else:
        calls.append(interfere)
        info = log.append_records([b"a", b"b", b"c"])
    records = {record.offset: record.value for record in records_of(log)}
    assert [records[info.first_offset + row] for row in range(3)] == [b"a", b"b", b"c"]
    assert sorted(records) == list(range(log.log_end_offset))
    inner_values = [value for value in records.values() if value is not None and value.startswith(b"inner")]
    assert inner_values == [b"inner 0", b"inner 1"] * (len(inner_values) // 2)
    assert is_refused is (outer in ("timestamp", "clock"))
    assert bool(inner_values) is (inner == "append" and not is_refused)


def test_appends_that_name_no_leader_epoch_have_that_of_the_log(open_log: Open) -> None:
    log = open_log()
    log.leader_epoch = 7
    guard = log.begin_verification(1, sequence=0, producer_epoch=0, supports_epoch_bump=False)
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log.append_records([b"record"], **producer, guard=guard)
    log.append_columns(RecordColumns.from_records([(None, b"column", SOME_TIME, ())]))
    append_batch(log, Batch(0, [Rec(None, b"batch")]))
    log.append_end_transaction(1, 0, is_commit=True, coordinator_epoch=0, transaction_version=0)
    assert log.state.epochs.entries == [(7, 0)]
    assert [record.leader_epoch for record in records_of(log)] == [7, 7, 7]


@pytest.mark.parametrize("offset", [-1, 1 << 63])
def test_a_log_begins_at_no_offset_that_a_file_cannot_have(open_log: Open, offset: int) -> None:
    with pytest.raises(UsageError, match=f"cannot begin at offset {offset}"):
        open_log().truncate_fully_and_start_at(offset)
