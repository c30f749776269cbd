"""The cleaner and retention on logs small enough to say what must become of each record."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.columns.batch_table import Int64Array, scan
from logstore.columns.record_table import RecordTable
from logstore.errors import (
    CorruptRecordError,
    LogCleaningAbortedError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UsageError,
)
from logstore.log.cleaner.offset_map import OffsetMap
from tests.kafka.cleaning_cases import NOW, example_case, lay_out, opened
from tests.naive import legacy
from tests.support.encoder import TRANSACTIONAL, Batch, Rec
from tests.support.logs import append_batch, records_of
from tests.unit.log.cleaner.short_logs import CLEAN_TIME, clean, described, keyed, opened_case, plain_case

HORIZON = CLEAN_TIME + 1000


def test_the_example_is_cleaned_as_kafka_cleans_it(tmp_path: Path) -> None:
    log = opened_case(example_case(), tmp_path)
    assert clean(log, CLEAN_TIME) == 12
    assert described(log) == [
        (0, 1, 0, None),  # the last batch of a producer, and so its marker stays
        (2, 2, 1, None),
        (3, 3, 0, None),
        (4, 4, 1, None),
        (5, 7, 3, HORIZON),  # holds a tombstone
        (9, 9, 0, None),
        (10, 11, 2, None),
        (12, 12, 1, None),
    ]
    index = next(iter(log.state.segments)).transaction_index
    assert (index.producer_ids.tolist(), index.first_offsets.tolist(), index.last_offsets.tolist()) == ([2], [3], [4])
    log.close()


def test_a_tombstone_goes_when_its_horizon_has_come(tmp_path: Path) -> None:
    log = opened_case(example_case(), tmp_path)
    clean(log, CLEAN_TIME)
    dirty = [[segment.base_offset for segment in log.state.segments][-1]]
    append_batch(log, keyed(0, b"q"))
    log.roll()
    assert clean(log, HORIZON - 1, dirty[0]) == 14
    assert (5, 7, 3, HORIZON) in described(log)
    append_batch(log, keyed(0, b"r"))
    log.roll()
    clean(log, HORIZON, 14)
    assert (5, 7, 2, HORIZON) in described(log)
    log.close()


def test_markers_without_data_get_a_horizon_and_then_go(tmp_path: Path) -> None:
    """Once their producers are forgotten: first the data goes, then the marker is dated, then it goes too."""
    log = opened_case(example_case(), tmp_path)
    log.state.producers.state.clear()
    checkpoint, found = None, []
    for now_ms in (CLEAN_TIME, CLEAN_TIME, HORIZON - 1, HORIZON):
        checkpoint = clean(log, now_ms, checkpoint)
        found.append([batch for batch in described(log) if batch[0] < 5])
        append_batch(log, keyed(0, b"q"))
        log.roll()
    assert found == [
        [(2, 2, 1, None), (4, 4, 1, None)],
        [(2, 2, 1, HORIZON), (4, 4, 1, HORIZON)],
        [(2, 2, 1, HORIZON), (4, 4, 1, HORIZON)],
        [],
    ]
    assert not next(iter(log.state.segments)).transaction_index.entry_count
    log.close()


def test_files_are_deleted_later_and_readers_keep_what_they_have(tmp_path: Path) -> None:
    case = example_case()
    case.config["file.delete.delay.ms"] = "60000"
    log = opened_case(case, tmp_path)
    old = next(iter(log.state.segments))
    before = old.data.tobytes()
    clean(log, CLEAN_TIME)
    assert log.remove_deleted_files(CLEAN_TIME + 59_999) == []
    assert old.data.tobytes() == before != next(iter(log.state.segments)).data.tobytes()
    assert old.place_of(5) is None
    assert (tmp_path / "t-0" / "00000000000000000000.log.deleted").exists()
    removed = log.remove_deleted_files(CLEAN_TIME + 60_000)
    assert "00000000000000000000.log.deleted" in removed
    assert not [name for name in os.listdir(tmp_path / "t-0") if name.endswith(".deleted")]
    log.close()


def test_the_time_of_a_cleaned_segment_is_that_of_its_last_source(tmp_path: Path) -> None:
    log = opened_case(example_case(), tmp_path)
    times = [log.state.directory.modified_ms(segment.file_name(".log")) for segment in log.state.segments]
    clean(log, CLEAN_TIME)
    assert log.state.segments.base_offsets == [0, 5, 12]
    assert log.state.directory.modified_ms(f"{0:020d}.log") == times[1] != times[0]
    log.close()


def test_nothing_behind_an_open_transaction_or_of_the_active_segment_is_cleaned(tmp_path: Path) -> None:
    is_open = keyed(2, b"b", producer_id=1, producer_epoch=0, base_sequence=0, flags=TRANSACTIONAL)
    case = plain_case([keyed(0, b"a", b"a")], [is_open], [keyed(3, b"a")], [keyed(4, b"a")])
    log = opened_case(case, tmp_path)
    chosen = log.cleanable(None, CLEAN_TIME)
    assert (chosen.first_dirty_offset, chosen.first_uncleanable_offset) == (0, 2)
    assert log.clean(chosen, CLEAN_TIME) == 2
    assert described(log)[0] == (0, 1, 1, None)
    assert described(log)[1:] == [(2, 2, 1, None), (3, 3, 1, None), (4, 4, 1, None)]
    log.close()


def test_records_without_room_in_a_small_map_are_left_for_the_next_round(tmp_path: Path) -> None:
    case = plain_case([keyed(0, b"a", b"b", b"c", b"d", b"a")], [keyed(5, b"b", b"c", b"a")], [keyed(8, b"z")])
    log = opened_case(case, tmp_path)
    assert log.clean(log.cleanable(None, CLEAN_TIME), CLEAN_TIME, buffer_size=100) == 3
    assert log.clean(log.cleanable(3, CLEAN_TIME), CLEAN_TIME) == 8
    assert [batch[:3] for batch in described(log)] == [(0, 4, 1), (5, 7, 3), (8, 8, 1)]
    log.close()


def test_a_map_without_room_for_a_key_is_refused() -> None:
    with pytest.raises(UsageError, match="too small to fit in even a single message"):
        OffsetMap(10, buffer_size=30)


def searches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The offsets of all records whose keys are searched for from now on."""
    searched: list[list[int]] = []
    find = OffsetMap.find

    def told(offset_map: OffsetMap, records: RecordTable) -> Int64Array:
        searched.append(records.offset.tolist())
        return find(offset_map, records)

    monkeypatch.setattr(OffsetMap, "find", told)
    return searched


