"""The page about Spark, and what the README shows of it, in a real session."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stories.pages import ROOT, run_page
from tests.support.golden import Golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_the_page_does_what_it_shows(
    spark: SparkSession, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(golden("demo"), tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert spark.version
    assert run_page(ROOT / "docs" / "how-to" / "audit-with-spark.md", tmp_path) >= 5


def test_the_readme_does_what_it_shows_of_spark(
    spark: SparkSession, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(golden("demo"), tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert spark.version
    assert run_page(ROOT / "README.md", tmp_path, is_wanted=lambda text: "spark" in text) == 1
