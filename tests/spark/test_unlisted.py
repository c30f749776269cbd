"""What cannot be listed of a partition is an error, a row, a finding or a warning, and never nothing."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from logstore.audit.directory_audit import audit_directory
from logstore.errors import DataDirectoryError
from spark_dumps.tables import MODULES
from tests.spark.planned import Planned
from tests.spark.segment_files import write_partition

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tests.spark.conftest import Load

NOW_MS = 1_900_000_000_000
TABLES = [name for name in MODULES if name != "findings"]
TOPICS = {"group_offsets": "__consumer_offsets", "transaction_state": "__transaction_state"}


@contextmanager
def refused(path: Path, number: int = errno.EACCES) -> Iterator[None]:
    """Let the system refuse to list a directory."""
    scandir = os.scandir

    def refusing(other: Any = ".") -> Any:
        if str(other) == str(path):
            raise OSError(number, os.strerror(number), str(other))
        return scandir(other)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "scandir", refusing)
        yield


def linked(path: Path) -> AbstractContextManager[None]:
    """Put a link in the place of a directory, out of its parent."""
    elsewhere = path.parent.parent / "elsewhere" / path.name
    elsewhere.parent.mkdir(exist_ok=True)
    path.symlink_to(path.rename(elsewhere))
    return nullcontext()


def linked_file(path: Path) -> AbstractContextManager[None]:
    """Put a link in the place of a partition's first segment."""
    (log, *_) = sorted(path.glob("*.log"))
    log.symlink_to(log.rename(path.parent.parent / log.name))
    return nullcontext()


WAYS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "a link": linked,
    "permissions": refused,
    "a file that is a link": linked_file,
}


def made(root: Path, topic: str) -> Path:
    """Two partitions of a topic; the second cannot be listed in the test."""
    write_partition(root, f"{topic}-0", [3])
    return write_partition(root, f"{topic}-1", [3])[0].parent


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", TABLES)
def test_a_partition_that_cannot_be_listed_in_every_mode(
    table: str, way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, root = TOPICS.get(table, "orders"), tmp_path / "data"
    path = made(root, topic)
    with WAYS[way](path):
        with pytest.raises(DataDirectoryError, match=f"{topic}-1"):
            Planned(root, table=table)
        caplog.clear()
        rows = Planned(root, table=table, mode="PERMISSIVE").rows()
        told = [row for row in rows if row["_corrupt_record"] is not None and str(path) in row["_corrupt_record"]]
        place = (None, None) if table == "transaction_state" else (topic, 1)  # it has no such columns
        assert [(row.get("topic"), row.get("partition")) for row in told] == [place]
        assert caplog.text == ""
        Planned(root, table=table, mode="DROPMALFORMED").rows()
        (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert str(path) in warning.getMessage()


@pytest.mark.parametrize("way", ["a link", "permissions"])
@pytest.mark.parametrize(
    "chosen",
    [
        {"subscribe": "orders"},
        {"subscribePattern": "ord.*"},
        {"assign": '{"orders": [1]}'},
        {"assign": '{"orders": [1]}', "startingOffsets": '{"orders": {"1": 5}}'},
    ],
)
def test_a_chosen_partition_that_cannot_be_listed_is_not_missing(
    chosen: dict[str, str], way: str, tmp_path: Path
) -> None:
    root = tmp_path / "data"
    path = made(root, "orders")
    with WAYS[way](path):
        with pytest.raises(DataDirectoryError, match="orders-1"):
            Planned(root, **chosen)
        rows = Planned(root, mode="PERMISSIVE", **chosen).rows()
        told = [row for row in rows if row["_corrupt_record"] is not None]
        assert [(row["topic"], row["partition"]) for row in told] == [("orders", 1)]
        assert (len(rows) > 1) == ("assign" not in chosen)
        bounds = {name: chosen[name] for name in chosen if not name.startswith("starting")}
        (finding,) = [row for row in Planned(root, table="findings", **bounds).rows() if row["path"] == str(path)]
        assert finding["rule"] == ("log-unreadable" if way == "permissions" else "directory-entry")
        assert Planned(root, subscribe="orders", endingOffsets='{"orders": {"0": 7, "1": 9}}', mode="PERMISSIVE").rows()


@pytest.mark.parametrize("way", ["a link", "permissions"])
def test_a_match_of_a_pattern_that_cannot_be_listed(way: str, tmp_path: Path) -> None:
    root = tmp_path / "data"
    path = made(root, "orders")
    with WAYS[way](path):
        with pytest.raises(DataDirectoryError, match="orders-1"):
            Planned(root / "orders-*")
        rows = Planned(root / "orders-*", mode="PERMISSIVE").rows()
        assert [row["partition"] for row in rows if row["_corrupt_record"] is not None] == [1]
        findings = Planned(root / "orders-*", table="findings").rows()
        assert [row["path"] for row in findings if row["rule"] in ("directory-entry", "log-unreadable")] == [str(path)]
        for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):  # the one path that is asked for
            with pytest.raises(DataDirectoryError, match="orders-1"):
                Planned(path, mode=mode)


@pytest.mark.parametrize("way", WAYS)
def test_findings_are_those_of_the_audit(way: str, tmp_path: Path) -> None:
    root = tmp_path / "data"
    path = made(root, "orders")
    with WAYS[way](path):
        rows = Planned(root, table="findings", now=NOW_MS).rows()
        expected = audit_directory(str(root), NOW_MS).findings
    assert sorted((row["rule"], row["path"]) for row in rows) == sorted((one.rule, one.where.path) for one in expected)
    rule = "log-unreadable" if way == "permissions" else "directory-entry"
    assert [row["path"].startswith(str(path)) for row in rows if row["rule"] == rule] == [True]


def test_a_partition_that_is_refused_in_two_paths_is_told_once(tmp_path: Path) -> None:
    root = tmp_path / "data"
    path = made(root, "orders")
    with linked(path):
        rows = Planned(f"{root},{root}", mode="PERMISSIVE").rows()
        assert len([row for row in rows if row["_corrupt_record"] is not None]) == 1


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_a_partition_that_is_removed_while_it_is_listed_is_gone(
    mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "data"
    with refused(made(root, "orders"), errno.ENOENT):
        assert {row["partition"] for row in Planned(root, mode=mode).rows()} == {0}
    assert caplog.text == ""


def test_a_schema_without_the_column_for_errors_logs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = made(tmp_path / "data", "orders")
    with linked(path):
        assert len(Planned(tmp_path / "data", "offset long", mode="PERMISSIVE").rows()) == 30
    assert str(path) in caplog.text


def test_a_row_of_what_cannot_be_listed_in_spark(tmp_path: Path, load: Load) -> None:
    path = made(tmp_path / "data", "orders")
    with linked(path):
        rows = load(tmp_path / "data", mode="PERMISSIVE").where("_corrupt_record is not null").collect()
    assert [(row.topic, row.partition, str(path) in row._corrupt_record) for row in rows] == [("orders", 1, True)]
