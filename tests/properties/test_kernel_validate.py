"""The quick check of a batch: its kernels against a slow twin, and all of it against the long way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from logstore.columns.batch_table import BatchTable, scan
from logstore.errors import LogstoreError
from logstore.folds.producer_update import AppendOrigin
from logstore.kernels import decode
from logstore.kernels import scan as fields
from logstore.kernels import validate as quick
from logstore.log.analyze import analyze
from logstore.log.batch_validator import BatchValidator
from logstore.log.config import parse_config
from logstore.log.validate import Validated, validate
from logstore.log.validation_rules import ValidationRules
from tests.kafka.append_cases import NOW, Case, random_case
from tests.naive.encoder import SOME_TIME, Batch, Rec, compressed, record_bytes
from tests.naive.validate import Settings, plain_row, stamped
from tests.properties.kernel_inputs import BYTE_EDGES, consecutive, damaged, headers, ints, longs, records
from tests.unit.kernel_forms import run_both

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
    base_offset=longs.filter(lambda offset: offset >= 0),
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


class Call:
    """One batch checked by both forms of the kernels; `data` is what they leave."""

    def __init__(self, data: bytes, of: Settings) -> None:
        self.data = np.frombuffer(bytearray(data), np.uint8)
        self.slots = np.zeros(quick.SLOT_COUNT, np.int64)
        self.matrix = np.full((fields.COLUMN_COUNT, 1), -77, np.int64)
        self.slots[quick.SIZE : quick.RECORDS_MAX_TIMESTAMP] = [len(data), *of]
        self.records = np.zeros((decode.COLUMN_COUNT, quick.ROW_COUNT), np.int64)
        self.status = run_both(quick.validate_batch, self.data, self.slots, self.matrix, self.records)

    def finish(self, stream: bytes) -> None:
        """Check the records of a compressed batch."""
        records_data = np.frombuffer(stream, np.uint8)
        checked = (self.data, records_data, len(stream), self.slots, self.matrix, self.records)
        self.status = run_both(quick.validate_compressed, *checked)


@settings(max_examples=250)
@given(batches(), call_settings)
def test_a_batch_is_taken_and_stamped_as_by_the_twin(batch: tuple[bytes, bytes], of: Settings) -> None:
    data, stream = batch
    call = Call(data, of)
    row = plain_row(data, of)
    if row is not None and row.attributes & 7:
        assert (call.status, call.data.tobytes()) == (quick.IS_COMPRESSED, data)
        call.finish(stream)
    else:
        stream = data[61:]
    wanted = stamped(data, stream, of)
    event("taken" if wanted is not None else "left")
    assert call.status == (quick.NOT_QUICK if wanted is None else quick.OK)
    assert call.data.tobytes() == (data if wanted is None else wanted)
    if wanted is not None:
        table = scan(call.data, check_crc=True)
        assert np.array_equal(call.matrix, table.matrix[:, :1])


ONE = Batch(0, [Rec(b"k", b"v")])
AT_ONCE, LEFT = quick.OK, quick.NOT_QUICK
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
    call = Call(data, of)
    assert call.status == status
    assert call.data.tobytes() == (data if wanted is None else wanted)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 10, 127, 128, 255]), max_size=40).map(bytes), st.integers(1, 9))
def test_records_of_noise_are_taken_as_by_the_twin(noise: bytes, count: int) -> None:
    batch = Batch(0, [Rec()] * count, last_offset_delta=count - 1, max_timestamp=3, base_timestamp=0, stream=noise)
    call = Call(batch.to_bytes(), Settings())
    wanted = stamped(batch.to_bytes(), noise, Settings())
    assert call.status == (quick.NOT_QUICK if wanted is None else quick.OK)


def long_way(case: Case, data: bytes, rules: ValidationRules) -> object:
    array, origin = np.frombuffer(data, np.uint8), AppendOrigin[case.origin]
    analyzed = analyze(array, origin=origin, leader_epoch=case.leader_epoch, rules=rules)
    if not analyzed.valid_size:
        return None
    return told(
        validate(
            array,
            analyzed,
            origin=origin,
            base_offset=case.end_offset,
            leader_epoch=case.leader_epoch,
            now_ms=NOW,
            rules=rules,
        )
    )


def told(result: Validated | None) -> object:
    """All that there is to compare."""
    if result is None:
        return None
    table: BatchTable = result.table
    return (
        result.data.tobytes(),
        [table.row(row) for row in range(len(table))],
        (table.status, table.next_position),
        (result.first_offset, result.last_offset, result.max_timestamp, result.log_append_time),
    )


def refusal(error: LogstoreError) -> object:
    return type(error), str(error), error.java_class, getattr(error, "record_errors", None)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=4))
def test_a_validator_answers_as_the_long_way(numbers: list[int]) -> None:
    cases = [replace(case, origin="CLIENT") if case.origin[0] == "R" else case for case in map(random_case, numbers)]
    rules = ValidationRules.of(parse_config(cases[0].config), "t-0")
    validator = BatchValidator(rules)
    for case in cases:
        try:
            wanted = long_way(case, case.data, rules)
        except LogstoreError as error:
            wanted = refusal(error)
        before = case.data
        try:
            answer = told(
                validator.validate(
                    case.data,
                    origin=AppendOrigin[case.origin],
                    base_offset=case.end_offset,
                    leader_epoch=case.leader_epoch,
                    now_ms=NOW,
                )
            )
        except LogstoreError as error:
            answer = refusal(error)
        assert answer == wanted, case
        assert case.data == before
