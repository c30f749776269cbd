"""Records of many batches, window after window: in order, whatever the batches are made of."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.columns import record_windows as module
from logstore.columns.batch_table import scan
from logstore.columns.record_windows import record_windows
from logstore.kernels.decode.records import TOGETHER
from tests.naive import legacy
from tests.support.encoder import GZIP, LZ4, NONE, SNAPPY, ZSTD, Batch, Rec, compressed

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]


def batch(base_offset: int, count: int, codec: int = NONE, stream: bytes | None = None) -> bytes:
    """Records with every kind of field, their offset in the value."""
    records = [
        Rec(
            key=[None, b"", b"key"][number % 3],
            value=None if number % 4 == 3 else b"value %d" % (base_offset + number),
            headers=[(b"h", None)] * (number % 2),
            offset_delta=number,
        )
        for number in range(count)
    ]
    return Batch(base_offset, records, max(count - 1, 0), codec, stream=stream).to_bytes()


def rows_of(content: bytes, rows: list[int] | None = None) -> tuple[list[Row], list[int], list[int]]:
    """(row of the batch, offset, key, value, headers) of each record, rows of bad batches, sizes of the windows."""
    data = np.frombuffer(content, np.uint8)
    table = scan(data, check_crc=True)
    found: list[Row] = []
    bad, sizes = [], []
    for window in record_windows(data, table, np.arange(len(table)) if rows is None else np.array(rows, np.int64)):
        if window.error is not None:
            bad.append(int(window.batch_rows[-1]))
            continue
        assert window.error is None
        records = window
        assert (np.diff(records.value_position) >= 0).all()
        sizes.append(len(records))
        for number, row in enumerate(window.rows.tolist()):
            key, value = records.key(number), records.value(number)
            found.append((row, int(records.offset[number]), key, value, records.headers(number)))
    return found, bad, sizes


def expected(row: int, base_offset: int, count: int) -> list[Row]:
    return [
        (
            row,
            base_offset + number,
            [None, b"", b"key"][number % 3],
            None if number % 4 == 3 else b"value %d" % (base_offset + number),
            [(b"h", None)] * (number % 2),
        )
        for number in range(count)
    ]


CODECS = [NONE, NONE, GZIP, LZ4, NONE, SNAPPY, ZSTD, ZSTD, NONE]


def test_batches_of_all_codecs_come_in_order() -> None:
    content = b"".join(batch(10 * row, 3 + row, codec) for row, codec in enumerate(CODECS))
    found, bad, _ = rows_of(content)
    assert found == [record for row in range(len(CODECS)) for record in expected(row, 10 * row, 3 + row)]
    assert bad == []


@pytest.mark.parametrize("codec", [NONE, LZ4])
@pytest.mark.parametrize("together_count", [1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER])
def test_records_with_headers_come_between_those_without(together_count: int, codec: int) -> None:
    counts = [3, together_count, 30, together_count, 1, together_count]  # without, with, without, …, up to the end
    headers = [[(b"h", None)] * (part % 2) for part, count in enumerate(counts) for _ in range(count)]
    records = [
        Rec(key=None, value=b"a value of some size %d" % number, headers=each, offset_delta=number)
        for number, each in enumerate(headers)
    ]
    content = Batch(7, records, len(records) - 1, codec).to_bytes()
    found, bad, sizes = rows_of(content + content)
    once = [
        (7 + number, None, record.value, each)
        for number, (record, each) in enumerate(zip(records, headers, strict=True))
    ]
    assert found == [(row, *fields) for row in range(2) for fields in once]
    assert not bad
    assert sizes == [2 * len(records)]  # the fast way was taken to the end


def test_only_the_rows_that_are_asked_for_are_read() -> None:
    content = b"".join(batch(10 * row, 3, codec) for row, codec in enumerate(CODECS))
    found, _, _ = rows_of(content, [1, 3, 4, 8])
    assert found == [record for row in (1, 3, 4, 8) for record in expected(row, 10 * row, 3)]
    assert rows_of(content, []) == ([], [], [])


def test_rows_that_others_part_share_windows() -> None:
    content = b"".join(batch(10 * number, 2, (NONE, NONE, GZIP, ZSTD)[number // 25]) for number in range(100))
    found, bad, sizes = rows_of(content, list(range(0, 100, 2)))
    assert [row for row, *_ in found[::2]] == list(range(0, 100, 2))
    assert (bad, sizes) == ([], [50, 26, 24])  # one window a codec, not one a batch


def test_batches_share_windows_up_to_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for codec in (NONE, LZ4):
        content = b"".join(batch(10 * row, 5, codec) for row in range(20))
        assert rows_of(content)[2] == [100]
        monkeypatch.setattr(module, "RECORD_COUNT_MAX", 12)
        found, _, sizes = rows_of(content)
        assert max(sizes) <= 15
        assert [record[1] for record in found] == [10 * row + number for row in range(20) for number in range(5)]
        monkeypatch.undo()


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_every_window_takes_as_many_batches_as_it_has_room_for(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORD_COUNT_MAX", 25)
    found, bad, sizes = rows_of(b"".join(batch(10 * row, 10, codec) for row in range(8)))
    assert found == [record for row in range(8) for record in expected(row, 10 * row, 10)]
    assert (bad, sizes) == ([], [20] * 4)


def test_a_batch_larger_than_a_window_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORD_COUNT_MAX", 10)
    found, bad, sizes = rows_of(batch(0, 4) + batch(4, 5000) + batch(5004, 3))
    assert [record[1] for record in found] == list(range(5007))
    assert (bad, sizes[0], len(sizes)) == ([], 4, 5)


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_a_batch_that_cannot_be_read_is_told_in_its_place(codec: int) -> None:
    good = Batch(10, [Rec(value=b"x", offset_delta=number) for number in range(3)], 2, codec)
    bad = Batch(10, good.records, 2, codec, stream=b"\xff" * 20)
    found, bad_rows, _ = rows_of(batch(0, 3, codec) + bad.to_bytes() + batch(20, 2, codec))
    assert found == [*expected(0, 0, 3), *expected(2, 20, 2)]
    assert bad_rows == [1]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_stream_that_cannot_be_read_is_told_between_those_that_can(codec: int) -> None:
    """Whatever is wrong: with the stream, with a record in it, with what comes behind its records."""
    record = bytes([12, 0, 0, 0, 1, 1, 0])
    for stream in (b"\xff" * 20, compressed(codec, record * 3 + b"\0"), compressed(codec, record * 2)):
        bad = Batch(30, [Rec(offset_delta=number) for number in range(3)], 2, codec, stream=stream)
        before, behind = [batch(10 * row, 4, codec) for row in range(3)], [batch(40, 4, codec), batch(50, 4, codec)]
        found, bad_rows, _ = rows_of(b"".join([*before, bad.to_bytes(), *behind]))
        assert found == [record for row in (0, 1, 2, 4, 5) for record in expected(row, 10 * row, 4)]
        assert bad_rows == [3]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_streams_are_opened_some_at_a_time(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STREAMS_ENOUGH", 100)
    found, bad, sizes = rows_of(b"".join(batch(10 * row, 8, codec) for row in range(20)))
    assert found == [record for row in range(20) for record in expected(row, 10 * row, 8)]
    assert bad == []
    assert codec == ZSTD or len(sizes) > 5  # some more of zstd's, which are opened together


def test_windows_that_are_kept_stay_as_they_are() -> None:
    content = b"".join(batch(10 * row, 8, [LZ4, ZSTD, NONE][row // 20]) for row in range(60))
    data = np.frombuffer(content, np.uint8)
    table = scan(data)
    kept = [window for window in record_windows(data, table, np.arange(60)) if window.error is None]
    values = [window.value(0) for window in kept]
    assert values == [b"value %d" % (10 * int(window.rows[0])) for window in kept]
    assert len(kept) == 3


def test_the_good_records_of_a_plain_batch_that_fails_come_first() -> None:
    whole = Batch(0, [Rec(value=b"x", offset_delta=number) for number in range(3)], 2)
    broken = bytearray(whole.to_bytes())
    broken[-1] = 9  # the header count of the last record
    found, bad_rows, _ = rows_of(bytes(broken))
    assert [record[1] for record in found] == [0, 1]
    assert bad_rows == [0]


def test_messages_of_old_magics_are_records_too() -> None:
    content = b"".join(
        legacy.entry(offset, legacy.message(offset % 2, None if offset == 2 else b"k%d" % offset, b"v" * offset))
        for offset in range(4)
    )
    found, bad, _ = rows_of(content + batch(4, 2))
    assert [(offset, key, value) for _, offset, key, value, _ in found[:4]] == [
        (0, b"k0", b""),
        (1, b"k1", b"v"),
        (2, None, b"vv"),
        (3, b"k3", b"vvv"),
    ]
    assert found[4:] == expected(4, 4, 2)
    assert bad == []
