"""The session that is made for the user, and what it says where something is missing."""

from __future__ import annotations

import os
import pkgutil
import stat
import sys
import tomllib
import types
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import spark_dumps
from logstore.audit.directory_audit import audit_directory
from logstore.errors import UsageError
from logstore.view.parallel_scan import processor_count
from spark_dumps.session import UNIX_SOCKETS, audit_with_spark, check_java, check_pyspark, settings_of
from spark_dumps.source import KafkaSegments
from tests.house.sources import ROOT
from tests.spark.planned import Executors
from tests.support.golden import Golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Load


NOW_MS = 1_900_000_000_000


def java_that_says(directory: Path, text: str) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return directory


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="openjdk-17-jre-headless"):
        spark_dumps.session()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="JAVA_HOME"):
        check_java()


@pytest.mark.parametrize(
    ("text", "is_new_enough"),
    [
        ('openjdk version "17.0.15" 2025-04-15', True),
        ('openjdk version "21" 2023-09-19', True),
        ('java version "1.8.0_392"', False),
        ('openjdk version "11.0.2" 2019-01-15', False),
        ("not a Java at all", False),
    ],
)
def test_the_version_of_java_is_looked_at(
    text: str, is_new_enough: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_that_says(tmp_path, text)))
    if is_new_enough:
        assert check_java() is None
    else:
        with pytest.raises(UsageError, match="Java 17"):
            check_java()


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'logstore-kafka\[spark\]'"):
        check_pyspark()


def test_the_extra_leaves_the_pyspark_of_a_cluster_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "pyspark" in project["optional-dependencies"]["spark"]  # no version, so pip keeps the one that is there


def test_a_client_of_spark_connect_has_no_spark_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.util.is_remote_only", lambda: True)
    with pytest.raises(UsageError, match=r"pyspark-client has no Spark of its own.*pip install pyspark for local"):
        spark_dumps.session("local[2]")


def test_an_old_pyspark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(UsageError, match=r"expected 4\.0 or newer, found 3\.5\.9"):
        check_pyspark()


@pytest.mark.slow
def test_an_audit_leaves_a_session_that_is_there_alone(spark: SparkSession, golden: Golden) -> None:
    path = str(golden("demo"))
    audited = audit_with_spark("local[1]", path, NOW_MS)
    assert audited.findings == audit_directory(path, NOW_MS).findings
    assert len(audited.partitions) > 3
    assert spark.range(3).count() == 3


@pytest.mark.slow
def test_a_task_uses_the_processor_that_spark_gives_it(spark: SparkSession) -> None:
    assert spark.conf.get("spark.task.cpus", "1") == "1"
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: processor_count()).collect() == [1]


