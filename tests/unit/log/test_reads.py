"""Reading a running log: what a read sees stays as it was, whatever the writer does next, also from other threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from logstore.config.topic import parse_config
from logstore.disk import mapped
from logstore.disk.open_files import OpenFiles
from logstore.errors import CorruptRecordError, OffsetOutOfRangeError
from logstore.folds.producer_update import AppendOrigin
from logstore.kernels.append.structs import NO_OFFSET
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from logstore.log.segment.log_segment import LogSegment
from logstore.model import FetchIsolation
from tests.properties.fold_stories import marker
from tests.support.encoder import SOME_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.logs import append_batch, open_log, open_partition_log, records_of
from tests.support.seams import UnsyncedSeam

COMMITTED = FetchIsolation.READ_COMMITTED
SEGMENT_SIZE = 4000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    config = {"internal.segment.bytes": SEGMENT_SIZE, "index.interval.bytes": 200}
    opened = open_partition_log(tmp_path / "orders-0", config, requires_verification=False)
    yield opened
    opened.close()


def batch(value: bytes, count: int = 3, *, timestamp: int = SOME_TIME, **fields: int) -> np.ndarray:
    records = [Rec(value=b"%s-%d" % (value, number), offset_delta=number) for number in range(count)]
    made = Batch(0, records, last_offset_delta=count - 1, base_timestamp=timestamp, max_timestamp=timestamp, **fields)
    return np.frombuffer(made.to_bytes(), np.uint8)


def end_transaction(log: PartitionLog, producer_id: int, *, is_abort: bool) -> None:
    made = marker(0, is_abort=is_abort, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0)
    append_batch(log, made, origin=AppendOrigin.COORDINATOR, transaction_version=0)


def values(log: PartitionLog, isolation: FetchIsolation = COMMITTED, start: int | None = None) -> list[bytes | None]:
    return [record.value for record in records_of(log, start, isolation=isolation)]


def test_committed_reads_end_at_the_open_transaction_and_leave_out_aborted_data(log: PartitionLog) -> None:
    kept = {"flags": TRANSACTIONAL, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_leader(batch(b"aborted", 2, producer_id=1, **kept))
    log.append_as_leader(batch(b"plain", 1))
    log.append_as_leader(batch(b"committed", 1, producer_id=2, **kept))
    end_transaction(log, 1, is_abort=True)
    assert (log.last_stable_offset, values(log)) == (3, [b"plain-0"])
    end_transaction(log, 2, is_abort=False)
    assert values(log) == [b"plain-0", b"committed-0"]
    assert values(log, FetchIsolation.READ_UNCOMMITTED) == [b"aborted-0", b"aborted-1", b"plain-0", b"committed-0"]
    fetched = log.read(0, 10_000, COMMITTED)
    assert [tuple(entry) for entry in fetched.aborted_transactions or ()] == [(1, 0)]


def test_batches_between_those_left_out_come_together(log: PartitionLog) -> None:
    for number in range(60):
        fields = {"flags": TRANSACTIONAL, "producer_epoch": 0, "base_sequence": number // 2 * 3}
        log.append_as_leader(batch(b"%d" % number, producer_id=number % 2, **fields))
        if number % 2:
            end_transaction(log, 0, is_abort=True)
            end_transaction(log, 1, is_abort=False)
    for isolation, producer_ids in ((COMMITTED, {1}), (FetchIsolation.READ_UNCOMMITTED, {0, 1})):
        chunks = list(log.records(isolation=isolation).chunks())
        assert len(chunks) == len(log.state.segments)
        assert sum(map(len, chunks)) == len(producer_ids) * 90
        assert {int(each) for chunk in chunks for each in chunk.batches.producer_id[chunk.rows]} == producer_ids


def test_a_read_stays_as_it_was_when_the_log_goes_on(log: PartitionLog) -> None:
    for number in range(30):
        log.append_as_leader(batch(b"%03d" % number))
    segments, bounds = log.view().segments, log.view().bounds
    fetched = log.read(80, 10_000)
    before, content = fetched.data.copy(), values(log)
    for number in range(200):
        log.append_as_leader(batch(b"more%03d" % number))
    log.roll()
    assert (fetched.data == before).all()
    assert [segment.size for segment in segments] != [segment.size for segment in log.state.segments]
    assert bounds.log_end_offset == 90
    assert values(log)[:90] == content
    assert len(values(log)) == 690


def test_an_unchanged_log_is_looked_at_once(log: PartitionLog) -> None:
    log.append_as_leader(batch(b"a"))
    seen = log.view().segments
    assert log.view().segments is seen
    log.append_as_leader(batch(b"b"))
    assert log.view().segments is not seen


def test_reader_keeps_segments_that_are_deleted_meanwhile(log: PartitionLog) -> None:
    for number in range(100):
        log.append_as_leader(batch(b"%03d" % number))
    assert len(log.state.segments) > 2
    reader = log.records(0)
    chunks = reader.chunks()
    first = next(chunks).to_records()
    log.delete_records(200)
    log.delete_old_segments(SOME_TIME)
    with pytest.raises(OffsetOutOfRangeError, match="starting from offset: 200"):
        log.read(0, 100)
    rest = [record for chunk in chunks for record in chunk.to_records()]
    assert [record.offset for record in first + rest] == list(range(300))


def test_a_segment_tells_once_that_it_was_read(log: PartitionLog) -> None:
    """The budget of open files closes what was not read since it asked last."""
    log.append_records([b"x"])
    log.roll()
    segment = log.state.segments.first
    assert isinstance(segment, LogSegment)
    segment.was_used()
    told = [segment.was_used()]
    values(log)
    told += [segment.was_used(), segment.was_used()]
    assert told == [False, True, False]


def test_a_log_counts_once_among_the_open_files_while_it_is_viewed(tmp_path: Path) -> None:
    files = OpenFiles(100)
    settings = LoadSettings(True, 0, 0, SOME_TIME, parse_config({}), open_files=files)
    log = open_log(tmp_path / "t-0", settings, seam=UnsyncedSeam())
    counts = []
    for _ in range(3):
        counts.append([known() for known in files._owners].count(log.state))
        log.records()
    assert counts == [0, 1, 1]
    log.close()


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system which files are mapped")
def test_deleted_segments_keep_no_space_once_nobody_reads_them(log: PartitionLog) -> None:
    for number in range(100):
        log.append_as_leader(batch(b"%03d" % number))
    assert len(values(log)) == 300
    log.delete_records(200)
    assert log.delete_old_segments(SOME_TIME)
    assert log.remove_deleted_files(SOME_TIME + 10**9)
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert [line for line in maps if log.state.directory.path in line and line.endswith("(deleted)")] == []


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_a_segment_that_is_first_read_while_it_gets_another_name(
    log: PartitionLog, is_cleaned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name may be a cleaned segment's the moment after it was chosen, or nobody's."""
    for number in range(100):
        log.append_records([b"%03d" % number], [b"the key"], [SOME_TIME])
    log.roll()
    reader = log.records(0)

    def change() -> None:
        if is_cleaned:
            log.update_config({**log.config, "cleanup.policy": ["compact"]})
            log.clean(log.cleanable(None, SOME_TIME), SOME_TIME)
        else:
            log.delete_records(log.log_end_offset)
            log.delete_old_segments(SOME_TIME)

    open_file, threads, this = os.open, list[threading.Thread](), threading.current_thread()

    def change_then_open(path: str, flags: int, *mode: int) -> int:
        if path.endswith(f"{0:020}.log") and threading.current_thread() is this and not threads:
            threads.append(threading.Thread(target=change))
            threads[0].start()
            threads[0].join(0.5)
        return open_file(path, flags, *mode)

    monkeypatch.setattr(mapped.os, "open", change_then_open)
    found = [record.offset for chunk in reader.chunks() for record in chunk.to_records()]
    threads[0].join()
    assert found == list(range(100))
    assert log.state.segments.first is not None
    assert (log.state.segments.first.size < 4000) is is_cleaned or log.state.segments.first.base_offset > 0


