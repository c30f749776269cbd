"""Batches that this process builds are compressed once, and never decompressed, decoded or checked on their way in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logstore
from logstore.columns.batch_table import scan
from logstore.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    LogstoreError,
    RecordTooLargeError,
    UsageError,
)
from logstore.layout.batch import CODEC_MASK, CONTROL_FLAG
from logstore.layout.record import EncodedHeaders, encode_headers
from logstore.model import Codec
from tests.support.built import build_batch_from_records
from tests.support.clock import Clock
from tests.support.fast_and_slow import START_MS, open_fast_or_slow

CONFIGS: list[dict[str, str]] = [
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "zstd"},
    {"compression.type": "lz4", "message.timestamp.type": "LogAppendTime"},
    {"compression.type": "uncompressed"},
]
ZSTD = {"compression.type": "zstd", "compression.zstd.level": "-5"}  # no level of another codec
CODECS = ["gzip", "snappy", "lz4", "zstd"]
VALUES = [b"value %d" % number for number in range(150)]


@pytest.fixture
def unopened(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing may be decompressed, as every look into a compressed batch has to."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a batch that was built here is opened again")

    monkeypatch.setattr("logstore.log.append.request.decompress", refuse)
    monkeypatch.setattr("logstore.columns.record_table.decompress", refuse)
    return monkeypatch


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("owner", ["producer", "topic", "both"])
@pytest.mark.parametrize("is_transactional", [False, True])
def test_sent_batches_are_not_opened_again(
    codec: str, owner: str, is_transactional: bool, unopened: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t", config={} if owner == "producer" else {"compression.type": codec})
        sent = {"topic": "none", "both": "lz4" if codec == "zstd" else "zstd"}.get(owner, codec)
        producer = store.producer(
            compression_type=sent, transactional_id="id" if is_transactional else None, linger_ms=10_000
        )
        if is_transactional:
            producer.init_transactions()
            producer.begin_transaction()
        futures = [producer.send("t", value, headers=[("h", b"1")]) for value in VALUES]
        producer.flush()
        columns = producer.send_columns("t", values=VALUES)
        if is_transactional:
            producer.commit_transaction()
        log, expected = store.log("t", 0), [*VALUES, VALUES[0]]
        if owner != "producer":
            log.append_records(VALUES)
            log.append_records(VALUES[:1])
        unopened.undo()

        assert [future.get().offset for future in futures] == list(range(150))
        assert (columns[0].first_offset, columns[0].last_offset) == (150, 299)
        assert [record.value for record in store.read("t")] == VALUES * 2 + ([] if owner == "producer" else expected)
    segment = np.fromfile(tmp_path / "t-0" / "00000000000000000000.log", np.uint8)
    table = scan(segment, check_crc=True)
    is_marker = table.attributes & CONTROL_FLAG != 0
    assert table.is_valid.all()
    assert set(table.attributes[~is_marker] & CODEC_MASK) == {Codec[codec.upper()]}


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("count", [1, 10, 150])
@pytest.mark.parametrize("is_fast", [True, False])
def test_the_bytes_are_those_of_a_clients_batch(
    codec: Codec, config: dict[str, str], count: int, is_fast: bool, tmp_path: Path
) -> None:
    producer = {"producer_id": 5, "producer_epoch": 1, "is_transactional": True}
    keys, headers = [b"k"] * count, EncodedHeaders([encode_headers([("h", None)])] * count)
    logs = [open_fast_or_slow(tmp_path / name, config, Clock(START_MS), is_fast=is_fast) for name in ("a-0", "b-0")]
    for base_sequence in (0, count, count):  # the last one is a duplicate
        times = [START_MS + base_sequence + number % 7 for number in range(count)]
        rows = list(zip(keys, VALUES[:count], times, headers, strict=True))
        batch = build_batch_from_records(rows, codec=codec, base_sequence=base_sequence, **producer)
        ours = logs[0].append_records(
            VALUES[:count], keys, times, headers, codec=codec, base_sequence=base_sequence, **producer
        )
        assert ours == logs[1].append_as_leader(batch)
    for log in logs:
        log.close()
    ours_by_name, theirs_by_name = (
        {file.name: file.read_bytes() for file in sorted((tmp_path / name).iterdir())} for name in ("a-0", "b-0")
    )
    assert ours_by_name == theirs_by_name


@pytest.mark.parametrize(
    ("config", "keys", "timestamps", "error"),
    [
        ({"cleanup.policy": "compact"}, [b"k", None], None, InvalidRecordError),
        ({"cleanup.policy": "compact", **ZSTD}, [b"k", None], None, InvalidRecordError),
        ({"message.timestamp.before.max.ms": "20"}, None, [START_MS, START_MS - 21], InvalidTimestampError),
        ({"message.timestamp.after.max.ms": "20"}, None, [START_MS + 21, -1], InvalidTimestampError),
        ({"max.message.bytes": "60"}, None, None, RecordTooLargeError),
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_refusals_are_those_of_a_clients_batch(
    config: dict[str, str],
    keys: list[bytes | None] | None,
    timestamps: list[int] | None,
    error: type[LogstoreError],
    codec: Codec,
    tmp_path: Path,
) -> None:
    values = [b"1", b"2"]
    log = open_fast_or_slow(tmp_path / "t-0", config, Clock(START_MS), is_fast=True)
    with pytest.raises(error) as ours:
        log.append_records(values, keys, timestamps, codec=codec)
    times = [START_MS] * 2 if timestamps is None else timestamps
    rows = list(zip([None, None] if keys is None else keys, values, times, [b""] * 2, strict=True))
    with pytest.raises(error) as theirs:
        log.append_as_leader(build_batch_from_records(rows, codec=codec))
    assert ours.value.message == theirs.value.message
    assert getattr(ours.value, "record_errors", ()) == getattr(theirs.value, "record_errors", ())
    with pytest.raises(UsageError):
        log.append_records(values, [b"k"], codec=codec)
    assert log.log_end_offset == 0
    log.close()
