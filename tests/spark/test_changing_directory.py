"""A directory that is written, rolled, cleaned or deleted while a query runs: consistent answers, or a clear error."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from benchmarks.support.data import write_segment as write_large_segment
from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from logstore.errors import DataDirectoryError, UsageError
from spark_dumps import bounds
from spark_dumps.listed_partition import ListedPartition
from spark_dumps.tables import MODULES
from tests.spark.planned import Planned, without_log
from tests.spark.segment_files import batch, write_partition, write_segment

ALL = list(range(600))


def test_records_written_after_planning_are_not_read(tmp_path: Path) -> None:
    paths = write_partition(tmp_path)
    planned = Planned(tmp_path)
    with paths[-1].open("ab") as log:
        log.write(batch(60))
    write_segment(tmp_path / "orders-0", 610, batch(61))
    write_partition(tmp_path, "orders-1")
    assert planned.offsets() == ALL
    assert len(Planned(tmp_path).offsets()) == 2 * 600 + 20


def test_a_segment_that_retention_took_is_an_error(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[0]
    planned = Planned(tmp_path)
    path.rename(path.with_name(path.name + ".deleted"))
    with pytest.raises(DataDirectoryError, match="run the query again"):
        planned.rows()
    assert Planned(tmp_path).offsets() == ALL[200:]


def test_a_partition_that_was_deleted_is_an_error(tmp_path: Path) -> None:
    write_partition(tmp_path)
    planned = [Planned(tmp_path, table=table) for table in ("records", "topics", "producers")]
    shutil.rmtree(tmp_path / "orders-0")
    for one in planned:
        with pytest.raises(DataDirectoryError, match="orders-0"):
            one.rows()


@pytest.mark.parametrize("min_partitions", [1, 9])
def test_a_segment_that_the_cleaner_replaced_is_an_error(min_partitions: int, tmp_path: Path) -> None:
    path = write_partition(tmp_path)[1]
    planned = Planned(tmp_path, minPartitions=min_partitions)
    write_segment(path.parent, 200, b"".join(map(batch, range(21, 40))))
    with pytest.raises(DataDirectoryError, match=path.name):
        planned.rows()


def test_a_segment_of_the_same_length_but_other_batches_is_an_error(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[1]
    planned = Planned(tmp_path)
    write_segment(path.parent, 200, b"".join(batch(number) for number in [20 + 50, *range(21, 40)]))
    with pytest.raises(DataDirectoryError, match="was replaced"):
        planned.rows()


def test_a_segment_that_the_cleaner_merged_into_the_one_before_is_an_error(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[0]
    planned = Planned(tmp_path, startingOffsets='{"orders": {"0": 100}}', endingOffsets='{"orders": {"0": 190}}')
    write_segment(path.parent, 0, b"".join(map(batch, [0, *range(9, 40)])))  # larger, with the first batch as before
    with pytest.raises(DataDirectoryError, match="was replaced"):
        planned.rows()


@pytest.mark.parametrize("is_left", [False, True])
def test_a_segment_that_the_cleaner_has_not_renamed_yet_is_read(is_left: bool, tmp_path: Path) -> None:
    """The first two segments were merged; of the second the `.log` may be left, as in a copy made meanwhile."""
    paths = write_partition(tmp_path)
    for path in paths[: 1 if is_left else 2]:
        path.rename(path.with_name(path.name + ".deleted"))
    path = write_segment(tmp_path / "new", 0, b"".join(map(batch, range(0, 40, 2))))
    path.rename(paths[0].with_name(paths[0].name + ".swap"))
    merged = [offset for offset in range(200 if is_left else 400) if offset // 10 % 2 == 0]
    planned = [Planned(tmp_path, minPartitions=count, isolation_level="read_committed") for count in (1, 9)]
    for one in planned:
        assert one.offsets() == [*merged, *range(200 if is_left else 400, 600)]
    (row,) = Planned(tmp_path, table="topics").rows()
    assert (row["log_start_offset"], row["segment_count"]) == (0, 3 if is_left else 2)


def test_a_log_that_was_truncated_is_an_error(tmp_path: Path) -> None:
    path = write_partition(tmp_path)[-1]
    planned = Planned(tmp_path)
    path.write_bytes(path.read_bytes()[: 5 * len(batch(0))])
    with pytest.raises(DataDirectoryError, match="shorter than at planning"):
        planned.rows()


def test_planning_lists_again_when_a_file_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_partition(tmp_path)[0]
    real = bounds.plan_segments

    def take_away(partition: ListedPartition) -> object:
        path.unlink(missing_ok=True)
        return real(partition)

    monkeypatch.setattr(bounds, "plan_segments", take_away)
    assert Planned(tmp_path).offsets() == ALL[200:]


def test_planning_begins_anew_when_a_file_goes_after_the_bounds_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_log(write_partition(tmp_path)[0], monkeypatch)
    assert Planned(tmp_path).offsets() == ALL[200:]


def test_planning_gives_up_on_a_directory_that_does_not_hold_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path)

    def fail(partition: ListedPartition) -> None:
        raise DataDirectoryError("gone", path="0.log")

    monkeypatch.setattr(bounds, "plan_segments", fail)
    with pytest.raises(DataDirectoryError, match=r"0\.log"):
        Planned(tmp_path)


def test_replicas_of_one_partition_are_refused(tmp_path: Path) -> None:
    write_partition(tmp_path / "broker-1")
    write_partition(tmp_path / "broker-2")
    with pytest.raises(UsageError, match="orders-0 is there twice"):
        Planned(tmp_path / "broker-*")
    assert Planned(tmp_path / "broker-1").offsets() == ALL


NOT_SEEN = f"executor {socket.gethostname()} does not see"
FROM_FILES = [name for name in MODULES if name not in ("group_offsets", "transaction_state")]
LOG_TABLES = [pytest.param(name, "orders-0", id=name) for name in FROM_FILES]
LOG_TABLES += [("group_offsets", "__consumer_offsets-0"), ("transaction_state", "__transaction_state-0")]


@pytest.mark.parametrize(("table", "name"), LOG_TABLES)
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_an_executor_that_does_not_see_the_directory_says_so(table: str, name: str, mode: str, tmp_path: Path) -> None:
    root = tmp_path / "data"
    paths = write_partition(root, name)
    planned = Planned(root, table=table, mode=mode)
    size = sum(path.stat().st_size for path in paths)
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(DataDirectoryError, match=f"{NOT_SEEN} {root}/{name}.*driver listed") as raised:
        planned.rows()
    if table not in ("records", "batches"):  # a task of these knows its segments
        assert f"(driver listed 9 files, {size} bytes)" in str(raised.value)
    root.mkdir()  # where nothing is mounted
    with pytest.raises(DataDirectoryError, match=NOT_SEEN):
        planned.rows()
    shutil.copytree(tmp_path / "elsewhere", root, dirs_exist_ok=True)
    if mode == "DROPMALFORMED":  # the records are no coordinator's
        assert Planned(root, table=table, mode=mode).rows() == planned.rows()


@pytest.mark.parametrize(("table", "name"), LOG_TABLES)
def test_an_executor_that_misses_a_file_names_it(table: str, name: str, tmp_path: Path) -> None:
    path = write_partition(tmp_path, name)[1]
    planned = Planned(tmp_path, table=table)
    size = path.stat().st_size
    path.rename(tmp_path / "away")
    with pytest.raises(DataDirectoryError, match=rf"{NOT_SEEN} {path} \(driver listed 1 file, {size} bytes\)"):
        planned.rows()


@pytest.mark.parametrize(("table", "name"), LOG_TABLES)
def test_an_executor_that_sees_fewer_bytes_says_how_many(table: str, name: str, tmp_path: Path) -> None:
    path = write_partition(tmp_path, name)[-1]
    planned = Planned(tmp_path, table=table)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: 5 * len(batch(0))])
    with pytest.raises(DataDirectoryError, match=f"{socket.gethostname()} sees fewer bytes.*at least {size} bytes"):
        planned.rows()


@pytest.mark.parametrize(("table", "name"), LOG_TABLES)
def test_another_meta_properties_is_another_directory(table: str, name: str, tmp_path: Path) -> None:
    write_partition(tmp_path, name)
    properties = tmp_path / "meta.properties"
    properties.write_text("#then\nversion=1\nnode.id=1\ndirectory.id=A\n")
    planned = Planned(tmp_path, table=table, mode="DROPMALFORMED")
    properties.write_text("#now\ndirectory.id=A\nnode.id=1\nversion=1\n")  # as a broker may write it again
    rows = planned.rows()
    properties.write_text("version=1\nnode.id=2\ndirectory.id=A\n")
    with pytest.raises(DataDirectoryError, match=r"sees another directory at .*with node\.id=1.*with node\.id=2"):
        planned.rows()
    properties.unlink()
    with pytest.raises(DataDirectoryError, match=r"sees another directory at .*found no meta\.properties"):
        planned.rows()
    assert Planned(tmp_path, table=table, mode="DROPMALFORMED").rows() == rows


@pytest.mark.parametrize("table", ["topics", "transactions", "findings"])
def test_a_segment_that_waits_for_its_removal_was_seen(table: str, tmp_path: Path) -> None:
    path = write_partition(tmp_path)[0]
    planned = Planned(tmp_path, table=table)
    for one in path.parent.glob(f"{path.stem}.*"):
        one.rename(f"{one}.deleted")
    expected = Planned(tmp_path, table=table).rows()
    assert planned.rows() == expected


@pytest.mark.parametrize("table", ["records", "batches"])
def test_a_log_that_is_cut_while_a_task_reads_it_is_an_error(table: str, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    write_large_segment(path, 20 * 2**20, value_size=1000)
    rows = Planned(tmp_path, table=table).batches()
    assert next(rows).num_rows > 0
    os.truncate(path, 1000)
    with pytest.raises(DataDirectoryError, match="became shorter while it was read"):
        list(rows)


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_log_that_is_cut_while_an_audit_reads_it_is_told(is_closed: bool, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    write_large_segment(path, 20 * 2**20, value_size=1000)
    if is_closed:  # nobody cuts it: it is mapped
        (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')
    cut = (lambda size: None) if is_closed else (lambda size: os.truncate(path, 1000))
    facts = verify_partition(open_partition(str(tmp_path / "orders-0")), advance=cut)
    assert (facts.error is None) == is_closed
    if not is_closed:
        assert "became shorter while it was read" in str(facts.error)
