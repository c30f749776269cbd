"""The tail of a log, read without a view: the records that a reader in general gets, or None."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from logstore.columns.decoded_records import Record
from logstore.folds.producer_update import AppendOrigin
from logstore.log.partition_log import PartitionLog
from logstore.log.tail import SIZE_MAX
from logstore.model import FetchIsolation
from tests.properties.fold_stories import marker
from tests.support.dice import Dice
from tests.support.encoder import LZ4, TRANSACTIONAL, Batch, Rec
from tests.support.logs import append_batch, open_partition_log, records_of

ISOLATIONS = list(FetchIsolation)[1:]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    opened = open_partition_log(tmp_path / "t-0", {"index.interval.bytes": 200}, requires_verification=False)
    yield opened
    opened.close()


def tail_of(log: PartitionLog, start: int, isolation: FetchIsolation, size_max: int = SIZE_MAX) -> list[Record] | None:
    found = log.tail(start, isolation, check_crc=True, size_max=size_max)
    if found is None:
        return None
    assert found.next_offset == isolation.end_offset(log)
    return list(map(Record._make, zip(*found.to_lists(), strict=True)))


def sent(producer_id: int, sequence: int, *, count: int = 2, codec: int = 0) -> Batch:
    records = [Rec(value=b"%d-%d" % (producer_id, sequence + each), offset_delta=each) for each in range(count)]
    return Batch(
        0,
        records,
        last_offset_delta=count - 1,
        codec=codec,
        flags=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def end(log: PartitionLog, producer_id: int, *, is_abort: bool) -> None:
    made = marker(0, is_abort=is_abort, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0)
    append_batch(log, made, origin=AppendOrigin.COORDINATOR, transaction_version=0)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_tail_has_the_records_of_any_other_read(log: PartitionLog, isolation: FetchIsolation) -> None:
    dice, sequences = Dice(f"tails {isolation.value}"), [0, 0, 0]
    for _ in range(120):
        producer_id = dice.below(3)
        if dice.chance(30):
            end(log, producer_id, is_abort=dice.chance(50))
        elif dice.chance(20):
            log.append_records([b"plain"])
        else:
            append_batch(log, sent(producer_id, sequences[producer_id]))
            sequences[producer_id] += 2
        start = dice.below(log.log_end_offset)
        if start < isolation.end_offset(log):
            assert tail_of(log, start, isolation) == records_of(log, start, isolation=isolation)


def test_what_is_far_from_the_end_is_no_tail(log: PartitionLog) -> None:
    for number in range(3):
        log.append_records([bytes([number]) * 50_000])
    isolation = FetchIsolation.READ_UNCOMMITTED
    assert [tail_of(log, start, isolation) is None for start in range(4)] == [True, True, False, True]
    assert tail_of(log, 2, isolation, size_max=49_000) is None


def test_what_lies_in_another_segment_is_no_tail(log: PartitionLog) -> None:
    log.append_records([b"a"])
    log.roll()
    log.append_records([b"b"])
    isolation = FetchIsolation.READ_UNCOMMITTED
    assert tail_of(log, 0, isolation) is None
    assert [record.value for record in tail_of(log, 1, isolation) or ()] == [b"b"]


@pytest.mark.parametrize("spoil", ["codec", "bytes"])
def test_what_needs_more_than_a_decode_is_no_tail(log: PartitionLog, spoil: str) -> None:
    append_batch(log, sent(0, 0, codec=LZ4 if spoil == "codec" else 0))
    if spoil == "bytes":
        path = log.state.active.path(".log")
        data = np.fromfile(path, np.uint8)
        data[-1] ^= 1
        data.tofile(path)
    assert tail_of(log, 0, FetchIsolation.READ_UNCOMMITTED) is None


def test_a_closed_log_has_no_tail(log: PartitionLog) -> None:
    log.append_records([b"a"])
    log.close()
    assert tail_of(log, 0, FetchIsolation.READ_UNCOMMITTED) is None
