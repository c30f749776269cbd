"""The dump kernels stop where they say, go on where they stopped, and need no more room than they ask for."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as kernels
from logstore.kernels.dump import lines as dump_lines
from logstore.kernels.dump import state as dump_state
from logstore.kernels.dump.text import literal
from tests.naive import batch
from tests.naive import dump_text as naive
from tests.naive.legacy import Message, message_set
from tests.support.encoder import CONTROL, DELETE_HORIZON, GZIP, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.kernel_dump import BIG, POOL, DumpCaller

EVERYTHING = naive.Options(contents=True)
COMMIT = Rec(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x07")
ODD_MARKERS = {
    "another type": Rec(b"\x00\x00\x00\x02", COMMIT.value),
    "another key version": Rec(b"\x00\x01\x00\x01", COMMIT.value),
    "another value version": Rec(COMMIT.key, b"\x00\x01\x00\x00\x00\x07"),
    "a longer key": Rec(b"\x00\x00\x00\x01\x00", COMMIT.value),
    "a longer value": Rec(COMMIT.key, b"\x00\x00\x00\x00\x00\x07\x00"),
    "no key": Rec(None, COMMIT.value),
    "no value": Rec(COMMIT.key, None),
}
LONGEST = Batch(
    base_offset=-(2**63),
    records=[Rec()],
    last_offset_delta=-(2**31),
    flags=LOG_APPEND_TIME | DELETE_HORIZON,
    base_timestamp=-(2**63),
    max_timestamp=-(2**63),
    producer_id=-(2**63),
    producer_epoch=-(2**15),
    base_sequence=-(2**31),
    leader_epoch=-(2**31),
)


def dump(data: bytes, caller: DumpCaller) -> naive.Dump:
    table = scan(np.frombuffer(data, np.uint8), check_crc=True)
    return caller.finish(caller.batches(np.frombuffer(data, np.uint8), table.matrix, table.count))


def expected(data: bytes, options: naive.Options) -> naive.Dump:
    rows = [batch.checked(data, row) for row in batch.scan(data, 0, len(data)).rows]
    return naive.dump(data, rows, options)


def many(count: int, *, step: int = 1, size: int = 100) -> list[Rec]:
    return [Rec(b"key", b"v" * size, offset_delta=index * step) for index in range(count)]


def test_the_longest_batch_line_has_room() -> None:
    data = LONGEST.to_bytes()
    caller = DumpCaller(naive.Options(deep=False), out=dump_lines.BATCH_LINE_SIZE_MAX)
    found = dump(data, caller)
    assert found == expected(data, naive.Options(deep=False))
    assert 400 < len(found.text) < dump_lines.BATCH_LINE_SIZE_MAX
    assert dump_state.OUT_FULL not in caller.stops


def test_a_batch_line_waits_for_all_the_room_it_may_need() -> None:
    data = Batch(0, [Rec()]).to_bytes()
    table = scan(np.frombuffer(data, np.uint8))
    caller = DumpCaller(naive.Options(deep=False))
    caller.state[dump_state.OUT_CAPACITY] = dump_lines.BATCH_LINE_SIZE_MAX - 1
    caller.state[dump_state.ROW] = caller.state[dump_state.STAGE] = 0
    arguments = (np.frombuffer(data, np.uint8), table.matrix, 1, 1, np.empty((9, 1), np.int64))
    out = np.zeros(dump_lines.BATCH_LINE_SIZE_MAX, np.uint8)
    assert kernels.dump_batches(*arguments, np.empty((2, 1), np.int64), POOL, out, caller.state) == dump_state.OUT_FULL
    assert not out.any()


def test_the_longest_record_line_has_room() -> None:
    headers = [(b"\xff" * 9, None)] * 5
    record = Rec(b"\xff" * 40, b"\xff" * 40, headers, offset_delta=-(2**31), timestamp_delta=-(2**63))
    data = Batch(-(2**62), [record], base_timestamp=-(2**62), base_sequence=2**31 - 1).to_bytes()
    content_size = 80 + 5 * 10
    out = dump_lines.RECORD_LINE_SIZE_MAX + dump_lines.UTF8_GROWTH_MAX * content_size
    caller = DumpCaller(EVERYTHING, out=max(out, dump_lines.BATCH_LINE_SIZE_MAX))
    found = dump(data, caller)
    assert found == expected(data, EVERYTHING)
    assert found.text.count("\ufffd".encode()) == 80 + 45
    assert not caller.is_stuck


def test_a_full_buffer_is_emptied_and_the_line_printed_once() -> None:
    data = b"".join(Batch(index * 30, many(30), last_offset_delta=29).to_bytes() for index in range(3))
    caller = DumpCaller(EVERYTHING, out=dump_lines.BATCH_LINE_SIZE_MAX)
    assert dump(data, caller) == expected(data, EVERYTHING)
    assert caller.stops[dump_state.OUT_FULL] > 10
    assert caller.text.count(b"\n") == 93


def test_full_gaps_are_emptied_and_each_is_noted_once() -> None:
    data = Batch(5, many(9, step=3)).to_bytes()
    caller = DumpCaller(EVERYTHING, gaps=2)
    assert dump(data, caller).gaps == [(-1, 5), *((offset, offset + 3) for offset in range(5, 29, 3))]
    assert caller.stops[dump_state.GAPS_FULL] == 4


def test_offsets_are_compared_across_batches_and_chunks() -> None:
    data = Batch(0, many(5)).to_bytes() + Batch(5, many(5)).to_bytes() + Batch(11, many(2)).to_bytes()
    for capacity in 1, 2, 5, 50:
        assert dump(data, DumpCaller(EVERYTHING, records=capacity)).gaps == [(9, 11)]


def test_an_offset_after_the_greatest_is_the_least() -> None:
    data = Batch(2**63 - 1, many(2)).to_bytes()
    assert dump(data, DumpCaller(EVERYTHING)).gaps == [(-1, 2**63 - 1)]


def test_a_record_larger_than_the_buffer_is_the_callers() -> None:
    data = Batch(0, [*many(2), Rec(b"k", b"large" * 300, offset_delta=2), Rec(offset_delta=3)]).to_bytes()
    caller = DumpCaller(EVERYTHING, out=dump_lines.BATCH_LINE_SIZE_MAX)
    found = dump(data, caller)
    assert found == expected(data, EVERYTHING)
    assert (found.gaps, b"large" * 300 in found.text) == ([], True)


@pytest.mark.parametrize(
    "record",
    [
        Rec(b"\xff" * 300),
        Rec(None, b"\xff" * 300),
        Rec(headers=[(b"\xff" * 300, None)]),
        Rec(headers=[(b"", None)] * 900),
    ],
    ids=["key", "value", "header key", "header commas"],
)
def test_room_is_asked_for_the_text_that_bytes_may_become(record: Rec) -> None:
    data = Batch(0, [record]).to_bytes()
    caller = DumpCaller(EVERYTHING, out=950)
    assert dump(data, caller) == expected(data, EVERYTHING)
    assert caller.stops[dump_state.OUT_FULL] >= 1


def test_records_that_only_differ_in_one_thing_are_told_apart() -> None:
    records = [Rec(b"k", b"v"), Rec(b"k", b"v", timestamp_delta=1), Rec(b"kk", b"v"), Rec(b"k", b"vv"), Rec(b"k", b"v")]
    batches = [Batch(9, records), Batch(9, records[4:], flags=LOG_APPEND_TIME), Batch(9, records[:1])]
    data = b"".join(batch.to_bytes() for batch in batches)
    found = dump(data, DumpCaller(EVERYTHING))
    assert found == expected(data, EVERYTHING)
    assert found.text.count(b"| offset: 9 LogAppendTime: ") == 1


def test_shared_text_of_records_is_printed_again_after_the_buffer_was_emptied() -> None:
    data = np.frombuffer(Batch(0, many(20)).to_bytes(), np.uint8)
    (chunk,) = BatchRecords(data, scan(data), 0).chunks()
    caller = DumpCaller(naive.Options(), out=dump_lines.RECORD_LINE_SIZE_MAX + 100)
    caller.records(chunk, scan(data).matrix, [(0, False, 20)])
    lines = caller.finish().text.splitlines()
    assert caller.stops[dump_state.OUT_FULL] > 5
    assert {line.split(b" CreateTime: ")[1] for line in lines} == {
        b"1700000000000 keySize: 3 valueSize: 100 sequence: -1 headerKeys: []"
    }
    assert len(lines) == 20


def test_compressed_batch_is_left_to_the_caller() -> None:
    data = Batch(0, many(1), codec=GZIP).to_bytes() + Batch(1, many(1)).to_bytes()
    caller = DumpCaller(EVERYTHING)
    found = dump(data, caller)
    assert found == expected(data, EVERYTHING)
    assert caller.stops == {dump_state.OTHER_ROW: 1, dump_state.DONE: 1}
    assert [line.split()[0] for line in found.text.splitlines()] == [b"(the", b"baseOffset:", b"|"]
    caller = DumpCaller(naive.Options(deep=False))
    assert dump(data, caller).text.count(b"baseOffset: ") == 2
    assert caller.stops == {dump_state.DONE: 1}, "its line needs nothing of its records"


@pytest.mark.parametrize("count", [-1, -(2**31)])
def test_negative_count_is_left_to_the_caller(count: int) -> None:
    data = bytearray(Batch(0, many(1)).to_bytes())
    data[57:61] = count.to_bytes(4, "big", signed=True)
    caller = DumpCaller(EVERYTHING)
    assert dump(bytes(data), caller).text.endswith(b"(the batch at 0)\n")
    assert dump_state.OTHER_ROW in caller.stops


def test_without_deep_no_record_is_looked_at() -> None:
    data = bytearray(Batch(0, many(3)).to_bytes())
    data[61:] = b"\xff" * len(data[61:])
    caller = DumpCaller(naive.Options(deep=False))
    found = dump(bytes(data), caller)
    assert (found.text.count(b"\n"), found.error) == (1, None)
    assert caller.stops == {dump_state.DONE: 1}


def test_a_text_ends_the_line_behind_the_metadata_of_its_record() -> None:
    data = np.frombuffer(Batch(0, many(4)).to_bytes(), np.uint8)
    (chunk,) = BatchRecords(data, scan(data), 0).chunks()
    texts = [b" first\n", None, b"", b" a longer one that comes last\n"]
    for out in (dump_lines.BATCH_LINE_SIZE_MAX, BIG):
        caller = DumpCaller(naive.Options(), out=out)
        assert caller.records(chunk, scan(data).matrix, [(0, True, 4)], texts) is None
        lines = caller.finish().text.splitlines()
        assert len(lines) == 4, "the third record's line has no end"
        assert [line.rpartition(b"headerKeys: []")[2] for line in lines[1:]] == [b" first", b"", texts[3].strip(b"\n")]


def test_entries_of_old_magics_are_left_to_the_caller() -> None:
    data = np.frombuffer(Batch(0, many(1)).to_bytes() + message_set(1, [Message(1, 0, b"k", b"v")]), np.uint8)
    table = scan(data).matrix
    caller = DumpCaller(EVERYTHING)
    caller.state[dump_state.ROW] = caller.state[dump_state.STAGE] = 0
    arguments = (data, table, 2, 2, np.empty((decode.COLUMN_COUNT, 50), np.int64), np.empty((2, 100), np.int64))
    assert kernels.dump_batches(*arguments, POOL, np.empty(BIG, np.uint8), caller.state) == dump_state.OTHER_ROW
    assert caller.state[dump_state.ROW] == 1


def test_an_unknown_codec_leaves_half_a_line() -> None:
    content = bytearray(Batch(0, many(1)).to_bytes())
    content[22] = 6
    data, caller = np.frombuffer(content, np.uint8), DumpCaller(EVERYTHING)
    assert dump(bytes(content), DumpCaller(EVERYTHING)).text == b"(the batch at 0)\n"
    nothing = RecordTable(data, np.empty((decode.COLUMN_COUNT, 0), np.int64), 0)
    assert caller.records(nothing, scan(data).matrix, [(0, True, 0)]) == "Unknown compression type id: 6"
    assert caller.finish().text.endswith(b" deleteHorizonMs: OptionalLong.empty")


def test_good_records_come_before_the_error() -> None:
    for capacity in 1, 2, 3, 50:
        data = Batch(0, many(4)).to_bytes()
        caller = DumpCaller(EVERYTHING, records=capacity)
        found = dump(data[:11] + bytes([data[11] - 3]) + data[12:], caller)
        assert found.text.count(b"| offset: ") == 3
        assert found.error.startswith("Invalid record size: expected")


def test_transaction_markers_are_printed() -> None:
    data = Batch(0, [COMMIT], flags=CONTROL | TRANSACTIONAL).to_bytes()
    caller = DumpCaller(EVERYTHING)
    assert dump(data, caller).text.endswith(b" headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 7\n")
    assert caller.stops == {dump_state.DONE: 1}


@pytest.mark.parametrize("records", [*([odd] for odd in ODD_MARKERS.values()), [COMMIT, COMMIT], []], ids=str)
def test_control_batches_of_anything_but_a_marker_are_the_callers(records: list[Rec]) -> None:
    data = Batch(0, records, flags=CONTROL).to_bytes()
    caller = DumpCaller(EVERYTHING)
    assert dump(data, caller).text == b"(the batch at 0)\n"
    assert caller.stops == {dump_state.OTHER_ROW: 1, dump_state.DONE: 1}
    assert dump(data, DumpCaller(naive.Options(deep=False))).text.startswith(b"baseOffset: 0 ")


@pytest.mark.parametrize("record", ODD_MARKERS.values(), ids=ODD_MARKERS)
def test_the_bytes_of_what_is_no_marker_are_not_taken_for_one(record: Rec) -> None:
    data = np.frombuffer(Batch(0, [record], flags=CONTROL).to_bytes(), np.uint8)
    (chunk,) = BatchRecords(data, scan(data), 0).chunks()
    caller = DumpCaller(EVERYTHING)
    caller.records(chunk, scan(data).matrix, [(0, False, 1)])
    assert caller.finish().text.endswith(b" headerKeys: []\n")


@pytest.mark.parametrize("record", [COMMIT, *ODD_MARKERS.values()], ids=["a marker", *ODD_MARKERS])
def test_control_records_without_metadata_are_empty_lines(record: Rec) -> None:
    data = Batch(0, [record], flags=CONTROL).to_bytes()
    caller = DumpCaller(naive.Options(contents=True, skip_metadata=True))
    assert dump(data, caller).text.endswith(b" isvalid: true\n\n")


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (Rec(b"k", b"v"), b"| key: k payload: v\n"),
        (Rec(None, b"v"), b"| payload: v\n"),
        (Rec(b"k", None), b"| key: k\n"),
        (Rec(None, None), b"\n"),
        (Rec(b"", b""), b"| key:  payload: \n"),
    ],
)
def test_contents_alone_begin_the_line(record: Rec, line: bytes) -> None:
    options = naive.Options(contents=True, skip_metadata=True)
    assert dump(Batch(0, [record]).to_bytes(), DumpCaller(options)).text.endswith(b"isvalid: true\n" + line)


def test_a_literal_of_the_pool_is_what_it_was_made_of() -> None:
    for text, number in (("baseOffset: ", dump_lines.BASE_OFFSET), (" isvalid: false\n", dump_lines.IS_INVALID)):
        start, size = divmod(number, 128)
        assert dump_lines.LITERALS[start : start + size] == text.encode()
        assert literal(text) % 128 == size
