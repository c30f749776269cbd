"""The kernels that the cleaner reads with against slow twins: batches to records, keys to hashes, hashes to offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.batch_table import BatchTable, scan
from logstore.kernels.decode import batches as decode_batches
from logstore.kernels.decode import records as decode
from logstore.kernels.scan.batches import COLUMN_COUNT
from logstore.kernels.table import offset_map
from logstore.kernels.table.key_hashes import hash_keys
from tests.naive import batch as naive_batch
from tests.naive import offset_map as naive
from tests.naive.record import Context, Record, read_plain
from tests.properties.kernel_inputs import CRC_AT, batch_values, damaged
from tests.support.encoder import LOG_APPEND_TIME, Batch, Rec
from tests.support.kernel_decode import DecodedBatches, assert_decoded, decoded_batches, read_batches
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

UNTOUCHED = -77
HEADER_SIZE = 61
INT64 = 2**63

Int64Array = npt.NDArray[np.int64]

keys = st.none() | st.binary(max_size=70) | st.sampled_from([b"", b"a", b"key", bytes(32), bytes(8), b"x" * 150])
offsets = st.integers(0, 40) | st.sampled_from([-1, INT64 - 1, -INT64])
pairs = st.lists(st.tuples(st.sampled_from([None, b"", b"a", b"b", b"c", b"dd", b"e" * 40]), offsets), max_size=30)


def as_records(pairs_of: list[tuple[bytes | None, int]]) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """The keys one after the other, and a record matrix over them with nothing else in it."""
    data = b"".join(key or b"" for key, _ in pairs_of)
    records = np.full((decode.COLUMN_COUNT, len(pairs_of) + 1), UNTOUCHED, np.int64)
    position = 0
    for row, (key, offset) in enumerate(pairs_of):
        records[decode.OFFSET, row] = offset
        records[decode.KEY_POSITION, row] = position
        records[decode.KEY_SIZE, row] = -1 if key is None else len(key)
        position += len(key or b"")
    return np.frombuffer(data, np.uint8), records


def hashed(data: npt.NDArray[np.uint8], records: Int64Array) -> Int64Array:
    capacity = records.shape[1]
    hashes = np.full((2, capacity), UNTOUCHED, np.int64)
    run_both(hash_keys, data, records, capacity, capacity - 1, hashes)
    return hashes


@given(st.lists(keys, max_size=8))
def test_keys_are_hashed_as_by_xxhash(of: list[bytes | None]) -> None:
    data, records = as_records([(key, 0) for key in of])
    capacity = records.shape[1]
    hashes = np.full((2, capacity), UNTOUCHED, np.int64)
    key_count = run_both(hash_keys, data, records, capacity, len(of), hashes)
    assert key_count == sum(key is not None for key in of)
    found = list(zip(*hashes[:, : len(of)].tolist(), strict=True))
    assert found == [(0, 0) if key is None else naive.halves(key) for key in of]
    assert (hashes[:, len(of) :] == UNTOUCHED).all()


@given(pairs, pairs, st.integers(0, 7), st.integers(1, 4), st.integers(-1, 20), st.integers(0, 30), st.booleans())
def test_a_map_has_the_offsets_that_were_put_last_until_it_is_full(
    put: list[tuple[bytes | None, int]],
    asked: list[tuple[bytes | None, int]],
    entry_count_max: int,
    room: int,
    offset_min: int,
    mark_count: int,
    is_ascending: bool,
) -> None:
    put = sorted(put, key=lambda pair: pair[1]) if is_ascending else put
    expected: dict[bytes, int] = {}
    looked_at = naive.put(expected, put, entry_count_max, offset_min)
    state = np.zeros(offset_map.STATE_COUNT, np.int64)
    state[offset_map.SLOT_COUNT] = entry_count_max + room
    state[offset_map.ENTRY_COUNT_MAX] = entry_count_max
    state[offset_map.OFFSET_MIN] = offset_min
    state[offset_map.MARK_COUNT] = mark_count
    marks = np.zeros(max(mark_count, 1), np.uint8)
    table = np.zeros((entry_count_max + room) * offset_map.SLOT_WIDTH, np.int64)
    data, records = as_records(put)
    hashes = hashed(data, records)
    capacity = records.shape[1]
    assert run_both(offset_map.put_offsets, records, hashes, capacity, 0, len(put), state, table, marks) == looked_at
    expected_marks = naive.marks(put[:looked_at], offset_min, mark_count)
    assert (state[offset_map.MARK_COUNT] == 0) == (expected_marks is None or mark_count == 0)
    assert not expected_marks or marks.tolist() == expected_marks
    assert state[offset_map.ENTRY_COUNT] == len(expected)
    last = [row for row, (key, offset) in enumerate(put[:looked_at]) if key is not None and offset >= offset_min]
    assert state[offset_map.LAST_ROW] == (last[-1] if last else -1)
    assert not last or state[offset_map.LAST_OFFSET] == put[last[-1]][1]
    data, records = as_records(asked)
    found = np.full(len(asked), UNTOUCHED, np.int64)
    capacity = records.shape[1]
    found_count = run_both(
        offset_map.find_offsets, records, hashed(data, records), capacity, len(asked), state, table, found
    )
    assert found.tolist() == naive.find(expected, asked)
    assert found_count == sum(key in expected for key, _ in asked)


def with_deltas_in_order(batch: Batch, base_offset: int) -> Batch:
    return replace(batch, base_offset=base_offset, flags=batch.flags & 0xF8)


plain_batches = st.lists(st.builds(with_deltas_in_order, batch_values(), st.integers(0, 5)), max_size=4)
plain_bytes = plain_batches.map(lambda batches: b"".join(batch.to_bytes() for batch in batches))


def expected_records(data: bytes) -> tuple[list[list[Record]], str | None]:
    """The records of each good batch, and the message of what is wrong with the first bad one."""
    table, parts, end = scan(np.frombuffer(data, np.uint8)), [], None
    for row in map(table.row, range(len(table))):
        if row["size"] < HEADER_SIZE:
            end = "short"
            break
        stamped = row["max_timestamp"] if row["attributes"] & LOG_APPEND_TIME else None
        context = Context(row["base_offset"], row["base_timestamp"], row["base_sequence"], stamped)
        body = data[row["position"] + HEADER_SIZE : row["position"] + row["size"]]
        parts.append((body, row["record_count"], context))
    found, problem = read_batches(read_plain, parts)
    return found, problem or end


def decoded(data: npt.NDArray[np.uint8], table: BatchTable, capacity: int) -> DecodedBatches:
    return decoded_batches(data, *table.record_bounds(0, len(table)), decode.PLAIN, table, capacity)


@settings(max_examples=examples(150))
@given(plain_bytes | damaged(plain_bytes))
def test_batches_are_decoded_as_the_twin_decodes_each(content: bytes) -> None:
    check_batches_are_decoded(content)


def check_batches_are_decoded(content: bytes) -> None:
    data = np.frombuffer(content, np.uint8)
    table = scan(data)
    if (table.magic < 2).any():
        return
    assert table.matrix.shape[0] == COLUMN_COUNT
    assert_decoded(decoded(data, table, len(content) + len(table) + 1), data, *expected_records(content))


@settings(max_examples=examples(60))
@given(plain_batches, st.integers(0, 12))
def test_a_decode_stops_at_the_row_that_has_no_room(batches: list[Batch], capacity: int) -> None:
    data = np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8)
    table = scan(data)
    room = max(capacity, 1)
    found = decoded(data, table, room)
    ends = np.cumsum([len(batch.records) for batch in batches], dtype=np.int64)
    fitting = int(np.searchsorted(ends, room, side="right"))
    assert (found.status == decode_batches.RECORDS_FULL) == (fitting < len(batches))
    assert found.batch_count == fitting


many_records = st.lists(
    st.builds(
        Rec,
        key=st.none() | st.just(b"") | st.binary(max_size=70) | st.just(b"k" * 9000),
        value=st.none() | st.just(b"") | st.binary(max_size=70) | st.sampled_from([b"v" * 8191, b"v" * 8192]),
        headers=st.sampled_from([[], [], [], [(b"h", None)]]),
        offset_delta=st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**20, 2**20 - 1, -1]),
        timestamp_delta=st.sampled_from([0, -1, 63, 64, -65, 8191, 2**20 - 1, 2**20, 2**40]),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=examples(100))
@given(many_records, st.sampled_from([-1, 0, 2**31 - 5]), st.integers(0, 400), st.integers(0, 255))
def test_usual_records_are_decoded_as_unusual_ones(
    records: list[Rec], base_sequence: int, position: int, byte: int
) -> None:
    """What takes the quick way, and what just does not, gives the same; one byte of it may be another."""
    batch = Batch(7, records, last_offset_delta=len(records), base_sequence=base_sequence)
    content = bytearray(batch.to_bytes() + Batch(99, [Rec()]).to_bytes())
    content[HEADER_SIZE + position % (len(content) - HEADER_SIZE)] ^= byte if byte < 128 else 0
    check_batches_are_decoded(bytes(content))


@settings(max_examples=examples(60))
@given(plain_batches, st.lists(st.booleans(), min_size=4, max_size=4), st.none() | st.integers(0, 3))
def test_checksums_are_computed_where_it_is_asked_for(
    batches: list[Batch], is_asked: list[bool], damaged_row: int | None
) -> None:
    content = b"".join(batch.to_bytes() for batch in batches)
    data = np.frombuffer(bytearray(content), np.uint8)
    table = scan(data)
    if damaged_row is not None and damaged_row < len(table):
        data[table.position[damaged_row] + CRC_AT] ^= 1
        table = scan(data)
    marks = [decode_batches.TO_CHECK if asked else -1 for asked in is_asked[: len(table)]]
    table.is_valid[:] = marks
    found = decoded(data, table, data.size + 1)
    content = data.tobytes()
    checked = [naive_batch.checked(content, row).is_valid for row in naive_batch.scan(content, 0, len(content)).rows]
    wrong = [row for row in range(len(table)) if marks[row] == decode_batches.TO_CHECK and checked[row] == 0]
    stop = wrong[0] if wrong else len(table)
    assert found.batch_count == stop
    assert (found.status == decode_batches.WRONG_CHECKSUM) == bool(wrong)
    for row, mark in enumerate(marks):
        if mark == decode_batches.TO_CHECK and row <= stop:
            marks[row] = checked[row]
    assert table.is_valid.tolist() == marks
