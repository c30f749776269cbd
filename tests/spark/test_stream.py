"""`readStream`: what a trigger reads, how far it goes, and what a restart goes on with."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from logstore.errors import UsageError
from spark_dumps.source import KafkaSegments
from spark_dumps.stream import OffsetsJson, RecordsStream, as_json, as_offsets
from tests.spark.planned import without_log
from tests.spark.segment_files import batch, data, marker, write_partition, write_segment
from tests.support.encoder import SOME_TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = ReadAllAvailable()


def stream(path: Path, **options: Any) -> RecordsStream:
    texts = {name: str(value) for name, value in options.items()}
    source = KafkaSegments({"path": str(path), **texts})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, RecordsStream)
    return reader


def offsets_read(reader: RecordsStream, start: OffsetsJson, end: OffsetsJson) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    remote = pickle.loads(pickle.dumps(reader))
    for task in reader.partitions(start, end):
        for rows in remote.read(task):
            for row in rows.to_pylist():
                found.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    return found


def append(path: Path, *numbers: int) -> None:
    with path.open("ab") as log:
        log.write(b"".join(map(batch, numbers)))


def test_offsets_are_those_of_the_kafka_source() -> None:
    offsets = {("b", 0): 1, ("a", 10): 2, ("a", 9): 3}
    assert json.dumps(as_json(offsets)) == '{"a": {"9": 3, "10": 2}, "b": {"0": 1}}'
    assert as_offsets(as_json(offsets)) == offsets


def with_id(path: Path, topic_id: str) -> Path:
    """Give the partition a topic id."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return path


OLD_ID, NEW_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def test_a_checkpoint_knows_topic_ids(tmp_path: Path) -> None:
    write_partition(tmp_path)
    with_id(tmp_path / "orders-0", OLD_ID)
    write_partition(tmp_path, "bare-0")
    start = stream(tmp_path, startingOffsets="earliest").initialOffset()
    assert start == {"bare": {"0": 0}, "orders": {"0": 0, "topicId": OLD_ID}}
    assert stream(tmp_path).latestOffset(start, EVERYTHING) == {
        "bare": {"0": 600},
        "orders": {"0": 600, "topicId": OLD_ID},
    }
    write_partition(tmp_path, "orders-1")
    with_id(tmp_path / "orders-1", NEW_ID)
    with pytest.raises(UsageError, match=f"orders-1 is of another topic.*{OLD_ID}.*{NEW_ID}"):
        stream(tmp_path).latestOffset(start, EVERYTHING)


