"""What only Kafka before 4.1 writes is no finding, unless no such Kafka was in the cluster."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

import logstore
from logstore.audit import log_pass
from logstore.audit.directory_audit import audit_directory
from logstore.audit.facts.offsets import Label
from logstore.columns import batch_table
from logstore.columns.record_windows import RECORD_COUNT_MAX
from tests.naive.checksum import crc32c
from tests.support.audit_faults import CRC, change_batch
from tests.support.audit_story import Story
from tests.support.audit_story_faults import A
from tests.support.encoder import LOG_APPEND_TIME, SOME_TIME, ZSTD, Batch, Rec
from tests.support.golden import Golden
from tests.support.offset_ranges import each_range
from tests.support.snapshots import ENTRY_SIZE, HEADER

NOW_MS = SOME_TIME + 1000
FIRST = f"{0:020d}"
APPENDED = ((0, 1), (1, 4), (4, 5), (5, 8))  # batches of appends: first and end; 3 records in each
ENDS = [3 * end - 1 for _, end in APPENDED]


def batch(number: int, deltas: Iterable[int] = (0, 1, 2), *, codec: int = 0, flags: int = 0) -> Batch:
    """Three records; the timestamp of each is by so much above that of the batch."""
    records = [Rec(value=b"v", offset_delta=place, timestamp_delta=delta) for place, delta in enumerate(deltas)]
    times = {"base_timestamp": SOME_TIME + 10 * number, "max_timestamp": SOME_TIME + 10 * number + max(deltas)}
    return Batch(3 * number, records, len(records) - 1, codec, flags, **times)


def write(root: Path, batches: list[Batch], *, index: bytes = b"", time_index: bytes = b"") -> Path:
    """A partition that was closed, in a directory without a metadata log."""
    directory = root / "orders-0"
    directory.mkdir(parents=True)
    (directory / f"{FIRST}.log").write_bytes(b"".join(one.to_bytes() for one in batches))
    (directory / f"{FIRST}.index").write_bytes(index)
    (directory / f"{FIRST}.timeindex").write_bytes(time_index)
    (root / ".kafka_cleanshutdown").write_bytes(b"")
    return root


def found(root: Path, *rules: str) -> list[tuple[str, int | None]]:
    """The places of the findings of these rules."""
    findings = audit_directory(str(root), NOW_MS).findings
    return [(one.rule, one.where.offset) for one in findings if one.rule in rules]


BATCHES = [batch(number) for number in range(8)]
SIZE = len(BATCHES[0].to_bytes())


def entries(*changed: tuple[int, int, int]) -> bytes:
    """An entry for each append but the first; `changed` are entries with another offset and position."""
    rows = [(last, first * SIZE) for last, (first, _) in zip(ENDS, APPENDED, strict=True)][1:]
    for number, offset, position in changed:
        rows[number] = offset, position
    return b"".join(struct.pack(">ii", *row) for row in rows)


@pytest.fixture(params=[1, 2, 3, 4096], ids="tables of {}".format)
def table_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So few batches in a table that appends end in later ones."""

    def small(*args: object, **names: object) -> object:
        return headers(*args, **names | {"first_capacity": request.param, "capacity": request.param})

    headers = batch_table.headers
    monkeypatch.setattr("logstore.view.walk.headers", small)
    monkeypatch.setattr("logstore.view.parallel_scan.headers", small)


@pytest.mark.usefixtures("table_rows")
def test_an_entry_of_an_append_of_several_batches_is_right(tmp_path: Path) -> None:
    assert found(write(tmp_path, BATCHES, index=entries()), "offset-index") == []


@pytest.mark.usefixtures("table_rows")
def test_an_entry_of_the_first_offset_of_an_append_is_right(tmp_path: Path) -> None:
    """Kafka up to 1.1 made such (`LogSegment.append`)."""
    changed = ((number, 3 * first, first * SIZE) for number, (first, _) in enumerate(APPENDED[1:]))
    assert found(write(tmp_path, BATCHES, index=entries(*changed)), "offset-index") == []


