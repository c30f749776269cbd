"""The other tables, against what Kafka's own tool printed about the same files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from logstore.disk import side_files
from logstore.layout.offset_checkpoint import parse_offset_checkpoint
from tests.golden.archive import answers, read_rows
from tests.spark.planned import Planned
from tests.spark.segment_files import batch, leave_at_rest, write_partition, write_segment
from tests.support.golden import Golden

if TYPE_CHECKING:
    from tests.spark.conftest import Load

NAME = "transactions"
BATCH_FIELDS = (
    r"baseOffset: (-?\d+) lastOffset: (-?\d+) count: (-?\d+) baseSequence: (-?\d+) .*producerId: (-?\d+) "
    r"producerEpoch: (-?\d+) partitionLeaderEpoch: (-?\d+) isTransactional: (\w+) isControl: (\w+) .*position: (\d+) "
    r"CreateTime: (-?\d+) size: (\d+) magic: (\d) compresscodec: (\w+) crc: (\d+) isvalid: (\w+)"
)
BATCH_COLUMNS = (
    "base_offset, last_offset, record_count, base_sequence, producer_id, producer_epoch, partition_leader_epoch, "
    "is_transactional, is_control, position, unix_millis(max_timestamp), size, magic, codec, crc, is_valid"
)


def lines_about(suffix: str, *options: str) -> Iterator[tuple[str, int, str]]:
    """(topic, partition, line) of the dumps of all ordinary topics' files of a kind."""
    for row in read_rows(answers(NAME)):
        argv = row["argv"]
        if argv[:1] == ["--files"] and argv[2:] == list(options) and argv[1].endswith(suffix) and "," not in argv[1]:
            topic, _, partition = argv[1].split("/")[0].rpartition("-")
            if not topic.startswith("__"):
                yield from ((topic, int(partition), line) for line in row["stdout"].splitlines())


def matches(suffix: str, pattern: str, *options: str) -> list[tuple[Any, ...]]:
    """What a pattern finds in those lines, numbers as numbers."""
    found = []
    for topic, partition, line in lines_about(suffix, *options):
        match = re.search(pattern, line)
        if match:
            found.append((topic, partition, *(_value(text) for text in match.groups())))
    return sorted(found)


def _value(text: str) -> Any:
    return {"true": True, "false": False}.get(text, int(text) if re.fullmatch(r"-?\d+", text) else text)


def rows_of(load: Load, path: Path, table: str, columns: str, where: str = "true") -> list[tuple[Any, ...]]:
    frame = load(path, table=table).where(where).selectExpr("topic", "partition", *columns.split(", "))
    return sorted(tuple(row) for row in frame.collect())


def test_batches(golden: Golden, load: Load) -> None:
    expected = matches(".log", BATCH_FIELDS, "--print-data-log")
    assert len(expected) > 60
    assert rows_of(load, golden(NAME), "batches", BATCH_COLUMNS) == expected


def test_aborted(golden: Golden, load: Load) -> None:
    pattern = r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)"
    expected = matches(".txnindex", pattern)
    assert len(expected) > 8
    found = rows_of(load, golden(NAME), "aborted", "producer_id, first_offset, last_offset, last_stable_offset")
    assert found == expected


def test_transactions(golden: Golden, load: Load) -> None:
    pattern = r"producerId: (\d+) .*isTransactional: true isControl: true"
    markers = matches(".log", pattern, "--print-data-log")
    columns = "state, producer_id, first_offset, last_offset, marker_offset"
    found = rows_of(load, golden(NAME), "transactions", columns)
    aborted = [(*row[:2], row[3], row[4], row[6]) for row in found if row[2] == "aborted"]
    entries = rows_of(load, golden(NAME), "aborted", "producer_id, first_offset, last_offset")
    assert sorted(aborted) == entries
    decided = [row for row in found if row[2] in ("aborted", "committed")]
    assert 20 < len(decided) <= len(markers)
    open_ones = [row for row in found if row[2] == "open"]
    assert [(row[:5], row[6]) for row in open_ones] == [
        (("orders", 0, "open", 9, 34), None),
        (("payments", 0, "open", 9, 28), None),
    ]


def test_index_entries(golden: Golden, load: Load) -> None:
    offsets = matches(".index", r"offset: (\d+) position: (\d+)")
    assert rows_of(load, golden(NAME), "index_entries", "offset, position", "index = 'offset'") == offsets
    times = matches(".timeindex", r"timestamp: (\d+) offset: (\d+)")
    assert rows_of(load, golden(NAME), "index_entries", "timestamp_ms, offset", "index = 'time'") == times
    assert len(offsets) > 10
    assert len(times) > 3


