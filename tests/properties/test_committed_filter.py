"""The filter of committed data beside the Java consumer's loop, in one step and in several."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.columns.batch_table import scan
from logstore.errors import InvalidRecordError
from logstore.folds import committed_filter
from logstore.folds.committed_filter import CommittedFilter, is_in_aborted
from logstore.folds.transaction_marker import control_types
from tests.naive.committed_filter import Seen, skipped
from tests.naive.transactional_log import transactional_log
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec

PRODUCER_IDS = [-1, -5, 0, 1, 2, 2**63 - 1]
ABORT_KEY, COMMIT_KEY = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)
VALUE = struct.pack(">hi", 0, 9)


def marker(key: bytes | None, **fields: object) -> Rec:
    return Rec(key, VALUE, **fields)  # type: ignore[arg-type]


usual_markers = st.sampled_from([marker(ABORT_KEY), marker(COMMIT_KEY)])
odd_markers = st.sampled_from(
    [
        marker(ABORT_KEY, timestamp_delta=77),
        marker(ABORT_KEY + b"more", headers=[(b"h", None)]),
        marker(struct.pack(">hh", 3, 0)),
        marker(struct.pack(">hh", 0, 9)),
        marker(COMMIT_KEY, attributes=1),
        Rec(ABORT_KEY, None),
        Rec(ABORT_KEY, b""),
    ]
)


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    offset, batches = 0, []
    for _ in range(draw(st.integers(0, 30))):
        kind = draw(st.sampled_from(["data", "data", "plain", "marker", "marker", "odd marker", "empty control"]))
        flags = 0 if kind == "plain" else TRANSACTIONAL if kind == "data" else TRANSACTIONAL | CONTROL
        records = [Rec()] if kind in ("data", "plain") else []
        if kind.endswith("marker"):
            records = [draw(usual_markers if kind == "marker" else odd_markers)]
        count = draw(st.integers(1, 4)) if kind in ("data", "plain") else 1
        batches.append(
            Batch(
                offset,
                records,
                last_offset_delta=count - 1,
                flags=flags,
                codec=draw(st.sampled_from([0, 0, 0, 4])) if records else 0,
                producer_id=draw(st.sampled_from(PRODUCER_IDS)),
                producer_epoch=0,
            )
        )
        offset += count + draw(st.sampled_from([0, 0, 2]))
    return batches


aborted_lists = st.lists(st.tuples(st.sampled_from(PRODUCER_IDS), st.integers(-2, 90)), max_size=8)


def seen(batch: Batch) -> Seen:
    is_control = bool(batch.flags & CONTROL)
    key = batch.records[0].key if is_control and batch.records else None
    is_abort = key is not None and struct.unpack(">h", key[2:4])[0] == 0
    return Seen(
        batch.base_offset + batch.last_offset_delta, batch.producer_id, bool(batch.flags & TRANSACTIONAL), is_abort
    )


@given(logs(), aborted_lists, st.lists(st.integers(0, 30), max_size=3))
def test_filter_skips_what_the_consumer_skips(
    batches: list[Batch], aborted: list[tuple[int, int]], cuts: list[int]
) -> None:
    data = np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8)
    table = scan(data)
    state = CommittedFilter(aborted)
    edges = [0, *sorted(min(cut, len(table)) for cut in cuts), len(table)]
    found: list[bool] = []
    for first_row, row_end in pairwise(edges):
        found += committed_filter.step(state, data, table, first_row, row_end).tolist()
    assert found == list(skipped(map(seen, batches), aborted))


@pytest.mark.parametrize("seed", range(20))
def test_filter_leaves_the_committed_records_of_a_log(seed: int) -> None:
    log = transactional_log(f"filter-{seed}", segment_count=1)
    (content,) = log.segments.values()
    data = np.frombuffer(content, np.uint8)
    table = scan(data)
    state = CommittedFilter(log.aborted)
    is_kept = ~committed_filter.step(state, data, table, 0, len(table)) & (table.attributes & CONTROL == 0)
    kept = [
        record
        for record in log.records
        if is_kept[np.searchsorted(table.base_offset, record.offset, side="right") - 1]
        and record.offset < log.last_stable_offset
    ]
    assert kept == log.committed
    assert len(kept) < len(log.records)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Rec(None, VALUE), None),
        (Rec(b"abc", VALUE), "Must have at least 4 bytes"),
        (Rec(struct.pack(">hh", -1, 0), VALUE), "Invalid version found for control record: -1"),
    ],
)
def test_a_control_record_that_says_nothing_is_told_with_its_place(record: Rec, words: str | None) -> None:
    before = Batch(0, [Rec()], producer_id=1)
    batch = Batch(5, [record], flags=CONTROL | TRANSACTIONAL, producer_id=1)
    data = np.frombuffer(before.to_bytes() + batch.to_bytes(), np.uint8)
    with pytest.raises(InvalidRecordError, match=words) as caught:
        control_types(data, scan(data), np.array([1]))
    assert (caught.value.offset, caught.value.position) == (5, len(before.to_bytes()))


@given(logs(), st.dictionaries(st.sampled_from(PRODUCER_IDS), st.tuples(st.integers(0, 90), st.integers(0, 90))))
def test_transactional_batches_within_a_range_are_aborted(
    batches: list[Batch], ranges: dict[int, tuple[int, int]]
) -> None:
    """Also where a producer wrote outside of its transaction, inside the range."""
    table = scan(np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8))
    rows = [(producer_id, first, last) for producer_id, (first, last) in ranges.items()]
    found = is_in_aborted(np.array(rows, np.int64).reshape(-1, 3), table)
    assert found.tolist() == [
        bool(batch.flags & TRANSACTIONAL)
        and any(one[0] == batch.producer_id and one[1] <= batch.base_offset <= one[2] for one in rows)
        for batch in batches
    ]


def test_a_batch_outside_of_a_transaction_is_not_aborted() -> None:
    batches = [Batch(offset, [Rec()], flags=flags, producer_id=1) for offset, flags in enumerate((0, TRANSACTIONAL, 0))]
    table = scan(np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8))
    assert is_in_aborted(np.array([[1, 0, 2]]), table).tolist() == [False, True, False]