@pytest.mark.parametrize("name", ["v0-gzip-0", "v1-lz4-0"])
def test_compressed_sets_of_messages_lose_no_offset(name: str, golden: Golden, tmp_path: Path) -> None:
    """Their headers have the last offset alone."""
    shutil.copytree(golden("legacy") / name, tmp_path / name)
    for checkpoint in ("cleaner-offset-checkpoint", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (tmp_path / checkpoint).write_text("0\n0\n")
    audited = audit_directory(str(tmp_path), NOW_MS)
    assert "offsets-lost" not in {one.rule for one in audited.findings}
    ((start, end, label, count),) = each_range(audited.partitions[0].ranges)
    assert (start, end, label, count) == (0, 31, Label.COMMITTED, 31)


@pytest.mark.parametrize("is_older", [True, False])
def test_a_marker_once_left_the_time_of_its_producer(is_older: bool, golden: Golden, tmp_path: Path) -> None:
    """Kafka up to 1.1 did not take the time of a marker (`ProducerAppendInfo.appendEndTxnMarker`)."""
    root = shutil.copytree(golden("transactions-v0"), tmp_path / "data")
    partition, now_ms = root / "payments-0", int(1000 * (root / "meta.properties").stat().st_mtime)
    producer = next(one for one in logstore.producers(partition) if one.last_sequence and one.coordinator_epoch == 0)
    batches = [one for one in logstore.dump(partition) if one.producer_id == producer.producer_id]
    snapshot = max(partition.glob("*.snapshot"))
    content = bytearray(snapshot.read_bytes())
    starts = range(HEADER.size, len(content), ENTRY_SIZE)
    entry = next(one for one in starts if content[one : one + 8] == struct.pack(">q", producer.producer_id))
    time_ms = [one.max_timestamp for one in batches if not one.is_control][-1]
    content[entry + 26 : entry + 34] = struct.pack(">q", time_ms)
    content[2:6] = struct.pack(">I", crc32c(bytes(content[6:])))
    assert bytes(content) != snapshot.read_bytes()
    snapshot.write_bytes(content)
    if is_older:
        shutil.rmtree(root / "__cluster_metadata-0")
    rules = [one.rule for one in audit_directory(str(root), now_ms).findings]
    assert rules == ([] if is_older else ["snapshot-state"])


@pytest.mark.usefixtures("table_rows")
@pytest.mark.parametrize(
    ("changed", "at"),
    [
        ((0, 10, 1 * SIZE), 10),  # within a batch
        ((0, 14, 1 * SIZE), 14),  # of a batch of the next append
        ((0, 11, 1 * SIZE + 1), 11),  # where no batch begins
        ((0, 2, 1 * SIZE), 2),  # of the batch before
        ((2, 22, 5 * SIZE), 22),
        ((2, 26, 5 * SIZE), 26),  # behind the end of the log
    ],
)
def test_an_entry_that_no_append_explains_is_found(changed: tuple[int, int, int], at: int, tmp_path: Path) -> None:
    assert ("offset-index", at) in found(write(tmp_path, BATCHES, index=entries(changed)), "offset-index")


@pytest.mark.usefixtures("table_rows")
@pytest.mark.parametrize("number", [2, 3, 7])
def test_an_append_may_end_in_a_damaged_batch(number: int, tmp_path: Path) -> None:
    root = write(tmp_path, BATCHES, index=entries())
    change_batch(root / "orders-0" / f"{FIRST}.log", number, CRC, b"\0\0\0\1", keeps_crc=True)
    assert found(root, "offset-index") == []


def test_an_append_may_end_in_what_a_writer_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, BATCHES[:-1], index=entries())
    assert found(root, "offset-index") == [("offset-index", ENDS[-1])]
    monkeypatch.setattr(log_pass, "segment_size", lambda path: 1 << 60)
    audited = audit_directory(str(root), NOW_MS)
    assert [one for one in audited.findings if one.rule == "offset-index"] == []
    assert ("offset-index", "the log grew while it was read") in audited.unasked