@pytest.mark.parametrize("is_there", [True, False])
def test_an_audit_stops_the_context_that_it_made_alone(
    is_there: bool, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no SQL: a session would take as long again as the context."""
    ends: list[str] = []

    class Context(Executors):
        def __init__(self, conf: Any = None) -> None:
            super().__init__()
            if conf is not None and is_there:
                raise ValueError("Cannot run multiple SparkContexts at once")
            assert conf is None or conf.get("spark.master") == "local[2]"

        getOrCreate = classmethod(lambda cls: cls())  # noqa: N815 - Spark's name
        setLogLevel = ends.append  # noqa: N815 - Spark's name

        def stop(self) -> None:
            ends.append("stopped")

    monkeypatch.setattr("pyspark.SparkContext", Context)
    monkeypatch.setattr(sys.modules["spark_dumps.session"], "check_java", lambda: None)
    path = str(golden("demo"))
    assert audit_with_spark("local[2]", path, NOW_MS).findings == audit_directory(path, NOW_MS).findings
    assert ends == ([] if is_there else ["ERROR", "stopped"])


def test_an_audit_over_spark_connect_is_refused_before_java_is_asked_for(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "gone")
    with pytest.raises(UsageError, match=r"Spark Connect does not do.*read table findings"):
        audit_with_spark("sc://localhost", str(golden("demo")), NOW_MS)


def test_a_client_of_spark_connect_needs_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    class Builder:
        def remote(self, address: str) -> Builder:
            self.address = address
            return self

        def config(self, *, map: dict[str, str]) -> Builder:  # noqa: A002 - Spark's name
            return self

        def getOrCreate(self) -> Builder:  # noqa: N802 - Spark's name
            return self

    connect = types.ModuleType("pyspark.sql.connect.session")
    connect.SparkSession = types.SimpleNamespace(builder=Builder())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", connect)
    monkeypatch.setattr(sys.modules["spark_dumps.session"], "register", lambda session: session)
    monkeypatch.setenv("JAVA_HOME", "gone")
    assert spark_dumps.session("sc://host:15002").address == "sc://host:15002"  # type: ignore[attr-defined]


def test_spark_finds_the_source_where_it_looks_for_sources() -> None:
    (found,) = [each for each in pkgutil.iter_modules([str(ROOT)]) if each.name.startswith("pyspark_")]
    assert import_module(found.name).DefaultSource is KafkaSegments
    assert KafkaSegments.name() == "kafka_segments"


def test_an_audit_of_no_data_directory_is_refused(golden: Golden, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"This is a partition.*did you mean"):
        audit_with_spark("local[1]", str(golden("demo") / "orders-0"), NOW_MS)
    with pytest.raises(UsageError, match="not a Kafka data directory"):
        audit_with_spark("local[1]", str(tmp_path), NOW_MS)


def test_workers_run_with_the_same_python(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"]
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert [Path(path).resolve() for path in found] == [Path(os.environ["PYSPARK_PYTHON"]).resolve()]


def test_workers_talk_over_unix_sockets(spark: SparkSession) -> None:
    settings = spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ["PYTHON_UNIX_DOMAIN_ENABLED"]).collect()
    assert [each.lower() for each in settings] == ["true"]


@pytest.mark.parametrize(
    ("master", "is_short"), [("local[2]", True), ("spark://host:7077", True), ("yarn", False), ("k8s://host", False)]
)
def test_unix_sockets_are_asked_for_where_their_names_are_short(master: str, is_short: bool) -> None:
    assert settings_of(master) == ({UNIX_SOCKETS: "true"} if is_short else {})


def test_a_table_is_there_for_sql(spark: SparkSession, golden: Golden) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW ends USING kafka_segments OPTIONS (path '{golden('demo')}', table 'topics')")
    assert spark.sql("SELECT sum(log_end_offset) FROM ends").first() == (69,)


def test_a_table_of_the_catalog_is_refused_where_spark_loses_its_options(spark: SparkSession, golden: Golden) -> None:
    from pyspark.errors import PySparkException

    words = f"USING kafka_segments OPTIONS (subscribe 'orders') LOCATION '{golden('demo')}'"
    spark.sql(f"CREATE TABLE orders {words}")
    try:
        with pytest.raises(PySparkException, match="Spark tells a source in Python nothing: CREATE TEMPORARY VIEW"):
            spark.sql("SELECT count(*) FROM orders").first()
        assert spark.read.option("path", str(golden("demo"))).table("orders").where("offset < 5").count() > 0
    finally:
        spark.sql("DROP TABLE orders")
    assert (golden("demo") / "orders-0").is_dir()


def test_a_dataframe_may_be_filtered_in_different_ways(golden: Golden, load: Load) -> None:
    frame = load(golden("demo")).where("topic = 'orders'")
    low, high = frame.where("offset < 10"), frame.where("offset >= 20")
    counts = low.count(), high.count(), frame.count(), low.union(high).count()
    assert counts[0] > 0
    assert counts[1] > 0
    assert counts[2] > counts[0] + counts[1] == counts[3]


def test_an_error_names_the_file_and_what_to_do(golden: Golden, load: Load) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="no such table"):
        load(golden("demo"), table="offsets").count()
    with pytest.raises(PySparkException, match="orders-0"):
        load(golden("demo"), startingOffsets='{"orders": {"0": 999}}', subscribe="orders").count()