@pytest.mark.parametrize(("checkpoint", "expected"), [(None, []), (2, [[0, 1]])], ids=["in the map", "cleaned before"])
def test_only_records_that_did_not_go_into_the_map_are_searched_for(
    checkpoint: int | None, expected: list[list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = searches(monkeypatch)
    log = opened_case(plain_case([keyed(0, b"a", b"b")], [keyed(2, b"a", b"c")], [keyed(4, b"z")]), tmp_path)
    assert clean(log, CLEAN_TIME, checkpoint) == 4
    assert [batch[:3] for batch in described(log)] == [(0, 1, 1), (2, 3, 2), (4, 4, 1)]
    assert searched == expected
    log.close()


def test_records_without_a_key_go(tmp_path: Path) -> None:
    keyless = Batch(0, [Rec(b"a", b"1"), Rec(None, b"2", offset_delta=1)], 1)
    log = opened_case(plain_case([keyless], [keyed(2, b"z")]), tmp_path)
    assert clean(log, CLEAN_TIME) == 2
    assert [record.key for record in records_of(log)] == [b"a", b"z"]
    log.close()


def test_a_damaged_batch_ends_the_cleaning_and_changes_nothing(tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"a", b"a")], [keyed(2, b"a")], [keyed(3, b"z")]), tmp_path)
    path = tmp_path / "t-0" / f"{2:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    before = sorted(os.listdir(tmp_path / "t-0"))
    with pytest.raises(CorruptRecordError, match="stored crc") as caught:
        clean(log, CLEAN_TIME)
    assert (caught.value.path, caught.value.position, caught.value.offset) == (str(path), 0, 2)
    assert sorted(os.listdir(tmp_path / "t-0")) == before
    log.close()


def test_messages_of_the_old_magics_become_batches(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    case = plain_case([keyed(0, b"a")], [keyed(4, b"z")])
    config = lay_out(case, directory)
    old = [legacy.entry(0, legacy.message(0, b"a", b"1")), legacy.entry(1, legacy.message(1, b"a", b"2", timestamp=77))]
    old += [legacy.entry(2, legacy.message(1, b"b", None, timestamp=78))]
    (directory / f"{0:020d}.log").write_bytes(b"".join(old))
    opened(directory, config, NOW, was_clean=False).close()
    log = opened(directory, config, NOW, was_clean=True)
    clean(log, CLEAN_TIME)
    table = scan(next(iter(log.state.segments)).data, check_crc=True)
    assert (table.magic == 2).all()
    assert (table.is_valid == 1).all()
    assert table.base_offset.tolist() == [1, 2]
    assert table.max_timestamp.tolist() == [77, 78]
    log.close()


def test_a_late_log_is_cleaned_whatever_its_ratio(tmp_path: Path) -> None:
    case = plain_case([keyed(0, b"a")], [keyed(1, b"z")], **{"max.compaction.lag.ms": "1000"})
    case.config["min.cleanable.dirty.ratio"] = "1"
    log = opened_case(case, tmp_path)
    assert not log.cleanable(None, NOW + 1000).is_worth_it
    late = log.cleanable(None, NOW + 1001)
    assert (late.is_worth_it, late.compaction_delay_ms, late.cleanable_ratio) == (True, 1, 1.0)
    assert not log.cleanable(1, NOW + 5000).is_worth_it
    log.close()


@pytest.mark.parametrize(("checkpoint", "first_dirty"), [(None, 0), (1, 1), (2, 2), (3, 0), (-1, 0)])
def test_a_checkpoint_outside_of_the_log_is_reset(checkpoint: int | None, first_dirty: int, tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"a")], [keyed(1, b"z")]), tmp_path)
    chosen = log.cleanable(checkpoint, CLEAN_TIME)
    assert chosen.first_dirty_offset == first_dirty
    assert chosen.is_checkpoint_wrong == (checkpoint not in (None, first_dirty))
    log.close()


