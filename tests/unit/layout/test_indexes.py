"""Offset, time and transaction indexes: entries, lookups, and what Kafka calls corrupt."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from logstore.errors import CorruptIndexError
from logstore.layout.offset_index import OffsetIndex, parse_offset_index
from logstore.layout.time_index import TimeIndex, parse_time_index
from logstore.layout.transaction_index import TransactionIndex, parse_transaction_index


def offset_index(*entries: tuple[int, int], tail: bytes = b"", base_offset: int = 100) -> OffsetIndex:
    data = b"".join(struct.pack(">ii", *entry) for entry in entries) + tail
    return parse_offset_index(data, base_offset=base_offset, path="/d/100.index")


def time_index(*entries: tuple[int, int], tail: bytes = b"") -> TimeIndex:
    data = b"".join(struct.pack(">qi", *entry) for entry in entries) + tail
    return parse_time_index(data, base_offset=100, path="/d/100.timeindex")


def transaction_index(*entries: tuple[int, int, int, int, int]) -> TransactionIndex:
    data = b"".join(struct.pack(">hqqqq", *entry) for entry in entries)
    return parse_transaction_index(data, path="/d/100.txnindex")


def test_an_index_without_entries_leads_to_the_start_of_the_segment() -> None:
    assert offset_index().lookup(7) == (100, 0)
    assert offset_index(tail=b"\0" * 7).entry_count == 0
    assert offset_index().lookup_positions(np.array([7, 8], dtype=np.int64)).tolist() == [0, 0]
    assert time_index().lookup(7) == (-1, 100)


def test_a_sane_index_passes() -> None:
    offset_index((0, 0)).sanity_check()
    time_index((5, 1), (5, 1)).sanity_check()
    transaction_index((0, 7, 3, 100, 101)).sanity_check(100)
    assert transaction_index().entry_count == 0


def test_a_file_that_ends_within_an_entry_is_corrupt() -> None:
    text = "is corrupt, found 9 bytes which is neither positive nor a multiple of"
    with pytest.raises(CorruptIndexError, match=f"Index file /d/100.index {text} 8"):
        offset_index((1, 0), tail=b"\0").sanity_check()
    with pytest.raises(CorruptIndexError, match=f"Time index file /d/100.timeindex {text} 12"):
        time_index(tail=b"\0" * 9).sanity_check()


def test_a_last_entry_before_the_segment_is_corrupt() -> None:
    with pytest.raises(CorruptIndexError, match="but the last offset is 99 which is less than the base offset 100"):
        offset_index((-1, 0)).sanity_check()
    with pytest.raises(CorruptIndexError, match="but the last offset is 99 which is less than the first offset 100"):
        time_index((5, -1)).sanity_check()
    with pytest.raises(CorruptIndexError, match="but the last timestamp is 4 which is less than the first timestamp 5"):
        time_index((5, 1), (4, 2)).sanity_check()


def test_an_abort_before_the_segment_is_corrupt() -> None:
    text = (
        r"Last offset of aborted transaction AbortedTxn\(version=0, producerId=7, firstOffset=3, lastOffset=6, "
        r"lastStableOffset=8\) in index /d/100.txnindex is less than start offset 100"
    )
    with pytest.raises(CorruptIndexError, match=text):
        transaction_index((0, 7, 3, 6, 8), (256, 0, 0, 0, 0)).sanity_check(100)


def test_an_unknown_version_is_met_when_it_is_come_to() -> None:
    index = transaction_index((0, 7, 3, 106, 107), (256, 8, 3, 110, 111))
    assert index.entry_count == 1
    rows, complete = index.aborted_rows(fetch_offset=0, upper_bound_offset=107)
    assert (rows.tolist(), complete) == ([0], True)
    text = "version 256 in transaction index /d/100.txnindex, supported version range is 0 to 0"
    with pytest.raises(CorruptIndexError, match=text) as caught:
        index.aborted_rows(fetch_offset=0, upper_bound_offset=108)
    assert caught.value.java_class == "org.apache.kafka.common.KafkaException"
    with pytest.raises(CorruptIndexError, match=text):
        index.sanity_check(100)
