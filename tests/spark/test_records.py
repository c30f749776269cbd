"""Table `records` against what Kafka's own tool printed about the golden directories."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.golden.archive import answers, read_rows
from tests.spark.planned import Planned
from tests.spark.recorded import Record, all_records, committed_records
from tests.support.golden import Golden

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.spark.conftest import Load

DIRECTORIES = ["demo", "records", "transactions", "transactions-v0", "killed", "compacted"]
KAFKA_SOURCE_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)


def records_of(frame: DataFrame) -> list[Record]:
    """The rows in the order of partitions and offsets, sizes in place of bytes."""
    rows = frame.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) AS time",
        "timestampType",
        "coalesce(length(key), -1) AS key_size",
        "coalesce(length(value), -1) AS value_size",
    ).orderBy("topic", "partition", "offset")
    return [Record(*row) for row in rows.collect()]


@pytest.mark.parametrize("name", DIRECTORIES)
def test_read_uncommitted_gives_all_records(name: str, golden: Golden, load: Load) -> None:
    found = records_of(load(golden(name)))
    assert len(found) > 40
    assert found == all_records(name)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_read_committed_gives_what_was_committed(name: str, golden: Golden, load: Load) -> None:
    assert records_of(load(golden(name), isolation_level="read_committed")) == committed_records(name)


def test_aborted_records_are_left_out_without_the_last_transaction_index(golden: Golden, tmp_path: Path) -> None:
    """A `.txnindex` of the segment that is written need not be there, or be whole: a broker makes it anew."""
    directory = shutil.copytree(golden("transactions"), tmp_path / "data")
    expected = Planned(directory, isolation_level="read_committed").offsets()
    for index in directory.glob("*/*.txnindex"):
        if not any(int(log.stem) > int(index.stem) for log in index.parent.glob("*.log")):
            index.unlink()
    assert expected
    assert Planned(directory, isolation_level="read_committed").offsets() == expected


def test_the_columns_are_those_of_the_kafka_source(golden: Golden, load: Load) -> None:
    frame = load(golden("demo"))
    assert frame.schema.simpleString() == f"struct<{KAFKA_SOURCE_SCHEMA.replace(', ', ',').replace(' ', ':')}>"
    row = frame.where("topic = 'orders' AND offset = 2").first()
    assert row is not None
    assert (bytes(row.key), bytes(row.value), row.timestampType) == (b"orders0", b"0-c", 0)


def test_headers_are_there_when_they_are_asked_for(golden: Golden) -> None:
    path = golden("records") / "headers-0"
    rows = {row["offset"]: row["headers"] for row in Planned(path, includeHeaders="true").rows()}
    assert "headers" not in Planned(path).rows()[0]
    assert Planned(path, "headers headers").rows() == [{"headers": headers} for headers in rows.values()]
    counts = {offset: len(headers) for offset, headers in rows.items() if headers is not None}
    assert 0 < len(counts) < len(rows)
    assert min(counts.values()) >= 1
    for line in header_lines(golden):
        offset, keys = int(line[1]), line[2].split(",") if line[2] else []
        found = rows[offset] or []
        assert [header["key"] for header in found] == keys or "," in "".join(header["key"] for header in found)


def header_lines(golden: Golden) -> list[re.Match[str]]:
    """Offsets and header keys that Kafka's tool printed."""
    answers_about = [row for row in read_rows(answers("records")) if row["argv"][1:2] == [f"headers-0/{0:020d}.log"]]
    text = next(row["stdout"] for row in answers_about if row["argv"][2:] == ["--print-data-log"])
    found = list(re.finditer(r"\| offset: (\d+) .*headerKeys: \[(.*?)\] ", text))
    assert len(found) > 8
    return found


def test_old_magics_are_read_too(golden: Golden) -> None:
    expected = [record for record in all_records("legacy") if not record.topic.startswith("broken")]
    rows = Planned(golden("legacy"), subscribePattern="^(?!broken)").rows()
    assert [(row["topic"], row["offset"], row["timestampType"]) for row in rows] == [
        (record.topic, record.offset, record.timestamp_type) for record in expected
    ]
    sizes = [
        (-1 if row["key"] is None else len(row["key"]), -1 if row["value"] is None else len(row["value"]))
        for row in rows
    ]
    assert sizes == [(record.key_size, record.value_size) for record in expected]
    assert {record.timestamp_type for record in expected} == {-1, 0, 1}
