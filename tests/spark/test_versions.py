"""The same answers from every Spark: the one of the environment, and those below LOGSTORE_SPARK_VERSIONS.

`make test-spark-versions` installs PySpark 4.0 to 4.3 below a directory of its own, one folder each, as `pip install
--target` does. `make test` tries the newest, which is installed, by all other tests, and of the oldest its Python part,
`pyspark-client`, by some tests that need no JVM (`make test-oldest-spark`): a PySpark is 430 MB.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from logstore.errors import UsageError
from spark_dumps import versions
from spark_dumps.versions import require_read_limits
from tests.spark.standalone import java_or_skip
from tests.spark.ways import Answers, answers_here
from tests.support.golden import Golden

VARIABLE = "LOGSTORE_SPARK_VERSIONS"
FOLDERS = sorted(Path(os.environ[VARIABLE]).resolve().glob("*/pyspark")) if VARIABLE in os.environ else []


@cache
def installed_answers(data: Path, place: Path) -> Answers:
    place.mkdir()
    return answers_here(data, place)


@pytest.mark.skipif(not FOLDERS, reason=f"{VARIABLE} names no directory with installed versions of PySpark")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_version_answers_the_same(folder: Path, golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> None:
    java_or_skip()
    expected = installed_answers(golden("demo"), tmp_path_factory.getbasetemp() / "installed")
    found = answers_here(golden("demo"), tmp_path_factory.mktemp(folder.parent.name), folder.parent)
    assert found["version"] == folder.parent.name
    assert {**found, "version": 0} == {**expected, "version": 0}
    assert expected["records"][0] > 0
    assert expected["streamed"][0] > 0


def test_what_an_old_spark_lacks_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "HAS_READ_LIMITS", False)
    with pytest.raises(UsageError, match=r"cannot heed maxRecordsPerTrigger.*expected Spark 4\.2"):
        require_read_limits("maxRecordsPerTrigger")
