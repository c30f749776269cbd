"""Side files from any bytes: logstore and its slow twins say the same."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import LogstoreError
from logstore.layout.java_properties import parse_properties
from logstore.layout.offset_index import parse_offset_index
from logstore.layout.producer_snapshot import parse_producer_snapshot
from logstore.layout.time_index import parse_time_index
from logstore.layout.transaction_index import parse_transaction_index
from logstore_tools.dump.batch_chains import SegmentRecords
from logstore_tools.dump.findings import Findings, Section
from tests.naive import side_files as naive

INT64 = st.integers(-(2**63), 2**63 - 1)
BASE_OFFSETS = st.sampled_from([0, 100, 2**63 - 1, -5])
NEAR = st.integers(-3, 60)

T = TypeVar("T")


def _outcome(call: Callable[[], T]) -> T | str:
    """What the call returns, or the message of the error that it raises."""
    try:
        return call()
    except LogstoreError as error:
        return error.message or ""


@given(st.binary(max_size=200), BASE_OFFSETS)
def test_any_bytes_are_an_offset_index(data: bytes, base_offset: int) -> None:
    index = parse_offset_index(data, base_offset=base_offset, path="/d/0.index")
    rows = list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True))
    assert rows == naive.offset_index_rows(data, base_offset)


@given(st.binary(max_size=200), BASE_OFFSETS)
def test_any_bytes_are_a_time_index(data: bytes, base_offset: int) -> None:
    index = parse_time_index(data, base_offset=base_offset, path="/d/0.timeindex")
    rows = list(zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True))
    assert rows == naive.time_index_rows(data, base_offset)


@given(st.lists(NEAR, max_size=30), st.booleans(), st.sampled_from([1, 50]), st.lists(NEAR, min_size=1, max_size=20))
def test_a_lookup_goes_where_kafka_goes(keys: list[int], is_sorted: bool, times: int, targets: list[int]) -> None:
    keys = [
        key for key in (sorted(keys) if is_sorted else keys) for _ in range(times)
    ]  # 50 times: beyond the warm part
    data = b"".join(struct.pack(">ii", key, number) for number, key in enumerate(keys))
    index = parse_offset_index(data, base_offset=0, path="/d/0.index")
    slots = [naive.largest_lower_bound_slot(keys, target, 8) for target in targets]
    expected = [(keys[slot], slot) if slot >= 0 else (0, 0) for slot in slots]
    assert [index.lookup(target) for target in targets] == expected
    positions = index.lookup_positions(np.array(targets, dtype=np.int64))
    assert positions.tolist() == [position for _, position in expected]


@given(st.lists(st.tuples(NEAR, NEAR, NEAR), max_size=12), NEAR, NEAR)
def test_a_read_takes_the_aborts_that_kafka_takes(
    entries: list[tuple[int, int, int]], fetch_offset: int, upper_bound_offset: int
) -> None:
    data = b"".join(struct.pack(">hqqqq", 0, 7, *entry) for entry in entries)
    index = parse_transaction_index(data, path="/d/0.txnindex")
    rows, complete = index.aborted_rows(fetch_offset=fetch_offset, upper_bound_offset=upper_bound_offset)
    assert (rows.tolist(), complete) == naive.aborted_transactions(data, fetch_offset, upper_bound_offset)


@given(st.binary(max_size=150))
def test_any_bytes_are_a_snapshot_or_a_corrupt_one(data: bytes) -> None:
    outcome = _outcome(lambda: parse_producer_snapshot(data))
    if isinstance(outcome, str):
        assert outcome.startswith("Snapshot failed schema validation: ")
    else:
        assert 10 + 46 * outcome.entry_count <= len(data)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches of all magics, of right and of wrong sizes, one behind the other."""
    log = b""
    for _ in range(draw(st.integers(0, 8))):
        length = draw(st.sampled_from([14, 14, 30, 49, 60, 5, 2**31 - 1, -1]))
        magic = draw(st.sampled_from([0, 1, 2, 2, 2, -1]))
        delta = draw(st.sampled_from([0, 1, 5, -2]))
        header = struct.pack(">qiibIhi", draw(NEAR), length, 14, magic, 0, 0, delta)
        log += header + bytes(draw(st.integers(0, 3)) if length < 14 else max(0, min(length, 60) + 12 - len(header)))
    return log[: draw(st.integers(0, len(log)))] if draw(st.booleans()) else log


@given(logs(), st.lists(st.tuples(st.integers(0, 200), NEAR), min_size=1, max_size=10))
def test_the_chains_find_the_batch_that_reading_all_of_them_finds(
    tmp_path_factory: pytest.TempPathFactory, log: bytes, questions: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "chains.log"
    path.write_bytes(log)
    records = SegmentRecords(str(path))
    for position, offset in questions:
        expected = naive.first_batch(log, position, offset)
        found = _outcome(partial(records.first_batch, position, offset))
        if isinstance(expected, str):
            assert isinstance(found, str)
            assert found.startswith(expected)
        else:
            assert found == expected


@given(st.lists(st.text("abé/", max_size=3), max_size=60))
def test_paths_come_in_the_order_of_a_hash_map(names: list[str]) -> None:
    paths = [f"/d{name.replace('/', '')}" for name in names]
    findings = Findings(lambda line: None)
    for path in paths:
        findings.add(Section.TIMESTAMP_MISMATCH, path, 1, 2)
    titles = [line for line in findings.lines() if not line.startswith(" ")]
    assert titles == [f"Found timestamp mismatch in :{path}" for path in naive.hash_map_order(paths)]


@given(st.lists(st.lists(st.tuples(NEAR, INT64), max_size=6), max_size=6))
def test_of_one_previous_offset_the_last_pair_counts(chunks: list[list[tuple[int, int]]]) -> None:
    findings = Findings(lambda line: None)
    for chunk in chunks:
        pairs = np.array(chunk, dtype=np.int64).reshape(-1, 2)
        findings.non_consecutive("/d/0.log", pairs[:, 0], pairs[:, 1])
    last = dict(pair for chunk in chunks for pair in chunk)
    expected = [f"  {previous} is followed by {following}" for previous, following in sorted(last.items())]
    assert list(findings.lines())[1:] == expected


@given(st.text(" \t\f\n\r=:\\#!aub0041é", max_size=40))
def test_properties_are_what_java_reads(text: str) -> None:
    found = _outcome(lambda: parse_properties(text.encode("iso-8859-1")))
    assert found == naive.properties(text)