def test_index_entries_end_at_the_zeros_of_a_preallocated_file(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "orders-0", 100, b"".join(map(batch, range(10, 20))))
    before = Planned(tmp_path, table="index_entries").rows()
    assert {row["index"] for row in before} == {"offset", "time"}
    for suffix in (".index", ".timeindex"):
        path = log.with_suffix(suffix)
        path.write_bytes(path.read_bytes() + bytes(10 * 2**20 // 24 * 24))
    assert Planned(tmp_path, table="index_entries").rows() == before
    for suffix in (".index", ".timeindex"):
        log.with_suffix(suffix).write_bytes(bytes(24 * 100))  # of a segment without entries
    assert Planned(tmp_path, table="index_entries").rows() == []


def test_producers(golden: Golden, load: Load) -> None:
    pattern = (
        r"producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: "
        r"Optional(?:Long)?(?:\[|\.)(\w+)\]? lastTimestamp: (\d+)"
    )
    ends = {(row[0], row[1]): row[2] for row in rows_of(load, golden(NAME), "topics", "log_end_offset")}
    expected = []
    for (topic, partition), end in ends.items():
        rows = matches(f"{topic}-{partition}/{end:020d}.snapshot", pattern)
        for *names, coordinator_epoch, first_offset, timestamp in rows:
            known = None if coordinator_epoch == -1 else coordinator_epoch
            expected.append((*names, known, None if first_offset == "empty" else first_offset, timestamp))
    assert len(expected) > 8
    columns = "producer_id, producer_epoch, coordinator_epoch, current_txn_first_offset, unix_millis(last_timestamp)"
    found = rows_of(load, golden(NAME), "producers", columns)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_topics(golden: Golden, load: Load) -> None:
    columns = "segment_count, log_start_offset, log_end_offset, last_stable_offset, leader_epoch"
    assert rows_of(load, golden(NAME), "topics", columns) == [
        ("orders", 0, 1, 0, 38, 34, 0),
        ("orders", 1, 1, 0, 6, 6, 0),
        ("payments", 0, 1, 0, 31, 28, 0),
        ("rolled", 0, 5, 0, 76, 76, 0),
    ]
    row = load(golden(NAME), table="topics", subscribe="__transaction_state").first()
    assert row is not None
    assert row.path.endswith("__transaction_state-0")
    assert len(row.topic_id) == 22


def last_records(topic: str, option: str) -> dict[str, Any]:
    """The last value of each key of an internal topic, by the key's JSON; transactions are not looked at."""
    found: dict[str, Any] = {}
    for row in read_rows(answers(NAME)):
        argv = row["argv"]
        if len(argv) == 3 and argv[:2] == [option, "--files"] and argv[2].startswith(f"{topic}-"):
            for key, value in re.findall(r" key: (\{.*\}) payload: (.*)", row["stdout"]):
                found[key] = None if value == "<DELETE>" else json.loads(value)["data"]
    return {key: value for key, value in found.items() if value is not None}


def test_transaction_state(golden: Golden, load: Load) -> None:
    names = ["EMPTY", "ONGOING", "PREPARE_COMMIT", "PREPARE_ABORT", "COMPLETE_COMMIT", "COMPLETE_ABORT"]
    expected = {
        (json.loads(key)["data"]["transactionalId"], value["producerId"], names[value["transactionStatus"]])
        for key, value in last_records("__transaction_state", "--transaction-log-decoder").items()
    }
    assert len(expected) > 8
    frame = load(golden(NAME), table="transaction_state")
    found = {(row.transactional_id, row.producer_id, row.state) for row in frame.collect()}
    assert found == expected
    (row,) = frame.where("transactional_id = 'left-open'").select("partitions").collect()
    assert sorted(map(tuple, row.partitions)) == [("orders", 0), ("payments", 0)]


@pytest.mark.parametrize("name", ["transactions", "groups"])
def test_group_offsets(name: str, golden: Golden, load: Load) -> None:
    frame = load(golden(name), table="group_offsets")
    found = {(row.group_id, row.topic, row.partition): (row.offset, row.is_pending) for row in frame.collect()}
    if name == "transactions":
        assert found == {("copiers", "payments", 0): (5, False), ("copiers", "orders", 0): (3, False)}
    else:
        assert len(found) > 5
        assert not any(is_pending for _, is_pending in found.values())


@pytest.mark.parametrize("table", ["topics", "producers", "transactions", "findings"])
def test_a_task_reads_checkpoints_once(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have a line for each partition: read for each of n, they would be n * n lines."""
    counts = []
    for partition_count in (2, 9):
        root = tmp_path / str(partition_count)
        names = [f"orders-{number}" for number in range(partition_count)]
        for name in names:
            write_partition(root, name, [1])
        lines = "".join(f"{name.replace('-', ' ')} 0\n" for name in names)
        for kind in ("recovery-point", "log-start"):
            (root / f"{kind}-offset-checkpoint").write_text(f"0\n{partition_count}\n{lines}")
        leave_at_rest(root)
        parsed = [0]

        def parse(data: bytes, *, path: str, parsed: list[int] = parsed) -> dict[tuple[str, int], int]:
            parsed[0] += 1
            return parse_offset_checkpoint(data, path=path)

        planned = Planned(root, table=table, minPartitions=1)
        monkeypatch.setattr(side_files, "parse_offset_checkpoint", parse)
        planned.rows()
        counts += parsed
    assert counts[0] == counts[1] > 0
