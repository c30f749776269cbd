"""Every page in docs/ does what it shows, and names nothing that is not there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stories.pages import ROOT, run_page

PAGES = sorted((ROOT / "docs").glob("*.md"))
ON_SPARK = "audit-with-spark.md"  # tests/spark/test_docs.py
WITHOUT_PROGRAMS = ("architecture.md", "benchmarks.md")
_FOLDERS = "logstore|tools|spark_dumps|tests|benchmarks|docs"


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name not in (ON_SPARK, *WITHOUT_PROGRAMS)], ids=lambda p: p.stem
)
def test_pages_do_what_they_show(
    page: Path, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "copy of `tests/golden/demo`" in page.read_text():
        shutil.copytree(golden("demo"), tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path) >= 5


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.stem)
def test_what_pages_name_is_there(page: Path) -> None:
    text = page.read_text()
    paths = re.findall(rf"`((?:{_FOLDERS})/[\w./*-]*)`", text)
    assert all(list(ROOT.glob(path.rstrip("/"))) for path in paths), [
        path for path in paths if not list(ROOT.glob(path.rstrip("/")))
    ]
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^    )make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_contributors_are_told_of_every_variable() -> None:
    sources = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    used = {name for path in sources for name in re.findall(r"environ[^\n]*\"(LOGSTORE_\w+)\"", path.read_text())}
    told = set(re.findall(r"`(LOGSTORE_\w+)[=`]", (ROOT / "CONTRIBUTING.md").read_text()))
    assert used - told == set(), "CONTRIBUTING.md has a table of them"
    assert len(used) > 10


def test_each_page_is_one_that_a_test_runs() -> None:
    assert {ON_SPARK, *WITHOUT_PROGRAMS} <= {page.name for page in PAGES}
    assert len(PAGES) >= 5


def test_a_page_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text in (
        "```python\nassert 1 == 2\n```",
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ false\n```",
        "```console\n$ false\n$ echo $?\n0\n```",
        "```console\n$ echo one\n```",
    ):
        page.write_text(f"{text}\n")
        with pytest.raises(AssertionError):
            run_page(page, tmp_path)
    page.write_text("```console\n$ echo one\n$ (exit 3)\n$ echo $?\n3\n```\n".replace("one\n", "one\none\n"))
    assert run_page(page, tmp_path) == 3
