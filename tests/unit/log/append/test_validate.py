"""What a leader makes of a batch, and what it refuses."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from logstore.columns.batch_table import Batches
from logstore.columns.record_table import BatchRecords
from logstore.config.topic import parse_config
from logstore.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    OffsetsOutOfOrderError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
)
from logstore.folds.producer_update import AppendOrigin
from logstore.log.append.analyze import analyze, require_continuation
from logstore.log.append.rules import ValidationRules
from logstore.log.append.slow import append_info
from logstore.log.append.validate import validate
from tests.naive import legacy
from tests.support.encoder import (
    CONTROL,
    LOG_APPEND_TIME,
    LZ4,
    SOME_TIME,
    TRANSACTIONAL,
    ZSTD,
    Batch,
    Rec,
    compressed,
    record_bytes,
)

NOW = SOME_TIME + 1000
TWO = Batch(
    0,
    [Rec(b"a", b"1"), Rec(b"b", b"2", offset_delta=1, timestamp_delta=7)],
    last_offset_delta=1,
    max_timestamp=SOME_TIME + 7,
    leader_epoch=-1,
)


def rules_of(**config: Any) -> ValidationRules:
    return ValidationRules.of(parse_config({name.replace("_", "."): value for name, value in config.items()}), "t-0")


def appended(batch: Batch | bytes, origin: AppendOrigin = AppendOrigin.CLIENT, **config: Any) -> Batches:
    content = batch if isinstance(batch, bytes) else batch.to_bytes()
    data, rules = np.frombuffer(content, np.uint8), rules_of(**config)
    analyzed = analyze(data, origin=origin, leader_epoch=5, rules=rules)
    result = validate(analyzed, origin=origin, base_offset=100, leader_epoch=5, now_ms=NOW, rules=rules)
    assert content == data.tobytes()
    return result


def answer(batches: Batches, **config: Any) -> tuple[int, ...]:
    rules, origin = rules_of(**config), AppendOrigin.CLIENT
    return append_info(batches.table, origin=origin, log_end_offset=100, log_start_offset=0, rules=rules)[:4]


def test_offset_and_epoch_are_put_into_a_copy() -> None:
    result = appended(TWO)
    assert result.data.tobytes() == replace(TWO, base_offset=100, leader_epoch=5).to_bytes()
    assert answer(result) == (100, 101, SOME_TIME + 7, -1)
    assert result.table.row(0)["base_offset"] == 100
    assert result.table.is_valid.tolist() == [1]


def test_bytes_behind_the_last_whole_batch_are_left_out() -> None:
    result = appended(TWO.to_bytes() + TWO.to_bytes()[:40])
    assert result.data.tobytes() == replace(TWO, base_offset=100, leader_epoch=5).to_bytes()


def test_a_length_that_no_file_can_hold_is_refused_as_by_java() -> None:
    """Java adds twelve bytes to it, and gets a negative number."""
    start, magic = b"\0" * 8, b"\0" * 4 + b"\2"
    fits, too_large = (length.to_bytes(4, "big") for length in (2**31 - 13, 2**31 - 12))
    assert len(appended(TWO.to_bytes() + start + fits + magic).table) == 1
    with pytest.raises(CorruptRecordError, match=r"newLimit < 0: \(-2147483648 < 0\)"):
        appended(TWO.to_bytes() + start + too_large + magic)


def test_a_batch_without_a_last_offset_is_refused_as_by_java() -> None:
    size = 26
    content = TWO.to_bytes()[:8] + (size - 12).to_bytes(4, "big") + TWO.to_bytes()[12:]
    for data in (content, content[:size]):
        with pytest.raises(CorruptRecordError) as told:
            appended(data)
        assert (told.value.java_class, told.value.found) == ("java.lang.IndexOutOfBoundsException", size)


@pytest.mark.parametrize(("epochs", "leader_epoch", "kept_count"), [
    ((5, 6, 5), 5, 1), ((5, 5), 5, 2), ((0, 0), 0, 2), ((0,), -2, 0), ((-1,), -2, 1),
])  # fmt: skip
def test_a_replica_leaves_out_what_a_later_leader_wrote(
    epochs: tuple[int, ...], leader_epoch: int, kept_count: int
) -> None:
    batches = [replace(TWO, base_offset=2 * number, leader_epoch=epoch) for number, epoch in enumerate(epochs)]
    data = np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8)
    origin = AppendOrigin.REPLICATION
    assert len(analyze(data, origin=origin, leader_epoch=leader_epoch, rules=rules_of()).table) == kept_count


def test_an_offset_below_the_log_s_end_is_told_with_the_first_ten() -> None:
    records = [Rec(b"", b"", offset_delta=delta) for delta in range(12)]
    data = np.frombuffer(Batch(40, records, last_offset_delta=11, leader_epoch=5).to_bytes(), np.uint8)
    table = analyze(data, origin=AppendOrigin.REPLICATION, leader_epoch=5, rules=rules_of()).table
    require_continuation(data, table, log_end_offset=40, log_start_offset=3, rules=rules_of())
    with pytest.raises(UnexpectedAppendOffsetError) as told:
        require_continuation(data, table, log_end_offset=41, log_start_offset=3, rules=rules_of())
    assert told.value.message == (
        "Unexpected offset in append to t-0. First offset 40 is less than the next offset 41. First 10 offsets in "
        "append: 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, last offset in append: 51. Log start offset = 3"
    )


def test_an_offset_of_an_old_message_set_is_told_as_that_of_its_first_batch() -> None:
    """The first offset in a compressed one is not known without decompression."""
    old = [legacy.message_set(1, [legacy.Message(offset, SOME_TIME, b"k", b"v")]) for offset in (40, 41)]
    data = np.frombuffer(b"".join(old), np.uint8)
    table = analyze(data, origin=AppendOrigin.REPLICATION, leader_epoch=5, rules=rules_of()).table
    require_continuation(data, table, log_end_offset=40, log_start_offset=3, rules=rules_of())
    with pytest.raises(UnexpectedAppendOffsetError, match="Last offset of the first batch 40 is less than the next"):
        require_continuation(data, table, log_end_offset=41, log_start_offset=3, rules=rules_of())


def test_offsets_of_a_replica_begin_at_0() -> None:
    data = np.frombuffer(Batch(-1, [Rec(b"", b"")], leader_epoch=5).to_bytes(), np.uint8)
    with pytest.raises(OffsetsOutOfOrderError, match="Out of order offsets found in append to t-0: -1"):
        analyze(data, origin=AppendOrigin.REPLICATION, leader_epoch=5, rules=rules_of())


@pytest.mark.parametrize("origin", AppendOrigin)
def test_only_a_raft_leader_sets_the_epoch_itself(origin: AppendOrigin) -> None:
    data = np.frombuffer(replace(TWO, leader_epoch=4).to_bytes(), np.uint8)
    refused = pytest.raises(InvalidRecordError, match="expected 5 but the batch has 4")
    with refused if origin is AppendOrigin.RAFT_LEADER else nullcontext():
        assert len(analyze(data, origin=origin, leader_epoch=5, rules=rules_of()).table) == 1


def test_a_wrong_max_timestamp_is_put_right() -> None:
    result = appended(replace(TWO, max_timestamp=3, flags=0x80))
    assert result.data.tobytes() == replace(TWO, base_offset=100, leader_epoch=5).to_bytes()


def test_a_log_append_time_topic_gives_its_own_time() -> None:
    result = appended(replace(TWO, flags=TRANSACTIONAL), message_timestamp_type="LogAppendTime")
    stored = replace(TWO, base_offset=100, leader_epoch=5, flags=TRANSACTIONAL | LOG_APPEND_TIME, max_timestamp=NOW)
    assert result.data.tobytes() == stored.to_bytes()
    assert answer(result, message_timestamp_type="LogAppendTime") == (100, 101, NOW, NOW)


def test_compressed_records_stay_as_they_are() -> None:
    result = appended(replace(TWO, codec=ZSTD))
    assert result.data.tobytes() == replace(TWO, codec=ZSTD, base_offset=100, leader_epoch=5).to_bytes()


def test_a_marker_of_a_coordinator_is_taken() -> None:
    marker = replace(TWO, flags=CONTROL | TRANSACTIONAL, producer_id=7, producer_epoch=0)
    result = appended(marker, AppendOrigin.COORDINATOR)
    assert [r.offset.tolist() for r in BatchRecords(result.data, result.table, 0).chunks()] == [[100, 101]]
    with pytest.raises(InvalidRecordError, match=r"^Clients are not allowed to write control records in topic"):
        appended(marker)


def test_records_without_keys_are_counted_and_three_of_them_shown() -> None:
    keyless = [Rec(value=b"v", offset_delta=index) for index in range(5)]
    with pytest.raises(InvalidRecordError) as refused:
        appended(replace(TWO, records=keyless, last_offset_delta=4), cleanup_policy="compact,delete")
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index in range(3))
    assert refused.value.message == (
        "One or more records have been rejected due to 5 record errors in total, and only showing the first three "
        f"errors at most: [{shown}]"
    )
    assert refused.value.record_errors == tuple((index, text) for index in range(5))


def test_timestamps_too_far_away_are_refused() -> None:
    with pytest.raises(InvalidTimestampError) as refused:
        appended(TWO, message_timestamp_before_max_ms=995, message_timestamp_after_max_ms=5)
    text = f"Timestamp {SOME_TIME} of message with offset 0 is out of range. The timestamp should be within "
    assert refused.value.record_errors == ((0, f"{text}[{NOW - 995}, {NOW + 5}]"),)
    assert (refused.value.kafka_name, refused.value.kafka_code) == ("INVALID_TIMESTAMP", 32)


def test_a_second_batch_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match=r"^Compressed outer record has more than one batch"):
        appended(TWO.to_bytes() * 2)


def test_a_batch_above_the_limit_is_refused_before_it_is_read() -> None:
    content = bytearray(TWO.to_bytes())
    content[-1] ^= 1
    with pytest.raises(RecordTooLargeError) as refused:
        appended(bytes(content), max_message_bytes=60)
    assert refused.value.message == (
        f"The record batch size in the append to t-0 is {len(content)} bytes which exceeds the maximum configured "
        "value of 60)."
    )


def test_a_batch_is_stored_in_the_codec_of_the_topic() -> None:
    batch = replace(TWO, producer_id=7, producer_epoch=1, base_sequence=4, flags=TRANSACTIONAL)
    result = appended(replace(batch, codec=ZSTD), compression_type="uncompressed")
    assert result.data.tobytes() == replace(batch, base_offset=100, leader_epoch=5).to_bytes()
    assert answer(result) == (100, 101, SOME_TIME + 7, -1)
    assert result.table.row(0)["is_valid"] == 1


def test_records_are_numbered_anew_when_a_batch_is_built_anew() -> None:
    gap = [TWO.records[0], replace(TWO.records[1], offset_delta=7)]
    result = appended(replace(TWO, records=gap, codec=ZSTD), compression_type="uncompressed")
    assert result.data.tobytes() == replace(TWO, base_offset=100, leader_epoch=5).to_bytes()


def test_a_compressed_batch_with_gaps_that_would_stay_as_it_is_is_refused() -> None:
    gap = [TWO.records[0], replace(TWO.records[1], offset_delta=7)]
    with pytest.raises(InvalidRecordError, match=r"^key is skipped in PartialDefaultRecord; expected offsets"):
        appended(replace(TWO, records=gap, codec=ZSTD))


def test_a_batch_that_grew_above_the_limit_is_refused() -> None:
    size = len(replace(TWO, codec=LZ4).to_bytes())
    assert size > len(TWO.to_bytes())
    with pytest.raises(RecordTooLargeError) as refused:
        appended(TWO, compression_type="lz4", max_message_bytes=size - 1)
    assert refused.value.message == (
        f"Message batch size is {size} bytes in append to partition t-0 which exceeds the maximum configured size of "
        f"{size - 1}."
    )


def test_the_sizes_of_records_in_a_stream_that_stays_as_it_is_are_not_looked_at() -> None:
    plain = b"".join(b"\x02" + record_bytes(record)[1:] for record in TWO.records)
    lying = replace(TWO, codec=ZSTD, stream=compressed(ZSTD, plain))
    assert appended(lying).data.tobytes() == replace(lying, base_offset=100, leader_epoch=5).to_bytes()
    with pytest.raises(InvalidRecordError, match=r"^Found invalid record structure"):
        appended(lying, compression_type="uncompressed")


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"", "Incorrect declared batch size, premature EOF reached"),
        (b"\xff" * 5, "Incorrect declared batch size, premature EOF reached"),
        (b"\x14\0" + b"\xff" * 9, "Found invalid record structure"),
        (b"\x14\0" + b"\xff" * 11, "Found invalid record structure"),
        (b"\x14\0\0\0\x08abc", "Reached end of input stream before skipping all bytes. Remaining bytes:1"),
        (b"\x14\0\0\0\0\0\x01", "Found invalid number of record headers -1"),
        (b"\x14\0\0\0\0\0\x02\x01", "Invalid negative header key size -1"),
        (b"\x0c\0\0\0\0\0\0" * 3, "Incorrect declared batch size, records still remaining in file"),
    ],
)
def test_streams_that_do_not_parse_are_refused(stream: bytes, message: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        appended(replace(TWO, codec=ZSTD, stream=compressed(ZSTD, stream)))
    assert refused.value.message == message


def test_an_old_message_set_is_refused() -> None:
    old = legacy.message_set(1, [legacy.Message(0, SOME_TIME, b"k", b"v")])
    with pytest.raises(InvalidRecordError, match=r"^A leader takes record batches of magic 2 only"):
        appended(old)


def test_a_coordinator_s_batch_without_records_is_refused_where_the_append_gives_the_time() -> None:
    """Only a topic with a codec of its own builds it anew."""
    empty, origin, codec = Batch(0, []), AppendOrigin.COORDINATOR, {"compression_type": "gzip"}
    appended(empty, origin, message_timestamp_type="LogAppendTime")
    appended(empty, origin, **codec)
    with pytest.raises(InvalidRecordError, match="is null"):
        appended(empty, origin, message_timestamp_type="LogAppendTime", **codec)
