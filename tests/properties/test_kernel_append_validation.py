"""The check and stamp of a batch in the append kernel against a slow twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from logstore.columns.batch_table import scan
from logstore.kernels.append import structs as kinds
from logstore.kernels.fold import producer_struct
from tests.naive.validate import CONTROL, Settings, plain_row, stamped
from tests.properties.kernel_inputs import BYTE_EDGES, consecutive, damaged, headers, ints, longs, records
from tests.support.append_forms import AppendForms
from tests.support.encoder import SOME_TIME, Batch, Rec, compressed, record_bytes
from tests.support.sampling import examples

plain_records = st.builds(
    Rec,
    key=st.none() | st.binary(max_size=9),
    value=st.none() | st.binary(max_size=200),
    headers=st.just([]) | headers,
    timestamp_delta=st.integers(-3, 3) | st.integers(60, 70) | st.integers(8190, 8193) | st.integers(0, 2**40),
)


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Nine times of ten the usual."""
    return st.sampled_from([usual] * 9 * len(others) + list(others))


call_settings = st.builds(
    Settings,
    base_offset=longs.filter(lambda offset: 0 <= offset < 2**62),
    leader_epoch=ints,
    now_ms=mostly(SOME_TIME, SOME_TIME + 70, 0, 2**62 - 1, 2**62, -1),
    is_client=st.booleans(),
    batch_size_max=mostly(2**31 - 1, 100, 0),
    codec=mostly(-1, 0, 4),
    is_log_append_time=mostly(False, True, True, True),
    timestamp_before_max_ms=mostly(2**63 - 1, 0, 1, 2, 3, 1000),
    timestamp_after_max_ms=mostly(2**63 - 1, 0, 1, 2, 3, 64, 65, 66),
    needs_keys=mostly(False, True, True),
)
odd_fields = [
    {"base_offset": 1},
    {"last_offset_delta": 7},
    {"codec": 6},
    {"max_timestamp": 5},
    {"base_timestamp": -1},
    {"base_timestamp": -(2**63)},
    {"base_timestamp": 2**62},
    {"producer_id": -2},
    {"base_sequence": -1},
]


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A batch as a producer sends it, or nearly so, and its records without compression."""
    of = draw(consecutive(records if draw(mostly(False, True)) else plain_records, 6)) or [Rec()]
    stream = b"".join(map(record_bytes, of))
    if draw(mostly(False, True)):
        stream = draw(damaged(st.just(stream)))
    times = [SOME_TIME + record.timestamp_delta for record in of]
    codec = draw(st.sampled_from([0, 0, 4]))
    batch = Batch(
        0,
        of,
        last_offset_delta=len(of) - 1,
        codec=codec,
        flags=draw(mostly(0, 0x10, 0x30, 0x40, 0x80, 0x08, -0x8000, 0x7FD0)),
        max_timestamp=max(min(max(times), 2**63 - 1), -1),
        producer_id=draw(st.sampled_from([-1, 7])),
        producer_epoch=0,
        base_sequence=draw(st.sampled_from([0, 2**31 - 1])),
        stream=compressed(codec, stream),
    )
    if batch.producer_id < 0:
        batch = replace(batch, base_sequence=-1)
    if draw(mostly(False, True)):
        batch = replace(batch, **draw(st.sampled_from(odd_fields)))
    content = bytearray(batch.to_bytes())
    if draw(mostly(False, True)):
        at = draw(st.integers(0, len(content) - 1) | st.integers(0, 60))
        content[at] = draw(st.sampled_from(BYTE_EDGES))
    return bytes(content[: len(content) - draw(mostly(0, 1, 40))]), stream


class Call(AppendForms):
    """One batch that a log which begins there is to append."""

    def __init__(self, data: bytes, stream: bytes, of: Settings) -> None:
        super().__init__(
            max(len(data), 1),
            leader_epoch=of.leader_epoch,
            batch_size_max=of.batch_size_max,
            codec=of.codec,
            is_log_append_time=of.is_log_append_time,
            timestamp_before_max_ms=of.timestamp_before_max_ms,
            timestamp_after_max_ms=of.timestamp_after_max_ms,
            needs_keys=of.needs_keys,
        )
        self.log.log_end_offset = self.indexes.struct.base_offset = of.base_offset
        self.fast.out[: len(data)] = np.frombuffer(data, np.uint8)
        if stream:
            self.request.records = np.frombuffer(stream, np.uint8)
        self.status = self.append(
            kind=kinds.BATCH,
            size=len(data),
            records_size=len(stream),
            now_ms=of.now_ms,
            origin=producer_struct.CLIENT if of.is_client else producer_struct.COORDINATOR,
        )
        self.left = self.fast.out[: len(data)].tobytes()


@settings(max_examples=examples(250))
@given(batches(), call_settings)
def test_a_batch_is_taken_and_stamped_as_by_the_twin(batch: tuple[bytes, bytes], of: Settings) -> None:
    data, stream = batch
    row = plain_row(data, of)
    call = Call(data, stream, of)
    if row is None or not row.attributes & 7:
        stream = data[61:]
    wanted = stamped(data, stream, of)
    if row is not None and row.attributes & CONTROL and row.producer_id >= 0:
        wanted = None  # no marker
        call.left = data
    event("taken" if wanted is not None else "left")
    assert call.status == (LEFT if wanted is None else AT_ONCE)
    assert call.left == (data if wanted is None else wanted)
    assert call.written == ([] if wanted is None else [(5, wanted)])
    if wanted is not None:
        table = scan(np.frombuffer(wanted, np.uint8), check_crc=True)
        assert np.array_equal(call.fast.row, table.matrix[:, :1])
        assert call.log.log_end_offset == of.base_offset + row.record_count  # type: ignore[union-attr]


ONE = Batch(0, [Rec(b"k", b"v")])
AT_ONCE, LEFT = kinds.APPENDED, kinds.NOT_FOR_FAST_PATH
NOW_SETTINGS = Settings(now_ms=SOME_TIME + 10)


def of_stream(stream: bytes, count: int = 1) -> Batch:
    return Batch(0, [Rec()] * count, last_offset_delta=count - 1, stream=stream)


@pytest.mark.parametrize(
    ("batch", "of", "status"),
    [
        (ONE, NOW_SETTINGS, AT_ONCE),
        (ONE, NOW_SETTINGS._replace(timestamp_before_max_ms=10), AT_ONCE),
        (ONE, NOW_SETTINGS._replace(timestamp_before_max_ms=9), LEFT),
        (ONE, Settings(now_ms=SOME_TIME - 10, timestamp_after_max_ms=10), AT_ONCE),
        (ONE, Settings(now_ms=SOME_TIME - 10, timestamp_after_max_ms=9), LEFT),
        (replace(ONE, base_timestamp=-1, max_timestamp=-1), NOW_SETTINGS._replace(timestamp_before_max_ms=0), AT_ONCE),
        (replace(ONE, base_timestamp=-2), NOW_SETTINGS, LEFT),
        (replace(ONE, base_timestamp=2**62), NOW_SETTINGS._replace(timestamp_after_max_ms=2**63 - 1), AT_ONCE),
        (replace(ONE, base_timestamp=2**62 + 1), NOW_SETTINGS._replace(timestamp_after_max_ms=2**63 - 1), LEFT),
        (replace(ONE, last_offset_delta=1), NOW_SETTINGS, LEFT),
        (replace(ONE, max_timestamp=5, flags=-0x8000), NOW_SETTINGS, AT_ONCE),
        (replace(ONE, max_timestamp=5, flags=0x40), NOW_SETTINGS, AT_ONCE),
        (replace(ONE, codec=6), NOW_SETTINGS, LEFT),
        (ONE, NOW_SETTINGS._replace(codec=4), LEFT),
        (of_stream(b"\x0c\0\0\0\x01\x01\0"), NOW_SETTINGS, AT_ONCE),
        (of_stream(b"\x0c\0\0\0\x01\x01\0\0"), NOW_SETTINGS, LEFT),  # one byte over
        (of_stream(b"\x7e\0\0\0\x01\x64"), NOW_SETTINGS, LEFT),  # a value of 50 bytes that are not there
        (of_stream(b"\x0a\0\0\0\x01\x01\0"), NOW_SETTINGS, LEFT),  # says 5 bytes, has 6
        (of_stream(b"\x0e\0\0\0\x01\x01\0\0"), NOW_SETTINGS, LEFT),  # says 7, has 6 and one over
        (of_stream(b"\x0e\0\0\0\x01\x01\0"), NOW_SETTINGS, LEFT),  # says 7, which are not there
        (of_stream(b"\x0a\0\0\0\x01\x01\0\x0e\0\0\x02\x01\x01\0\0", 2), NOW_SETTINGS, LEFT),
        (of_stream(b"\x0c\0\0\0\x01\x01\x01"), NOW_SETTINGS, LEFT),  # header count -1
        (of_stream(b"\x10\0\0\0\x01\x01\x02\0\0"), NOW_SETTINGS, AT_ONCE),
        (of_stream(b"\x10\0\0\0\x01\x01\x02\x01\0"), NOW_SETTINGS, LEFT),  # header key size -1
        (of_stream(b"\x0c\0\0\0\x01\x01\x02"), NOW_SETTINGS, LEFT),  # a header that is not there
    ],
)
def test_the_limits_are_those_of_the_twin(batch: Batch, of: Settings, status: int) -> None:
    data = batch.to_bytes()
    wanted = stamped(data, data[61:], of)
    assert (wanted is not None) == (status == AT_ONCE)
    call = Call(data, b"", of)
    assert call.status == status
    assert call.left == (data if wanted is None else wanted)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 10, 127, 128, 255]), max_size=40).map(bytes), st.integers(1, 9))
def test_records_of_noise_are_taken_as_by_the_twin(noise: bytes, count: int) -> None:
    batch = Batch(0, [Rec()] * count, last_offset_delta=count - 1, max_timestamp=3, base_timestamp=0, stream=noise)
    call = Call(batch.to_bytes(), b"", Settings())
    wanted = stamped(batch.to_bytes(), noise, Settings())
    assert call.status == (LEFT if wanted is None else AT_ONCE)