def test_records_are_deleted_up_to_an_offset(tmp_path: Path) -> None:
    case = plain_case([keyed(0, b"a", b"b")], [keyed(2, b"c")], **{"cleanup.policy": "compact,delete"})
    log = opened_case(case, tmp_path)
    assert log.delete_records(1) == 1
    assert log.delete_old_segments(NOW) == []
    assert log.delete_records(0) == 1
    assert log.delete_records(-1) == 3
    assert [deleted.base_offset for deleted in log.delete_old_segments(NOW)] == [0]
    with pytest.raises(OffsetOutOfRangeError, match="The offset -2 for partition t-0 is not valid"):
        log.delete_records(-2)
    with pytest.raises(OffsetOutOfRangeError, match="larger than the high watermark 3"):
        log.delete_records(4)
    log.close()


def test_records_of_a_log_that_is_only_compacted_are_not_deleted(tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"a")]), tmp_path)
    with pytest.raises(PolicyViolationError, match="Records of partition t-0 can not be deleted due to the configured"):
        log.delete_records(1)
    assert log.log_start_offset == 0
    log.close()


def test_old_segments_say_why_they_went(tmp_path: Path) -> None:
    case = plain_case(
        [keyed(0, b"a")], [keyed(1, b"b")], [keyed(2, b"c")], **{"cleanup.policy": "delete", "retention.ms": "1000"}
    )
    case.segments[2] = [replace(case.segments[2][0], base_timestamp=NOW + 5000, max_timestamp=NOW + 5000)]
    log = opened_case(case, tmp_path)
    log.increment_log_start_offset(1)
    deleted = log.delete_old_segments(NOW + 1001)
    assert [(each.base_offset, each.reason) for each in deleted] == [
        (0, "log start offset 1 breach"),
        (1, "log retention time 1000ms breach"),
    ]
    assert (log.log_start_offset, log.state.segments.base_offsets) == (2, [2])
    assert [each.base_offset for each in log.delete_old_segments(NOW + 6001)] == [2]
    assert (log.log_start_offset, log.state.segments.base_offsets, log.size) == (3, [3], 0)
    log.close()


def test_a_segment_with_offsets_too_far_apart_is_split_before_it_is_cleaned(tmp_path: Path) -> None:
    """As cleaners of long ago left them; a clean start does not look for them."""
    log = opened_case(plain_case([keyed(0, b"a"), keyed(5, b"b", b"a")], [keyed(2**31 + 10, b"z")]), tmp_path)
    log.close()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.write_bytes(keyed(0, b"a").to_bytes() + keyed(2**31 + 5, b"b", b"a").to_bytes())
    log = opened(tmp_path / "t-0", log.config, NOW, was_clean=True)
    with pytest.raises(LogCleaningAbortedError, match="Caught segment overflow error during cleaning"):
        clean(log, CLEAN_TIME)
    assert log.state.segments.base_offsets == [0, 2**31 + 5, 2**31 + 10]
    assert clean(log, CLEAN_TIME) == 2**31 + 10
    assert [batch[:3] for batch in described(log)] == [
        (2**31 + 5, 2**31 + 6, 2),
        (2**31 + 10, 2**31 + 10, 1),
    ]
    log.close()


def test_appends_and_reads_go_on_while_a_log_is_cleaned(tmp_path: Path) -> None:
    case = plain_case([keyed(0, b"0")], **{"internal.segment.bytes": "2000", "file.delete.delay.ms": "0"})
    log = opened_case(case, tmp_path)
    is_done, problems = threading.Event(), []

    def clean_on() -> None:
        checkpoint = None
        while not is_done.is_set():
            checkpoint = clean(log, CLEAN_TIME, checkpoint)
            log.remove_deleted_files(CLEAN_TIME)

    def read_on() -> None:
        while not is_done.is_set():
            found = [record.offset for record in records_of(log)]
            if found != sorted(set(found)) or not found:
                problems.append(found)

    threads = [ThreadPoolExecutor(1).submit(work) for work in (clean_on, read_on)]
    latest = {b"0": b"v0"}
    for number in range(1500):
        key, value = b"%d" % (number * 7 % 31), b"value %d" % number
        log.append_records([value], [key])
        latest[key] = value
    is_done.set()
    for thread in threads:
        thread.result()
    log.roll()
    clean(log, CLEAN_TIME)
    records = records_of(log)
    assert problems == []
    assert {record.key: record.value for record in records} == latest
    assert len(records) == len(latest)
    log.close()
