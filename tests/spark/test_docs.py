"""The page about Spark does what it shows, in a real session."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stories.pages import ROOT, run_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_page_does_what_it_shows(
    spark: SparkSession, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(golden("demo"), tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert spark.version
    assert run_page(ROOT / "docs" / "how-to" / "audit-with-spark.md", tmp_path) >= 5
