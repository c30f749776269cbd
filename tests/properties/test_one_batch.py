"""A batch that is built in kept buffers has the bytes, or is refused in the words, of one that is built over arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.columns import one_batch, record_building
from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.errors import LogstoreError
from logstore.model import Codec, TimestampType

TIMES = st.integers(0, 2**41) | st.sampled_from([-1, -2, 0, 2**63 - 1])
TEXTS = st.none() | st.binary(max_size=20)


@st.composite
def columns(draw: st.DrawFn) -> RecordColumns:
    """Up to six rows; rarely a range that is not there."""
    count = draw(st.integers(0, 6))
    fields: list[BytesColumn | None] = []
    for values in (TEXTS, TEXTS, st.sampled_from([b"\x00", b"\x02\x02a\x01"])):
        rows = draw(st.none() | st.lists(values, min_size=count, max_size=count))
        column = None if rows is None else BytesColumn.of_values(rows)
        if column is not None and count and draw(st.integers(0, 30)) == 0:
            column.ends[draw(st.integers(0, count - 1))] += 1000
        fields.append(column)
    times = draw(st.none() | st.lists(TIMES, min_size=count, max_size=count))
    keys, values, headers = fields
    return RecordColumns(count, keys, values, None if times is None else np.array(times, np.int64), headers)


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "base_offset": st.sampled_from([0, 7, 2**63 - 1, 2**63 - 3]),
        "codec": st.sampled_from(Codec),
        "partition_leader_epoch": st.integers(-1, 9),
        "timestamp_type": st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]),
        "log_append_time": st.integers(-1, 2**41),
        "delete_horizon_ms": st.none() | st.integers(0, 2**41),
        "last_offset_delta": st.none() | st.integers(0, 9),
    },
)
PRODUCERS = st.just({}) | st.just({"producer_id": 5, "producer_epoch": 2, "base_sequence": 3, "is_transactional": True})


def built(rows: RecordColumns, arguments: dict[str, Any]) -> bytes | str:
    try:
        data = build_batch(rows, **arguments)
    except LogstoreError as error:
        return f"{type(error).__name__} {error}"
    assert data.flags.writeable
    assert data.dtype == np.uint8
    return data.tobytes()


@given(rows=columns(), header=HEADERS, producer=PRODUCERS, data=st.data())
def test_kept_buffers_make_no_difference(
    rows: RecordColumns, header: dict[str, Any], producer: dict[str, Any], data: st.DataObject
) -> None:
    deltas = data.draw(st.none() | st.lists(st.integers(-1, 9), min_size=rows.count, max_size=rows.count).map(sorted))
    arguments = {**header, **producer, "offset_deltas": None if deltas is None else np.array(deltas, np.int64)}
    quick = built(rows, arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_building, "COUNT_MAX", -1)
        assert built(rows, arguments) == quick


def test_a_batch_that_has_no_room_there_is_built_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = RecordColumns(3, None, BytesColumn.of_values([b"v" * 100] * 3))
    whole = build_batch(rows)
    monkeypatch.setattr(one_batch, "SIZE_MAX", 300)
    monkeypatch.setattr(record_building, "_spare", [])
    assert build_batch(rows).tobytes() == whole.tobytes()


def test_batches_are_built_by_many_threads_at_once() -> None:
    wrong: list[int] = []

    def build(number: int) -> None:
        rows = RecordColumns(number + 1, None, BytesColumn.of_values([b"%d" % number] * (number + 1)))
        expected = build_batch(rows).tobytes()
        for _ in range(200):
            if build_batch(rows).tobytes() != expected:
                wrong.append(number)

    threads = [threading.Thread(target=build, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
