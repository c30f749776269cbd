"""The same answers from every Spark: the one of the environment, and those below LOGSTORE_SPARK_VERSIONS.

`make test-spark-versions` installs PySpark 4.0 to 4.3 below a directory of its own, one folder each, as `pip install
--target` does. In `make test` the variable is not set, and the installed PySpark alone is tried, by all other tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from logstore.errors import UsageError
from spark_dumps import versions
from spark_dumps.session import check_java
from spark_dumps.versions import require_read_limits
from tests.support.golden import Golden
from tests.support.judges import skip_without_judge

PROGRAM = Path(__file__).with_name("all_tables.py")
VARIABLE = "LOGSTORE_SPARK_VERSIONS"
FOLDERS = sorted(Path(os.environ[VARIABLE]).resolve().glob("*/pyspark")) if VARIABLE in os.environ else []


@cache
def answers(data: Path, out: Path, home: Path | None) -> dict[str, Any]:
    out.mkdir()
    environment = dict(os.environ) if home is None else {**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{os.getcwd()}"}
    argv = [sys.executable, str(PROGRAM), "local[2]", str(data), str(out), "session"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.skipif(not FOLDERS, reason=f"{VARIABLE} names no directory with installed versions of PySpark")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_version_answers_the_same(folder: Path, golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        check_java()
    except UsageError as unavailable:
        skip_without_judge(f"no Spark: {unavailable}")
    place = tmp_path_factory.getbasetemp()
    expected = answers(golden("demo"), place / "installed", None)
    found = answers(golden("demo"), place / folder.parent.name, folder.parent)
    assert found["version"] == folder.parent.name
    assert {**found, "version": 0} == {**expected, "version": 0}
    assert expected["records"][0] > 0
    assert expected["streamed"][0] > 0


def test_what_an_old_spark_lacks_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "HAS_READ_LIMITS", False)
    with pytest.raises(UsageError, match=r"cannot heed maxRecordsPerTrigger.*expected Spark 4\.2"):
        require_read_limits("maxRecordsPerTrigger")
