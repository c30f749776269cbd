"""`audit --spark` where executors see something else than the driver; no JVM is needed to play them."""

from __future__ import annotations

import pickle
import re
import shutil
import socket
from pathlib import Path

import pytest

from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import audit_directory
from logstore.audit.partition import open_partitions
from logstore.audit.verify import PartitionFacts
from logstore.errors import DataDirectoryError
from spark_dumps.seen import GROUP_COST_MAX, SeenFiles, packed
from spark_dumps.spread import follow_on_executors
from spark_dumps.tables import PartitionsTask
from tests.spark.planned import Executors
from tests.spark.segment_files import batch, write_partition, write_segment

HOST = socket.gethostname()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two partitions of three segments each."""
    for name in ("orders-0", "orders-1"):
        write_partition(tmp_path / "data", name)
    (tmp_path / "data" / "meta.properties").write_text("version=1\nnode.id=1\n")
    return tmp_path / "data"


def followed(path: Path, executors: Executors) -> list[PartitionFacts]:
    root = str(path)
    return follow_on_executors(executors, open_partitions(root), Cluster(root), decodes=True)  # type: ignore[arg-type]


def test_executors_that_see_the_directory_find_what_an_audit_finds(data: Path) -> None:
    (data / "orders-0" / "00000000000000000000.index").write_bytes(bytes(7))
    alone = audit_directory(str(data), 0)
    found = audit_directory(str(data), 0, lambda partitions, cluster: followed(data, Executors()))
    assert found.findings == alone.findings
    assert len(found.findings) > 0


def test_a_directory_that_executors_do_not_see_is_an_error(data: Path) -> None:
    away = data.with_name("away")
    blind = Executors(lambda: data.rename(away), lambda: away.rename(data))
    size = sum(path.stat().st_size for path in (data / "orders-0").glob("*.log"))
    words = f"executor {HOST} does not see {data}/orders-0 (driver listed 9 files, {size} bytes)"
    with pytest.raises(DataDirectoryError, match=re.escape(words)):
        followed(data, blind)
    with pytest.raises(DataDirectoryError, match=re.escape(words)):
        audit_directory(str(data), 0, lambda partitions, cluster: followed(data, blind))


def test_a_segment_that_executors_do_not_see_is_an_error(data: Path) -> None:
    path = data / "orders-1" / "00000000000000000200.log"
    away = data.with_name("away")
    blind = Executors(lambda: path.rename(away), lambda: away.rename(path))
    with pytest.raises(
        DataDirectoryError, match=re.escape(f"executor {HOST} does not see {path} (driver listed 1 file")
    ):
        followed(data, blind)


def test_another_directory_at_the_path_is_an_error(data: Path) -> None:
    properties = data / "meta.properties"
    other = Executors(
        lambda: properties.write_text("version=1\nnode.id=2\n"), lambda: properties.write_text("version=1\nnode.id=1\n")
    )
    with pytest.raises(DataDirectoryError, match=rf"executor {HOST} sees another directory at {data} than the driver"):
        followed(data, other)


def test_a_segment_that_retention_took_is_not_missed(data: Path) -> None:
    first = data / "orders-0" / "00000000000000000000.log"

    def take() -> None:
        for path in first.parent.glob(f"{first.stem}.*"):
            path.unlink()
        shutil.rmtree(data / "orders-1", ignore_errors=True)

    executors = Executors(take)
    (facts,) = followed(data, executors)
    assert executors.job_count == 2
    assert (facts.partition.name, facts.evidence.segment_count) == ("orders-0", 2)


def test_an_executor_that_reads_less_than_was_listed_is_an_error(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data / "orders-0" / "00000000000000000400.log"
    whole = path.read_bytes()
    monkeypatch.setattr("spark_dumps.seen.SeenFiles.require", lambda self: None)  # what is cut after it was seen
    cut = Executors(lambda: path.write_bytes(whole[: len(batch(0))]), lambda: path.write_bytes(whole))
    with pytest.raises(
        DataDirectoryError, match=rf"executor {HOST} read fewer bytes of the logs than the driver listed"
    ):
        followed(data, cut)


def test_records_that_came_meanwhile_are_no_difference(data: Path) -> None:
    more = Executors(lambda: write_segment(data / "orders-0", 600, b"".join(map(batch, range(60, 70)))))
    assert [facts.partition.name for facts in followed(data, more)] == ["orders-0", "orders-1"]
    assert more.job_count == 1


def test_what_was_seen_is_pickled_small(tmp_path: Path) -> None:
    path = str(tmp_path / "orders-0")
    names = [f"{base:020d}{suffix}" for base in range(0, 20_000_000, 1000) for suffix in (".log", ".index")]
    sizes = {f"{path}/{name}": size for size, name in enumerate(names)}
    seen = SeenFiles.of_sizes(path, sizes, frozenset({"node.id=1"}), {})
    assert seen.sizes == sizes
    pickled = pickle.dumps(PartitionsTask((seen, seen)))
    assert pickle.loads(pickled) == PartitionsTask((seen, seen))
    assert len(pickled) < 10 * len(names)


def test_groups_have_about_equal_costs_and_keep_the_order() -> None:
    costs = [5, 1, 1, 1, 40, 1, 1]
    assert list(packed(costs, int, 10)) == [(5,), (1, 1, 1), (40,), (1, 1)]
    assert list(packed([GROUP_COST_MAX, 1, 1], int, 1)) == [(GROUP_COST_MAX,), (1, 1)]
    assert list(packed([], int, 10)) == []


def test_partitions_are_grouped_by_files_and_bytes(data: Path) -> None:
    write_partition(data, "orders-2", [2] * 60)
    executors = Executors()
    followed(data, executors)
    names = [[listed.partition.name for listed in group] for group in executors._things]
    assert names == [["orders-0", "orders-1"], ["orders-2"]]
