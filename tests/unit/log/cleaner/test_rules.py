"""The edges of the cleaner's and the retention's rules, one at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.errors import CorruptRecordError, InvalidRecordError
from logstore.layout.batch import HEADER_SIZE
from logstore.log.cleaner.choice import Cleanable
from logstore.log.cleaner.cleaned_files import CleanedFiles
from logstore.log.cleaner.rewriting import ActiveProducers
from logstore.log.cleaner.rounds import build_offset_map, group_segments
from logstore.log.cleaner.segment_batches import AbortedEntry, CleanedTransactions
from logstore.log.partition_log import PartitionLog
from tests.kafka.cleaning_cases import NOW, lay_out, opened
from tests.naive import legacy
from tests.properties.fold_stories import marker
from tests.support.dice import Dice
from tests.support.encoder import TRANSACTIONAL, Batch, Rec
from tests.support.logs import append_batch, open_partition_log
from tests.unit.log.cleaner.short_logs import clean, described, keyed, opened_case, plain_case

DAY_MS = 86_400_000
PRODUCER = {"producer_id": 1, "producer_epoch": 0}


def discardable(*batches: Batch, aborted: list[AbortedEntry] | None = None) -> tuple[list[bool], list[int]]:
    """Of each batch whether it can go, and the markers of the aborted transactions that are needed."""
    data = np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8)
    transactions = CleanedTransactions()
    transactions.add_aborted(aborted or [])
    found = transactions.discardable(data, scan(data)).tolist()
    return found, [transaction.last_offset for transaction in transactions.needed]


def data_at(offset: int) -> Batch:
    return Batch(offset, [Rec(b"k", b"v")], flags=TRANSACTIONAL, base_sequence=0, **PRODUCER)


def end_at(offset: int, *, is_abort: bool) -> Batch:
    return marker(offset, is_abort=is_abort, coordinator_epoch=0, **PRODUCER)


def test_a_commit_is_needed_by_the_data_before_it_once() -> None:
    batches = [data_at(0), end_at(1, is_abort=False), end_at(2, is_abort=False), data_at(3), end_at(4, is_abort=False)]
    assert discardable(*batches) == ([False, False, True, False, False], [])


def test_an_abort_is_needed_by_the_data_of_its_own_transaction() -> None:
    aborted = [AbortedEntry(0, 1, 1, 2), AbortedEntry(2, 1, 3, 4)]
    batches = [data_at(0), end_at(1, is_abort=True), end_at(3, is_abort=True), data_at(4), end_at(5, is_abort=False)]
    assert discardable(*batches, aborted=aborted) == ([True, False, True, False, False], [1])


def test_an_abort_that_no_index_tells_of_can_go() -> None:
    assert discardable(data_at(0), end_at(1, is_abort=True)) == ([False, True], [])


def test_control_batches_of_other_types_stay() -> None:
    change = Batch(0, [Rec(b"\x00\x00\x00\x02", b"")], flags=0x20)
    emptied = Batch(1, [], flags=0x20)
    assert discardable(change, emptied) == ([False, True], [])


@dataclass
class Index:
    entry_count: int = 0


@dataclass
class FakeSegment:
    """What grouping looks at."""

    base_offset: int
    size: int
    offset_index: Index = field(default_factory=Index)
    time_index: Index = field(default_factory=Index)


def grouped(
    *segments: FakeSegment, size_max: int = 100, index_size_max: int = 240, end: int = 10**6
) -> list[list[int]]:
    groups = group_segments(
        list(segments),  # type: ignore[arg-type]
        size_max=size_max,
        index_size_max=index_size_max,
        first_uncleanable_offset=end,
    )
    return [[segment.base_offset for segment in group] for group in groups]


def test_segments_are_grouped_up_to_the_size_of_one() -> None:
    assert grouped(FakeSegment(0, 60), FakeSegment(5, 40), FakeSegment(9, 1), FakeSegment(12, 200)) == [
        [0, 5],
        [9],
        [12],
    ]
    assert grouped() == []


@pytest.mark.parametrize("kind", ["offset_index", "time_index"])
def test_segments_are_grouped_up_to_the_size_of_an_index(kind: str) -> None:
    count = 30 if kind == "offset_index" else 20
    full, small = {kind: Index(count // 2)}, {kind: Index(1)}
    assert grouped(FakeSegment(0, 1, **full), FakeSegment(5, 1, **full), FakeSegment(9, 1, **small)) == [[0, 5], [9]]


def test_segments_are_grouped_as_far_as_one_can_hold_their_offsets() -> None:
    far = 2**31
    assert grouped(FakeSegment(0, 1), FakeSegment(5, 1), end=far) == [[0, 5]]
    assert grouped(FakeSegment(0, 1), FakeSegment(5, 1), end=far + 1) == [[0], [5]]
    assert grouped(FakeSegment(0, 1), FakeSegment(5, 0), end=far + 1) == [[0, 5]]
    assert grouped(FakeSegment(0, 1), FakeSegment(5, 1), FakeSegment(far, 0)) == [[0, 5, far]]
    assert grouped(FakeSegment(0, 1), FakeSegment(5, 1), FakeSegment(far + 1, 0)) == [[0], [5, far + 1]]
    assert grouped(FakeSegment(0, 1), FakeSegment(far, 1), FakeSegment(far + 5, 1), end=far + 9) == [
        [0],
        [far, far + 5],
    ]


def dated(base_offset: int, timestamp: int, key: bytes = b"k") -> Batch:
    return keyed(base_offset, key, base_timestamp=timestamp, max_timestamp=timestamp)


def test_a_segment_is_cleaned_when_it_is_as_old_as_the_least_lag(tmp_path: Path) -> None:
    case = plain_case([dated(0, NOW)], [dated(1, NOW + 1)], [dated(2, NOW)], **{"min.compaction.lag.ms": "10"})
    log = opened_case(case, tmp_path)
    bounds = [log.cleanable(None, NOW + late).first_uncleanable_offset for late in (9, 10, 11)]
    assert bounds == [0, 1, 2]
    log.close()


def test_batches_without_timestamps_are_never_late(tmp_path: Path) -> None:
    case = plain_case([dated(0, 0)], [dated(1, -1)], [dated(2, NOW)], **{"max.compaction.lag.ms": "10"})
    log = opened_case(case, tmp_path)
    assert log.cleanable(None, NOW).compaction_delay_ms == 0
    log.close()


def test_a_record_without_key_behind_a_full_map_stays(tmp_path: Path) -> None:
    keyless = Batch(3, [Rec(None, b"v")])
    log = opened_case(plain_case([keyed(0, b"a", b"b", b"c"), keyless], [keyed(4, b"z")]), tmp_path)
    assert log.clean(log.cleanable(None, NOW), NOW, buffer_size=80) == 2
    assert (3, 3, 1, None) in described(log)
    log.close()


def test_keys_that_lie_in_markers_are_none_of_the_maps(tmp_path: Path) -> None:
    commit = marker(1, is_abort=False, coordinator_epoch=0, base_timestamp=NOW, max_timestamp=NOW, **PRODUCER)
    log = opened_case(plain_case([data_at(0), commit], [keyed(2, b"z")]), tmp_path)
    assert build_offset_map(log.state, 0, 2, buffer_size=1000)[0].entry_count == 1
    log.close()


def test_a_segment_counts_as_checked_where_all_of_it_was_read(tmp_path: Path) -> None:
    case = plain_case([keyed(0, b"a"), keyed(1, b"b"), keyed(2, b"c")], [keyed(3, b"d")], [keyed(4, b"z")])
    case.config["index.interval.bytes"] = "0"
    log = opened_case(case, tmp_path)
    assert [build_offset_map(log.state, start, 4, buffer_size=1000)[1] for start in (0, 2)] == [{0, 3}, {3}]
    log.close()


def test_a_batch_that_was_cut_is_not_written(tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"a")]), tmp_path)
    cleaned = CleanedFiles(log.state.directory, 0, log.config)
    content = np.frombuffer(keyed(0, b"a").to_bytes(), np.uint8)
    for size in (content.size - 1, HEADER_SIZE - 1):
        with pytest.raises(CorruptRecordError, match="does not end with a whole batch"):
            cleaned.add([content[:size]])
    assert cleaned.size == 0
    cleaned.discard()
    log.close()


def test_old_tombstones_go_by_the_time_of_their_file(tmp_path: Path) -> None:
    """Those of magic 1 have no horizon: they stay as long as their file is not older than the last clean one."""
    found = []
    for lag_ms in (DAY_MS - 1, DAY_MS):
        directory = tmp_path / str(lag_ms) / "t-0"
        config = lay_out(plain_case([keyed(0, b"a")], [keyed(1, b"b")], [keyed(2, b"z")]), directory)
        first, second = (directory / f"{offset:020d}.log" for offset in (0, 1))
        first.write_bytes(legacy.entry(0, legacy.message(1, b"a", None, timestamp=NOW)))
        opened(directory, config, NOW, was_clean=False).close()
        for path, modified_ms in ((first, NOW), (second, NOW + lag_ms)):
            os.utime(path, ns=(0, modified_ms * 1_000_000))
        log = opened(directory, config, NOW, was_clean=True)
        append_batch(log, keyed(0, b"q"))
        log.roll()
        clean(log, NOW, 2)
        found.append([batch[:2] for batch in described(log)][:1])
        log.close()
    assert found == [[(0, 0)], [(1, 1)]]


def test_records_that_do_not_parse_end_the_cleaning(tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"a"), keyed(1, b"a")], [keyed(2, b"z")]), tmp_path)
    wrong = Batch(1, [Rec(b"a", b"v1")], base_timestamp=NOW, stream=b"\x7f" * 12)
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(keyed(0, b"a").to_bytes() + wrong.to_bytes())
    log.close()
    log = opened(tmp_path / "t-0", log.config, NOW, was_clean=True)
    with pytest.raises(InvalidRecordError) as caught:
        clean(log, NOW)
    assert caught.value.offset == 1
    log.close()


def test_snapshots_and_indexes_are_those_of_the_segments_that_are_left(tmp_path: Path) -> None:
    case = plain_case([dated(0, NOW + 7, b"a")], [dated(1, NOW, b"b")], [dated(2, NOW, b"c")], [dated(3, NOW, b"z")])
    log = opened_case(case, tmp_path)
    for base_offset in (1, 2):
        name = f"{base_offset:020d}.snapshot"
        log.state.directory.replace(name, log.state.producers.state.to_snapshot_bytes(), "a test")
        log.state.producers.snapshots[base_offset] = name
    clean(log, NOW)
    first = next(iter(log.state.segments))
    assert log.state.segments.base_offsets == [0, 3]
    assert (first.time_index.timestamps.tolist(), first.time_index.offsets.tolist()) == ([NOW + 7], [0])
    assert sorted(log.state.producers.snapshots) == [3, 4]
    log.remove_deleted_files(NOW)
    assert not {f"{base_offset:020d}.snapshot" for base_offset in (1, 2)} & set(os.listdir(tmp_path / "t-0"))
    log.close()


def retained(place: Path, now_ms: int, **config: str) -> tuple[list[int], PartitionLog]:
    """Base offsets that are left of three segments of one batch each."""
    case = plain_case([dated(0, NOW)], [dated(1, NOW)], [dated(2, NOW)], **{"cleanup.policy": "delete", **config})
    directory = place / "t-0"
    log = opened(directory, lay_out(case, directory), NOW, was_clean=True)
    log.delete_old_segments(now_ms)
    return log.state.segments.base_offsets, log


def test_a_segment_goes_when_it_is_older_than_it_may_be(tmp_path: Path) -> None:
    left, log = retained(tmp_path / "a", NOW + 100, **{"retention.ms": "100"})
    assert left == [0, 1, 2]
    log.close()
    left, log = retained(tmp_path / "b", NOW + 101, **{"retention.ms": "100"})
    assert left == [3]
    assert log.delete_old_segments(NOW + 10 * DAY_MS * 365) == [], "an empty segment does not go"
    assert sorted(log.state.producers.snapshots) == [3]
    log.close()


def test_segments_go_until_no_more_is_left_than_may_be(tmp_path: Path) -> None:
    size = len(dated(0, NOW).to_bytes())
    left, log = retained(tmp_path / "a", NOW, **{"retention.bytes": str(2 * size)})
    assert left == [1, 2]
    log.close()
    left, log = retained(tmp_path / "b", NOW, **{"retention.bytes": str(2 * size + 1)})
    assert left == [0, 1, 2]
    log.close()


def test_the_last_batches_of_producers_are_those_of_their_entries(tmp_path: Path) -> None:
    """Of each are remembered up to five batches, going around, or none since its marker."""
    log = opened_case(plain_case([keyed(0, b"a")]), tmp_path)
    assert not ActiveProducers(log.state).has_last(scan(log.state.active.data)).any()
    dice, sequences = Dice("producers"), dict.fromkeys([9, 3, 2**40, 5, 0], 0)
    for number in range(40):
        producer_id = 9 if number < 7 else dice.choose(list(sequences))
        of = {"producer_id": producer_id, "producer_epoch": producer_id % 4, "base_sequence": sequences[producer_id]}
        count = dice.between(1, 3)
        log.append_records([b"v"] * count, [b"k"] * count, **of)
        sequences[producer_id] += count
    for producer_epoch in (5, 6):
        log.append_end_transaction(77, producer_epoch, is_commit=True, coordinator_epoch=0, transaction_version=1)
    marker_offset, entries, table = log.log_end_offset - 1, list(log.state.producers.state), scan(log.state.active.data)
    is_last = ActiveProducers(log.state).has_last(table)
    found = zip(table.producer_id[is_last].tolist(), table.last_offset[is_last].tolist(), strict=True)
    assert sorted(found) == sorted(
        (entry.producer_id, entry.batches[-1].last_offset if entry.batches else marker_offset) for entry in entries
    )
    assert {0, 5} <= {len(entry.batches) for entry in entries}
    log.close()


def test_small_segments_above_offset_0_are_cleaned_into_one(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0", {"cleanup.policy": "compact"})
    log.truncate_fully_and_start_at(100)
    for key in (b"a", b"b", b"c"):
        log.append_records([b"v"], [key])
        log.roll()
    closed = [segment for segment in log.state.segments if segment.size]
    sizes = {"size_max": 1 << 20, "index_size_max": 1 << 20}
    for end_offset, counts in ((103, [3]), (2**31 + 100, [3]), (2**31 + 101, [2, 1])):
        groups = group_segments(closed, first_uncleanable_offset=end_offset, **sizes)
        assert [len(group) for group in groups] == counts
    log.close()


@pytest.mark.parametrize(
    ("cleanable_size", "delay_ms", "is_worth_it"), [(0, 7, False), (1, 7, True), (1, 0, False), (60, 0, True)]
)
def test_a_log_is_worth_a_cleaning_by_its_share_or_its_age(
    cleanable_size: int, delay_ms: int, is_worth_it: bool
) -> None:
    found = Cleanable(0, 9, 40, cleanable_size, delay_ms, is_checkpoint_wrong=False, min_cleanable_ratio=0.5)
    assert found.is_worth_it is is_worth_it
