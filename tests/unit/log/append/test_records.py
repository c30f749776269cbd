"""Records with keys and headers, as a producer gives them: the fast path and the slow one write the same bytes."""

from __future__ import annotations

from array import array
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest

from logstore.config.topic import parse_config
from logstore.disk.seam import SEAM
from logstore.errors import InvalidRecordError, InvalidTxnStateError, RecordTooLargeError, UsageError
from logstore.folds.verification import VerificationGuard
from logstore.layout.batch import HEADER_SIZE
from logstore.layout.record import EncodedHeaders, encode_headers
from logstore.log import log_appends
from logstore.log.append.fast import FastPath
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec
from tests.support.encoder import SOME_TIME, Batch, Rec
from tests.support.logs import open_partition_log, records_of

HEADERS = [[("trace", b"7f3a"), ("source", None)], [], [("größe", b""), (b"\xff", b"x" * 300)]]
VALUES, KEYS = [b"one", None, b"three" * 40], [b"k", b"", None]
TIMES = [SOME_TIME, SOME_TIME - 70, SOME_TIME + 5]
RAW_HEADERS = [[(key.encode() if isinstance(key, str) else key, value) for key, value in row] for row in HEADERS]
ROWS = list(zip(KEYS, VALUES, RAW_HEADERS, TIMES, strict=True))
EXPECTED = Batch(
    1,
    [Rec(*row, offset_delta=at, timestamp_delta=time - SOME_TIME) for at, (*row, time) in enumerate(ROWS)],
    last_offset_delta=2,
    max_timestamp=SOME_TIME + 5,
).to_bytes()


def opened(place: Path, **config: str) -> PartitionLog:
    """A log with a record, so that the fast path is bound at the next one."""
    log = open_partition_log(place / "t-0", config, seam=SEAM)
    log.append_records([b"first"])
    return log


def appended(log: PartitionLog, *arguments: Any, **named: Any) -> bytes:
    """What an append adds to the file."""
    path = Path(log.state.directory.path) / f"{0:020}.log"
    before = log.size
    log.append_records(*arguments, **named)
    return path.read_bytes()[before : log.size]


def test_a_transaction_begins_only_with_the_guard_of_its_verification(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_records([b"the fast path is bound"])
    guard = log.begin_verification(7, sequence=0, producer_epoch=0, supports_epoch_bump=False)
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    for wrong in (None, VerificationGuard()):
        with pytest.raises(InvalidTxnStateError, match="not part of an ongoing transaction"):
            log.append_records([b"x"], guard=wrong, **fields)
    assert log.append_records([b"x"], guard=guard, **fields).first_offset == 2


WRONG_PRODUCERS = [
    *[(7, -1, 0), (7, -2, 0), (7, 2**15, 0), (7, 2**63, 0), (7, 0, -1), (7, 0, -2), (7, 0, 2**31), (-2, 0, 0)],
    *[(-1, 2**15, -1), (-1, -2, -1), (-1, -1, 2**31), (-1, -1, -2), (2**63, 0, 0)],
]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("producer", WRONG_PRODUCERS)
def test_producer_fields_that_do_not_fit_are_refused(
    producer: tuple[int, int, int], codec: Codec, tmp_path: Path
) -> None:
    log = opened(tmp_path)
    log.append_records([b"the fast path is bound"])
    fields = dict(zip(("producer_id", "producer_epoch", "base_sequence"), producer, strict=True))
    for count in (1, 3):
        with pytest.raises(UsageError):
            log.append_records([b"x"] * count, codec=codec, **fields)
    with pytest.raises(UsageError, match="without a valid producer ID"):
        log.append_records([b"x"], codec=codec, is_transactional=True)
    assert log.log_end_offset == 2
    assert not len(log.state.producers.state)


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (7, -1), (7, 2**15), (2**63, 0)])
def test_producer_fields_of_markers_that_do_not_fit_are_refused(
    producer_id: int, producer_epoch: int, tmp_path: Path
) -> None:
    log = opened(tmp_path)
    log.append_records([b"the fast path is bound"])
    with pytest.raises(UsageError):
        log.append_end_transaction(
            producer_id, producer_epoch, is_commit=True, coordinator_epoch=0, transaction_version=1
        )
    assert log.log_end_offset == 2