@pytest.mark.parametrize(("level", "count"), [(25, 0), (27, 1), (None, 1)])
def test_an_entry_of_several_batches_is_found_where_no_broker_is_older_than_4_1(
    level: int | None, count: int, tmp_path: Path
) -> None:
    story = Story()
    story.make_topic("orders")  # writes a level of 4.3 first
    if level is not None:
        story.metadata("FeatureLevelRecord", name="metadata.version", featureLevel=level)
    for _ in range(3):
        story.plain(A)
    root = story.write(tmp_path / "data")
    position = len(story.batches[A][0].to_bytes())
    (root / A / f"{FIRST}.index").write_bytes(struct.pack(">ii", 2, position))
    (root / ".kafka_cleanshutdown").write_bytes(b"")
    assert len(found(root, "offset-index")) == count


# the largest timestamp is that of the second record and the third
PLAIN = [batch(number, (0, 5, 5)) for number in range(8)]


def times(*changed: tuple[int, int]) -> bytes:
    """An entry for each batch at the first record with its largest timestamp; `changed` ones have other offsets."""
    offsets = {number: 3 * number + 1 for number in range(8)} | dict(changed)
    rows = [(SOME_TIME + 10 * number + 5, offset) for number, offset in offsets.items()]
    return b"".join(struct.pack(">qi", *row) for row in rows)


@pytest.mark.usefixtures("table_rows")
def test_a_time_entry_at_the_first_record_with_the_largest_timestamp_is_right(tmp_path: Path) -> None:
    assert found(write(tmp_path, PLAIN, time_index=times()), "time-index") == []


@pytest.mark.usefixtures("table_rows")
@pytest.mark.parametrize("changed", [(2, 6), (7, 21)])
def test_a_time_entry_at_a_record_with_a_smaller_timestamp_is_found(changed: tuple[int, int], tmp_path: Path) -> None:
    assert found(write(tmp_path, PLAIN, time_index=times(changed)), "time-index") == [("time-index", changed[1])]


def test_a_time_entry_at_a_later_record_with_the_largest_timestamp_is_found(tmp_path: Path) -> None:
    batches = [batch(number, (5, 5, 5)) for number in range(8)]
    at_first, at_second = {number: 3 * number for number in range(8)}, (4, 13)
    content = times(*at_first.items(), at_second)
    assert found(write(tmp_path, batches, time_index=content), "time-index") == [("time-index", 13)]


@pytest.mark.parametrize("form", [{"codec": ZSTD}, {"flags": LOG_APPEND_TIME}], ids=str)
def test_a_time_entry_within_a_batch_is_found_if_a_broker_gives_it_the_last_offset(
    form: dict[str, int], tmp_path: Path
) -> None:
    batches = [*PLAIN[:3], batch(3, (0, 5, 5), **form), *PLAIN[4:]]
    assert found(write(tmp_path, batches, time_index=times()), "time-index") == [("time-index", 10)]
    right = write(tmp_path / "right", batches, time_index=times((3, 11)))
    assert found(right, "time-index") == []


def test_a_time_entry_within_a_batch_is_found_where_no_broker_is_older_than_4_1(tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders")
    story.plain(A, 3)
    root = story.write(tmp_path / "data")
    (root / A / f"{FIRST}.timeindex").write_bytes(struct.pack(">qi", story.now_ms, 0))
    (root / ".kafka_cleanshutdown").write_bytes(b"")
    assert found(root, "time-index") == [("time-index", 0)]


def test_the_first_record_with_the_largest_timestamp_is_told_from_one_in_a_later_window_of_records(
    tmp_path: Path,
) -> None:
    batches = [batch(0, [0] * 3 + [7] + [0] * 2 * RECORD_COUNT_MAX + [7])]
    entry = struct.pack(">qi", SOME_TIME + 7, 3)
    assert found(write(tmp_path, batches, time_index=entry), "time-index") == []
