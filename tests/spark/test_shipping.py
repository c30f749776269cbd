"""Each way to a cluster, on each version of Spark, answers as `local[2]`: docs/how-to/spark-cluster.md has a table.

`make test-shipping` builds the wheel and names it, and has PySpark 4.0 to 4.3 below LOGSTORE_SPARK_VERSIONS. Some four
minutes of a processor for each version.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.archive import unpack
from tests.house.sources import ROOT
from tests.spark.standalone import cluster, java_or_skip
from tests.spark.ways import (
    WAYS,
    Answers,
    Ground,
    answers_here,
    make_environments,
    plain_environment,
    quick_spark,
)

WHEEL, VERSIONS = "LOGSTORE_WHEEL", "LOGSTORE_SPARK_VERSIONS"
IS_ASKED = WHEEL in os.environ and VERSIONS in os.environ
FOLDERS = sorted(Path(os.environ[VERSIONS]).resolve().glob("*/pyspark")) if IS_ASKED else []
NOT_TRIED = "-"
PAGE = ROOT / "docs" / "how-to" / "spark-cluster.md"


def shown_table() -> dict[str, dict[str, str]]:
    """The page's table: by way and version, the number of answers that are the same as on one machine, or a dash."""
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    head = next(row for row in rows if row[0] == "way")
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows if row[0] in WAYS}


def test_the_page_has_each_way_and_each_version() -> None:
    line = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("SPARK_VERSIONS"))
    versions = line.split(":=")[1].split()
    assert {way: list(shown) for way, shown in shown_table().items()} == dict.fromkeys(WAYS, versions)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    java_or_skip()
    return unpack("demo", tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def expected(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """The answers of one process of the environment of this checkout."""
    return answers_here(data, tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environments")
    make_environments(folder, Path(os.environ[WHEEL]).resolve())
    return folder


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.parent.name)
def ground(
    request: pytest.FixtureRequest, data: Path, environments: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    spark: Path = request.param
    place = tmp_path_factory.mktemp("cluster")
    home = quick_spark(spark, tmp_path_factory.mktemp("spark"))
    with cluster(place, 2, variables=plain_environment(place, home)) as master:
        yield Ground(spark, home, master, environments, Path(os.environ[WHEEL]).resolve(), data, place)


@pytest.mark.long
@pytest.mark.skipif(not FOLDERS, reason=f"`make test-shipping` sets {WHEEL} and {VERSIONS}")
@pytest.mark.parametrize("way", WAYS)
def test_a_way_answers_as_one_machine_does(ground: Ground, way: str, expected: Answers, tmp_path: Path) -> None:
    found = WAYS[way](ground._replace(place=tmp_path))
    version = ground.spark.parent.name
    assert found.pop("version", version) == version
    same = [name for name in found if found[name] == expected[name][: len(found[name])]]
    assert same == list(found)
    assert shown_table()[way][version] in (str(len(same)), NOT_TRIED)
    assert all(expected[name][0] > 0 for name in found if name != "findings")