@pytest.mark.parametrize("how", ["removed", "renamed"])
def test_a_topic_that_is_deleted_ends_the_query(how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_partition(tmp_path)
    write_partition(tmp_path, "payments-0")
    strict, lax = stream(tmp_path, subscribe="orders"), stream(tmp_path, failOnDataLoss="false")
    start = {"orders": {"0": 100}, "payments": {"0": 600}}
    if how == "removed":
        shutil.rmtree(tmp_path / "orders-0")
    else:
        (tmp_path / "orders-0").rename(tmp_path / "orders-0.0123456789abcdef0123456789abcdef-delete")
    for available_now in (False, True):
        if available_now:
            strict.prepareForTriggerAvailableNow()
        with pytest.raises(UsageError, match=r"orders-0 is gone.*offset 100"):
            strict.latestOffset({"orders": start["orders"]}, EVERYTHING)
    end = lax.latestOffset(start, EVERYTHING)
    assert end == {"payments": {"0": 600}}
    assert offsets_read(lax, start, end) == {}
    assert "orders-0 is gone" in caplog.text
    with pytest.raises(UsageError, match="orders-0 is gone"):
        stream(tmp_path).partitions(start, end)  # a batch that is repeated after a restart


def test_a_topic_that_other_options_leave_out_may_be_there(tmp_path: Path) -> None:
    write_partition(tmp_path)
    write_partition(tmp_path, "payments-0")
    with pytest.raises(UsageError, match="orders-0 is gone, or not chosen any more"):
        stream(tmp_path, subscribe="payments").latestOffset({"orders": {"0": 100}, "payments": {"0": 600}}, EVERYTHING)


@pytest.mark.parametrize("numbers", [range(5), range(100)])  # fewer and more records than were read
def test_a_topic_that_is_made_anew_is_another(numbers: range, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_partition(tmp_path)
    with_id(tmp_path / "orders-0", OLD_ID)
    start = stream(tmp_path, startingOffsets='{"orders": {"0": 100}}').initialOffset()
    old_end = stream(tmp_path).latestOffset(start, EVERYTHING)
    shutil.rmtree(tmp_path / "orders-0")
    write_segment(with_id(tmp_path / "orders-0", NEW_ID), 0, b"".join(map(batch, numbers)))
    strict, lax = stream(tmp_path), stream(tmp_path, failOnDataLoss="false")
    with pytest.raises(UsageError, match=r"orders-0 is of a new topic of the name.*offset 100"):
        strict.latestOffset(start, EVERYTHING)
    with pytest.raises(UsageError, match=r"orders-0 is of a new topic of the name"):
        strict.partitions(start, old_end)  # a batch that is repeated after a restart
    assert offsets_read(lax, start, old_end) == {}
    end = lax.latestOffset(start, EVERYTHING)
    count = 10 * len(numbers)
    assert end == {"orders": {"0": count, "topicId": NEW_ID}}
    assert offsets_read(lax, start, end) == {("orders", 0): list(range(count))}
    assert lax.latestOffset(end, EVERYTHING) == end
    assert "orders-0 is of a new topic of the name" in caplog.text


def test_a_stream_needs_what_it_subscribes_to_but_a_pattern_may_match_later(tmp_path: Path) -> None:
    write_partition(tmp_path)
    with pytest.raises(LookupError, match=r"ordres.*did you mean orders"):
        stream(tmp_path, subscribe="ordres").initialOffset()
    with pytest.raises(LookupError, match="orders-7"):
        stream(tmp_path, assign='{"orders": [0, 7]}').initialOffset()
    with pytest.raises(UsageError, match="the bound names orders-7"):
        stream(tmp_path, startingOffsets='{"orders": {"0": 1, "7": 1}}').initialOffset()
    waiting = stream(tmp_path, subscribePattern="^pay")
    assert waiting.initialOffset() == {}
    write_partition(tmp_path, "payments-0")
    end = waiting.latestOffset({}, EVERYTHING)
    assert offsets_read(waiting, {}, end) == {("payments", 0): list(range(600))}


def test_there_is_no_write_stream(tmp_path: Path) -> None:
    source = KafkaSegments({"path": str(tmp_path), "topic": "orders"})
    with pytest.raises(UsageError, match=r"has no writeStream.*foreachBatch"):
        source.streamWriter(StructType(), overwrite=False)


def test_a_stream_starts_at_the_latest_offsets_or_where_it_is_told(tmp_path: Path) -> None:
    write_partition(tmp_path)
    assert stream(tmp_path).initialOffset() == {"orders": {"0": 600}}
    assert stream(tmp_path, startingOffsets="earliest").initialOffset() == {"orders": {"0": 0}}
    assert stream(tmp_path, startingOffsets='{"orders": {"0": 42}}').initialOffset() == {"orders": {"0": 42}}
    assert stream(tmp_path, startingTimestamp=SOME_TIME + 77).initialOffset() == {"orders": {"0": 77}}


def test_a_batch_is_what_was_written_since(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    reader = stream(tmp_path)
    start = reader.initialOffset()
    assert reader.latestOffset(start, EVERYTHING) == start
    assert offsets_read(reader, start, start) == {}
    append(path, 60, 61)
    end = reader.latestOffset(start, EVERYTHING)
    assert offsets_read(reader, start, end) == {("orders", 0): list(range(600, 620))}
    write_segment(tmp_path / "orders-0", 620, batch(62))
    assert reader.reportLatestOffset() == {"orders": {"0": 630}}
    following = reader.latestOffset(end, EVERYTHING)
    assert offsets_read(reader, end, following) == {("orders", 0): list(range(620, 630))}


def test_a_batch_that_is_run_again_gives_the_same(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    start, end = {"orders": {"0": 195}}, {"orders": {"0": 207}}
    before = offsets_read(stream(tmp_path), start, end)
    append(path, 60)
    assert offsets_read(stream(tmp_path), start, end) == before == {("orders", 0): list(range(195, 207))}


def test_a_new_partition_is_read_from_its_start(tmp_path: Path) -> None:
    write_partition(tmp_path)
    reader = stream(tmp_path)
    start = reader.initialOffset()
    write_partition(tmp_path, "orders-1", [3])
    end = reader.latestOffset(start, EVERYTHING)
    assert end == {"orders": {"0": 600, "1": 30}}
    assert offsets_read(reader, start, end) == {("orders", 1): list(range(30))}


def test_a_limit_is_shared_out_by_what_there_is(tmp_path: Path) -> None:
    write_partition(tmp_path, "orders-0", [30])
    write_partition(tmp_path, "orders-1", [10])
    reader = stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger=100)
    assert reader.getDefaultReadLimit() == ReadMaxRows(100)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(100)) == {"orders": {"0": 75, "1": 25}}
    assert reader.latestOffset(start, ReadMaxRows(1)) == {"orders": {"0": 1, "1": 1}}
    assert reader.latestOffset(start, ReadMaxRows(1000)) == {"orders": {"0": 300, "1": 100}}
    assert reader.latestOffset(start, EVERYTHING) == {"orders": {"0": 300, "1": 100}}
    assert stream(tmp_path).getDefaultReadLimit() == EVERYTHING


def test_available_now_reads_what_is_there_now(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    reader = stream(tmp_path, startingOffsets="earliest")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    append(path, 60)
    write_partition(tmp_path, "orders-1")
    end = reader.latestOffset(start, EVERYTHING)
    assert end == {"orders": {"0": 600, "1": 0}}
    assert reader.latestOffset(end, EVERYTHING) == end


def test_read_committed_waits_for_open_transactions(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    path = write_segment(partition, 0, batch(0) + data(10, 7) + data(11, 8))
    reader = stream(tmp_path, startingOffsets="earliest", isolation_level="read_committed")
    start = reader.initialOffset()
    first = reader.latestOffset(start, EVERYTHING)
    assert first == {"orders": {"0": 10}}
    with path.open("ab") as log:
        log.write(marker(12, 7, is_commit=True) + data(13, 7, 1))
    second = reader.latestOffset(first, EVERYTHING)
    assert second == {"orders": {"0": 11}}
    assert offsets_read(reader, first, second) == {("orders", 0): [10]}
    with path.open("ab") as log:
        log.write(marker(14, 8, is_commit=True) + marker(15, 7, is_commit=True))
    third = reader.latestOffset(second, EVERYTHING)
    assert offsets_read(reader, second, third) == {("orders", 0): [11, 13]}


def test_records_that_are_gone_end_the_query(tmp_path: Path) -> None:
    paths = write_partition(tmp_path)
    start = {"orders": {"0": 100}}
    strict, lax = stream(tmp_path), stream(tmp_path, failOnDataLoss="false")
    end = strict.latestOffset(start, EVERYTHING)
    paths[0].unlink()
    with pytest.raises(UsageError, match="orders-0 starts at offset 200"):
        strict.partitions(start, end)
    assert offsets_read(lax, start, end) == {("orders", 0): list(range(200, 600))}
    paths[2].unlink()
    with pytest.raises(UsageError, match="orders-0 ends at offset 400"):
        strict.partitions({"orders": {"0": 300}}, end)
    with pytest.raises(UsageError, match="orders-0 ends at offset 400"):
        strict.latestOffset(end, EVERYTHING)
    cut = lax.latestOffset(end, EVERYTHING)
    assert offsets_read(lax, end, cut) == {}
    append(paths[1], 40, 41)
    assert offsets_read(lax, cut, lax.latestOffset(cut, EVERYTHING)) == {("orders", 0): list(range(400, 420))}
    shutil.rmtree(tmp_path / "orders-0")
    with pytest.raises(UsageError, match="orders-0 is gone"):
        strict.partitions(start, end)
    assert offsets_read(lax, start, end) == {}


def test_a_log_that_goes_while_a_batch_is_planned_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reader = write_partition(tmp_path)[0], stream(tmp_path, failOnDataLoss="false")
    start = {"orders": {"0": 0}}
    end = reader.latestOffset(start, EVERYTHING)
    without_log(path, monkeypatch)
    assert offsets_read(reader, start, end) == {("orders", 0): list(range(200, 600))}


@pytest.mark.parametrize(
    ("options", "words"),
    [({"endingOffsets": "latest"}, "endingOffsets"), ({"table": "batches"}, "follows records")],
)
def test_options_that_a_stream_cannot_have_are_refused(options: dict[str, str], words: str, tmp_path: Path) -> None:
    write_partition(tmp_path)
    source = KafkaSegments({"path": str(tmp_path), **options})
    with pytest.raises(UsageError, match=words):
        source.streamReader(source.schema())


@pytest.mark.parametrize("starting", ["latest", '{"orders": {"0": -1}}'])
def test_a_stream_that_is_told_to_start_at_the_latest_offsets_does(starting: str, tmp_path: Path) -> None:
    """Spark asks for the schema before it tells whether a query is a stream; a batch is refused."""
    write_partition(tmp_path, "orders-0", [5])
    source = KafkaSegments({"path": str(tmp_path), "subscribe": "orders", "startingOffsets": starting})
    assert source.streamReader(source.schema()).initialOffset()["orders"]["0"] == 50
    with pytest.raises(UsageError, match="cannot be latest in a batch"):
        source.reader(source.schema())


def test_a_query_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    path = write_partition(tmp_path / "data", "orders-0", [5])[0]

    def run() -> list[int]:
        reader = spark.readStream.format("kafka_segments").option("startingOffsets", "earliest")
        frame = reader.option("maxRecordsPerTrigger", 20).load(str(tmp_path / "data"))
        writer = frame.select("offset").writeStream.format("json").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    assert run() == [20, 20, 10]
    append(path, 5, 6)
    assert run() == [20]
    assert run() == []
    rows = spark.read.schema("offset long").json(str(tmp_path / "out")).orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(70))
    (last,) = [p for p in (tmp_path / "checkpoint" / "offsets").iterdir() if p.name == "3"]
    assert last.read_text().splitlines()[-1] == '{"orders": {"0": 70}}'