def test_offsets_are_found_by_time(log: PartitionLog) -> None:
    for number in range(50):
        log.append_as_leader(batch(b"%03d" % number, 2, timestamp=SOME_TIME + 1000 * (number % 40)))
    assert log.offset_for_timestamp(SOME_TIME + 1500) == (SOME_TIME + 2000, 4, 0)
    assert log.offset_for_timestamp(-3) == (SOME_TIME + 39_000, 78, 0)
    assert log.offset_for_timestamp(-1) == (-1, 100, 0)
    assert log.offset_for_timestamp(-2) == (-1, 0, 0)
    assert log.offset_for_timestamp(SOME_TIME + 10**9) is None


def test_a_transaction_that_is_open_ends_offsets_by_time(log: PartitionLog) -> None:
    log.append_as_leader(batch(b"plain", 1))
    opened = {"flags": TRANSACTIONAL, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_leader(batch(b"open", 1, timestamp=SOME_TIME + 50, **opened))
    assert log.offset_for_timestamp(SOME_TIME + 1) == (SOME_TIME + 50, 1, 0)
    assert log.offset_for_timestamp(SOME_TIME + 1, COMMITTED) is None
    assert log.offset_for_timestamp(-1, COMMITTED) == (-1, 1, 0)


def test_reader_of_a_range_gives_its_records(log: PartitionLog) -> None:
    for number in range(40):
        log.append_as_leader(batch(b"%03d" % number, 5))
    reader = log.records(7, end_offset=133)
    chunks = list(reader.chunks())
    offsets = np.concatenate([chunk.offset for chunk in chunks])
    assert offsets.tolist() == list(range(7, 133))
    assert reader.position == 133
    columns = chunks[0].columns()
    assert columns.values.value(0) == b"001-2"
    assert np.shares_memory(columns.values.data, log.view().segments.floor(7).data)  # type: ignore[union-attr]


def test_a_wrong_checksum_is_told_after_the_records_before_it(log: PartitionLog) -> None:
    for number in range(3):
        log.append_as_leader(batch(b"%03d" % number))
    path = Path(log.state.directory.path, f"{0:020}.log")
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    reader, found = log.records(), []
    with pytest.raises(
        CorruptRecordError, match="Record batch for partition orders-0 at offset 6 is invalid"
    ) as caught:
        found += [record.offset for chunk in reader.chunks() for record in chunk.to_records()]
    assert (reader.position, caught.value.offset) == (6, 6)
    unchecked = log.records(check_crc=False)
    assert [offset for chunk in unchecked.chunks() for offset in chunk.offset] == list(range(9))


def test_readers_beside_a_writer_see_whole_batches_one_after_the_other(log: PartitionLog) -> None:
    is_over = threading.Event()
    problems: list[str] = []
    counts = [0, 0]

    def follow(number: int) -> None:
        reader_position, values_seen = 0, 0
        while not (is_over.is_set() and reader_position == log.high_watermark):
            reader = log.records(reader_position, isolation=(FetchIsolation.READ_UNCOMMITTED, COMMITTED)[number])
            for chunk in reader.chunks():
                offsets = chunk.offset
                if offsets[0] != reader_position or (np.diff(offsets) != 1).any():
                    problems.append(f"at {reader_position}: {offsets}")
                values_seen += len(chunk)
                reader_position = chunk.next_offset
        counts[number] = values_seen

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for number in range(600):
        log.append_as_leader(batch(b"%03d" % number, 1 + number % 7))
    is_over.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert counts == [log.log_end_offset] * 2
    assert len(log.state.segments) > 10


def test_the_leader_epoch_of_a_commit_waits_for_no_writer(log: PartitionLog) -> None:
    log.append_records([b"a"], leader_epoch=3)
    log.append_records([b"b"], leader_epoch=5)
    with ThreadPoolExecutor(1) as pool, log.lock:
        assert [pool.submit(log.leader_epoch_before, offset).result(30) for offset in range(4)] == [None, 3, 5, None]


def test_records_come_as_arrow_columns(log: PartitionLog) -> None:
    pytest.importorskip("pyarrow")
    for number in range(20):
        log.append_as_leader(batch(b"%03d" % number))
    (chunk,) = log.records(4).chunks()
    for is_view in (False, True):
        arrow = chunk.to_arrow(is_view=is_view)
        assert arrow.column("offset").to_pylist() == list(range(4, 60))
        assert arrow.column("value").to_pylist()[:3] == [b"001-1", b"001-2", b"002-0"]


class _Between:
    """Stands for a log's struct; calls a function between the first read of an offset and the second."""

    def __init__(self, struct: object, call: Callable[[], object]) -> None:
        self._struct, self._call = struct, call

    def __getattr__(self, name: str) -> object:
        value = getattr(self._struct, name)
        call, self._call = self._call, lambda: None
        call()
        return value


def test_an_append_between_two_reads_does_not_move_the_stable_end_behind_its_transaction(log: PartitionLog) -> None:
    log.append_as_leader(batch(b"plain", 2))
    opening = batch(b"open", 3, producer_id=1, flags=TRANSACTIONAL, producer_epoch=0, base_sequence=0)
    struct = log.state.struct
    log.state.struct = _Between(struct, lambda: log.append_as_leader(opening))  # type: ignore[assignment]
    stable = log.last_stable_offset
    log.state.struct = struct
    assert (stable, log.last_stable_offset, log.high_watermark) == (2, 2, 5)


class _FinishingLock:
    """Stands for a log's lock: whoever gets it finds that the writer before has finished its change."""

    def __init__(self, finish: Callable[[], object]) -> None:
        self._finish = finish

    def __enter__(self) -> bool:
        self._finish()
        return True

    def __exit__(self, *_: object) -> None:
        pass


def test_the_stable_end_waits_for_the_append_that_is_half_done(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append_as_leader(batch(b"plain", 2))
    struct = log.state.struct
    struct.high_watermark = 5  # a processor may show this store of a kernel before the one of the first unstable offset

    def finish() -> None:
        struct.first_unstable_offset = 2

    monkeypatch.setattr(log, "lock", _FinishingLock(finish))
    assert log.last_stable_offset == 2
    monkeypatch.undo()
    struct.high_watermark, struct.first_unstable_offset = 2, NO_OFFSET


def test_views_between_appends_do_not_map_the_file_anew(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    mapping = mapped._Mapping

    def counted(descriptor: int, size: int) -> object:
        made.append(size)
        return mapping(descriptor, size)

    monkeypatch.setattr(mapped, "_Mapping", counted)
    views = []
    for number in range(20):
        log.append_records([b"%d" % number])
        views.append(log.view())
    assert len(made) == 1
    assert made[0] > log.size
    assert [[chunk.to_records()[-1].value for chunk in view.records().chunks()] for view in views] == [
        [b"%d" % number] for number in range(20)
    ]
