"""`max.decompressed.message.bytes` of Kafka 4.4: a record of a compressed batch that is larger is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import logstore
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.errors import InvalidRecordError
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec
from tests.support.clock import Clock
from tests.support.encoder import GZIP, Batch, Rec, compressed, record_bytes
from tests.support.fast_and_slow import START_MS, open_fast_or_slow

LIMIT = "max.decompressed.message.bytes"
OVERHEAD = 7  # of a record with a value of 60 to 190 bytes: attributes, deltas, sizes, count of headers
V4_4 = {"logstore.kafka.version": "4.4"}
Append = Callable[[PartitionLog, int, Codec], object]


def as_batch(log: PartitionLog, size: int, codec: Codec) -> object:
    records = [Rec(value=b"a"), Rec(value=bytes(size), offset_delta=1)]
    batch = Batch(0, records, 1, codec, base_timestamp=START_MS, max_timestamp=START_MS)
    return log.append_as_leader(np.frombuffer(batch.to_bytes(), np.uint8))


def as_records(log: PartitionLog, size: int, codec: Codec) -> object:
    return log.append_records([b"a", bytes(size)], codec=codec)


def as_columns(log: PartitionLog, size: int, codec: Codec) -> object:
    columns = RecordColumns(2, None, BytesColumn.of_values([b"a", bytes(size)]), None, None)
    return log.append_columns(columns, codec=codec)


@pytest.mark.parametrize("is_fast", [True, False], ids=["fast", "slow"])
@pytest.mark.parametrize("append", [as_batch, as_records, as_columns])
@pytest.mark.parametrize("stored", ["producer", "uncompressed", "zstd"])
def test_a_larger_record_is_refused(tmp_path: Path, append: Append, stored: str, is_fast: bool) -> None:
    config = {**V4_4, LIMIT: 100 + OVERHEAD, "compression.type": stored}
    (tmp_path / "t-0").mkdir()
    log = open_fast_or_slow(tmp_path / "t-0", config, Clock(START_MS), is_fast=is_fast)
    for _ in range(2):  # the second goes the fast path, where there is one
        append(log, 100, Codec.GZIP)
        end = log.log_end_offset
        text = r"^Invalid record size: 108 exceeds the configured maximum record size of 107\."
        with pytest.raises(InvalidRecordError, match=text):
            append(log, 101, Codec.GZIP)
        assert log.log_end_offset == end
        append(log, 101, Codec.NONE)  # the producer's: what a topic compresses itself is not looked at
    assert log.log_end_offset == 8


@pytest.mark.parametrize("is_fast", [True, False], ids=["fast", "slow"])
@pytest.mark.parametrize("stored", ["producer", "uncompressed"])
def test_a_negative_size_is_refused_by_4_4(tmp_path: Path, stored: str, is_fast: bool) -> None:
    body = record_bytes(Rec(value=b"a"))
    stream = compressed(GZIP, b"\x01" + body[1:])  # of -1 bytes
    batch = Batch(0, [Rec()], 0, GZIP, base_timestamp=START_MS, max_timestamp=START_MS, stream=stream).to_bytes()
    for version in ("4.3", "4.4"):
        config = {"logstore.kafka.version": version, "compression.type": stored}
        (tmp_path / version / "t-0").mkdir(parents=True)
        log = open_fast_or_slow(tmp_path / version / "t-0", config, Clock(START_MS), is_fast=is_fast)
        log.append_records([b"a"])
        if version == "4.3" and stored == "producer":
            log.append_as_leader(np.frombuffer(batch, np.uint8))  # a leader of 4.3 ignores the size
            continue
        with pytest.raises(InvalidRecordError, match=r"Invalid record size: -1 is negative\."):
            log.append_as_leader(np.frombuffer(batch, np.uint8))


def test_a_changed_limit_holds_at_once(tmp_path: Path) -> None:
    with logstore.open(tmp_path, kafka_version="4.4") as store:
        store.create_topic("t")
        producer = store.producer(compression_type="gzip")
        producer.send("t", value=bytes(1000)).result()
        store.alter_config("t", {LIMIT: "500"})
        with pytest.raises(InvalidRecordError, match="maximum record size of 500"):
            producer.send("t", value=bytes(1000)).result()
        store.producer().send("t", value=bytes(1000)).result()
        store.alter_config("t", {LIMIT: None})
        producer.send("t", value=bytes(1000)).result()
        assert store.log("t", 0).log_end_offset == 3


def test_the_default_of_a_broker_holds_for_its_topics(tmp_path: Path) -> None:
    with logstore.open(tmp_path, kafka_version="4.4", config={LIMIT: 500}) as store:
        store.create_topic("t")
        store.create_topic("own", config={LIMIT: "5000"})
        producer = store.producer(compression_type="zstd")
        producer.send("own", value=bytes(1000)).result()
        with pytest.raises(InvalidRecordError, match="maximum record size of 500"):
            producer.send("t", value=bytes(1000)).result()


def test_what_is_larger_than_a_lowered_limit_is_read_but_not_searched_or_cleaned(tmp_path: Path) -> None:
    config = {"cleanup.policy": "compact", "segment.bytes": 1 << 20}
    with logstore.open(tmp_path, kafka_version="4.4") as store:
        store.create_topic("t", config=config)
        log = store.log("t", 0)
        log.append_records([b"a", bytes(1000)], [b"k", b"k"], timestamps=[START_MS, START_MS + 1], codec=Codec.GZIP)
        log.roll()
        log.append_records([b"a"], [b"k"])
        store.alter_config("t", {LIMIT: "500"})
        found = log.offset_for_timestamp(START_MS)
        assert found.offset == 0  # the first record is small
        with pytest.raises(InvalidRecordError, match=r"maximum record size of 500\..*raise max.decompressed"):
            log.offset_for_timestamp(START_MS + 1)
        with pytest.raises(InvalidRecordError, match="maximum record size of 500"):
            log.clean(log.cleanable(None, START_MS), START_MS)
        assert len(list(store.read("t"))) == 3
        store.alter_config("t", {LIMIT: None})
        found = log.offset_for_timestamp(START_MS + 1)
        assert found.offset == 1
        log.clean(log.cleanable(None, START_MS), START_MS)
        assert len(list(store.read("t"))) == 2