@pytest.mark.parametrize("value", [b"alone", b"", None])
def test_a_value_alone_has_nothing_of_the_records_before(value: bytes | None, tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_records(VALUES, KEYS, TIMES, EncodedHeaders([encode_headers(row) for row in RAW_HEADERS]))
    assert appended(log, [value]) == Batch(4, [Rec(None, value)]).to_bytes()


def test_no_record_has_no_offset(tmp_path: Path) -> None:
    log = opened(tmp_path)
    info = log.append_records([])
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (-1, -1, 1)


def test_a_topic_s_own_codec_has_its_own_level(tmp_path: Path) -> None:
    """The level of a request is that of its own codec; of another one it is that of the topic."""
    log = opened(tmp_path, **{"compression.type": "gzip", "compression.gzip.level": "1"})
    log.append_records([b"the fast path is bound"])
    path, records, found = Path(log.state.directory.path) / f"{0:020}.log", [b"%d" % row for row in range(999)], []
    for codec, level in ((Codec.GZIP, None), (Codec.NONE, None), (Codec.ZSTD, 9), (Codec.GZIP, 9)):
        before = log.size
        log.append_records(records, codec=codec, level=level)
        found.append(path.read_bytes()[before + HEADER_SIZE : log.size])
    assert found[0] == found[1] == found[2] != found[3]


def test_the_next_append_goes_by_another_configuration(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_records([b"the fast path is bound"])
    log.update_config(parse_config({"max.message.bytes": "100"}))
    with pytest.raises(RecordTooLargeError):
        log.append_records([b"x" * 100])
    log.update_config(parse_config({"cleanup.policy": "compact"}))
    with pytest.raises(InvalidRecordError):
        log.append_records([b"without a key"])
    log.update_config(parse_config({}))
    assert log.append_records([b"x" * 100]).first_offset == 2
    log.close()


@pytest.mark.parametrize("kind", [list, tuple])
def test_keys_and_headers_take_the_fast_path(tmp_path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(tmp_path)
    monkeypatch.setattr(log_appends, "append_slowly", None)
    encoded = HEADERS if kind is list else EncodedHeaders([encode_headers(HEADERS[0]), b"", encode_headers(HEADERS[2])])
    assert appended(log, kind(VALUES), kind(KEYS), kind(TIMES), encoded) == EXPECTED
    log.close()


def test_the_slow_path_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(tmp_path)
    monkeypatch.setattr(FastPath, "try_append", lambda *_: None)
    assert appended(log, VALUES, KEYS, TIMES, HEADERS) == EXPECTED
    log.close()


def test_many_records_are_the_same_by_both_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than the fast path has memory for at first, of which some have what others have not."""
    count = 3000
    keys = [None if row % 7 == 0 else b"key %d" % row for row in range(count)]
    values = [b"v" * (row % 200) for row in range(count)]
    headers = [[("row", b"%d" % row)] * (row % 4) for row in range(count)]
    for columns in (values,), (values, keys), (values, keys, None, headers), (values, None, list(range(count)), None):
        written = []
        for name in "fast", "slow":
            (tmp_path / name).mkdir(exist_ok=True)
            log = opened(tmp_path / name, **{"message.timestamp.type": "LogAppendTime"})
            with monkeypatch.context() as patch:
                if name == "fast":
                    patch.setattr(log_appends, "append_slowly", None)
                else:
                    patch.setattr(FastPath, "try_append", lambda *_: None)
                written.append(appended(log, *columns))
            log.close()
            rmtree(tmp_path / name)
        assert written[0] == written[1]


def test_bytes_of_all_kinds_are_taken(tmp_path: Path) -> None:
    log = opened(tmp_path)
    kinds: Any = [b"a", bytearray(b"b"), memoryview(b"c"), type("Mine", (bytes,), {})(b"d")]
    log.append_records(kinds, kinds)
    records = records_of(log)[1:]
    assert [(record.key, record.value) for record in records] == [(each, each) for each in (b"a", b"b", b"c", b"d")]
    log.close()


def test_headers_that_are_none_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for headers in [b"\2"], [[("k", 5)]], ["text"], [[("k", b"v")], []]:
        with pytest.raises(UsageError):
            log.append_records([b"v"], headers=headers)  # type: ignore[arg-type]
    assert log.log_end_offset == 1
    log.close()


WIDE = [
    array("f", [1, 2, 3]),
    np.arange(3, dtype="<i4"),
    memoryview(array("i", [1, 2])),
    memoryview(b"abcdef")[::2],
    memoryview(bytes(6)).cast("B", (2, 3)),
    type("Longer", (bytes,), {"__len__": lambda self: 7})(b"ab"),
    "text",
    [],
    {},
    False,
    0,
]


@pytest.mark.parametrize("wide", WIDE, ids=lambda wide: type(wide).__name__)
@pytest.mark.parametrize("codec", ["producer", "gzip"])
def test_the_size_of_what_is_given_is_its_bytes_or_it_is_refused(tmp_path: Path, wide: Any, codec: str) -> None:
    log = opened(tmp_path, **{"compression.type": codec})
    is_bytes = isinstance(wide, bytes | memoryview)
    expected = memoryview(wide).tobytes() if is_bytes else None

    def append(*arguments: Any) -> None:
        end_offset = log.log_end_offset
        if is_bytes:
            log.append_records(*arguments)
        else:
            with pytest.raises(UsageError):
                log.append_records(*arguments)
            assert log.log_end_offset == end_offset

    append([wide, b"secret", b"tail"])
    append([b"1", b"2"], [b"k", wide])
    append([b"1"], None, None, [[("trace", wide), ("next", b"n")]])
    if not isinstance(wide, str):
        append([b"1"], None, None, [[(wide, b"of a wide key")]])
    found = [(record.key, record.value, list(record.headers)) for record in records_of(log)[1:]]
    plain: list[Any] = [(None, value, []) for value in (expected, b"secret", b"tail")]
    plain += [(b"k", b"1", []), (expected, b"2", [])]
    key = None if expected is None else expected.decode()
    plain += [(None, b"1", [("trace", expected), ("next", b"n")]), (None, b"1", [(key, b"of a wide key")])]
    assert found == (plain if is_bytes else [])
    log.close()


def test_a_batch_with_gaps_in_its_memory_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for data in (memoryview(b"abcdef")[::2], np.arange(10, dtype="u1")[::2], "text", 5):
        with pytest.raises(UsageError, match="one piece of bytes"):
            log.append_as_leader(data)  # type: ignore[arg-type]
    log.close()


SECOND_MS = SOME_TIME // 1000 * 1000
SECOND = np.array([SECOND_MS // 1000], "datetime64[s]")


@pytest.mark.parametrize(
    "times",
    [
        [1.7],
        ["5"],
        [None],
        [True],
        [1 << 63],
        5,
        np.array([1.7]),
        [datetime(2026, 1, 1)],
        np.array(["NaT"], "M8[s]"),
        np.array([1 << 62], "M8[D]"),
    ],
)
def test_times_that_are_no_milliseconds_are_refused(tmp_path: Path, times: Any) -> None:
    log = opened(tmp_path)
    with pytest.raises(UsageError, match="Timestamps are not milliseconds since 1970"):
        log.append_records([b"x"], timestamps=times)
    assert log.log_end_offset == 1


@pytest.mark.parametrize("times", [SECOND, [SECOND_MS], np.array([SECOND_MS]), SECOND.astype("M8[us]")])
def test_times_of_numpy_count_in_their_own_unit(tmp_path: Path, times: Any) -> None:
    assert opened(tmp_path).append_records([b"x"], timestamps=times).max_timestamp == SECOND_MS


def test_a_codec_is_given_by_its_name_too(tmp_path: Path) -> None:
    log = opened(tmp_path)
    values = [b"x" * 1000]
    by_name, by_itself = (
        appended(log, values, None, [5], codec="zstd"),
        appended(log, values, None, [5], codec=Codec.ZSTD),
    )
    assert by_name[8:] == by_itself[8:]
    assert len(by_name) < 200
    for wrong in ({"codec": "zip"}, {"codec": 4}, {"codec": "gzip", "level": "9"}):
        with pytest.raises(UsageError):
            log.append_records(values, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [
    lambda log: log.append_records([b"x"], producer_id=None),
    lambda log: log.append_records([b"x"], leader_epoch="0"),
    lambda log: log.append_records([b"x"], headers=5),
    lambda log: log.append_columns([b"x"]),
    lambda log: log.append_end_transaction("1", 0, is_commit=True, coordinator_epoch=0, transaction_version=1),
    lambda log: log.begin_verification(None, sequence=0, producer_epoch=0, supports_epoch_bump=False),
    lambda log: log.producer("1"),
    lambda log: log.delete_records("1"),
    lambda log: log.increment_log_start_offset(None),
    lambda log: log.read(None, 100),
    lambda log: log.read(0, None),
    lambda log: log.records("0"),
    lambda log: log.records(float("nan")),
    lambda log: log.records(0, end_offset="1"),
    lambda log: log.offset_for_timestamp(None),
])  # fmt: skip
def test_calls_of_a_log_name_a_wrong_argument(tmp_path: Path, call: Any) -> None:
    with pytest.raises(UsageError, match="found"):
        call(opened(tmp_path))
