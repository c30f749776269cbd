"""Every page in docs/ does what it shows, and names nothing that is not there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from docs.generators import pages as generated_pages
from tests.stories.pages import ROOT, blocks, run_page
from tests.support.golden import Golden
from tests.support.sampling import sampled

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ELSEWHERE = (  # tests/spark/test_docs.py, tests/objects/test_docs.py
    DOCS / "how-to" / "audit-with-spark.md",
    DOCS / "how-to" / "object-stores.md",
)
BEFORE_EACH_COMMIT = (DOCS / "tutorials" / "first-store.md", DOCS / "how-to" / "read-committed-is-stuck.md")
_FOLDERS = "logstore|tools|spark_dumps|tests|benchmarks|docs"


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


SHOWING = [page for page in PAGES if page not in ELSEWHERE and blocks(page)]


@pytest.mark.parametrize("page", sampled(SHOWING, BEFORE_EACH_COMMIT, pytest.mark.slow), ids=_name)
def test_pages_do_what_they_show(page: Path, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "copy of `tests/golden/demo`" in page.read_text():
        shutil.copytree(golden("demo"), tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path) > 0


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=_name)
def test_paths_links_and_targets_in_pages_exist(page: Path) -> None:
    text = page.read_text()
    paths = re.findall(rf"`((?:{_FOLDERS})/[\w./*-]*)`", text)
    assert all(list(ROOT.glob(path.rstrip("/"))) for path in paths), [
        path for path in paths if not list(ROOT.glob(path.rstrip("/")))
    ]
    for path, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" not in path:
            target = page.parent / path if path else page
            assert target.exists(), path
            assert not anchor or anchor in _anchors(target), (path, anchor)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^    )make ([a-z-]+)", text, re.MULTILINE)) <= targets


def _anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


@pytest.mark.parametrize("page", generated_pages(), ids=_name)
def test_generated_pages_are_what_the_code_says(page: Path) -> None:
    assert page.read_text() == generated_pages()[page](), "stale: run `make reference`"


def test_every_page_has_a_place_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert sorted(re.findall(r"[\w/-]+\.md", navigation)) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_contributors_are_told_of_every_variable() -> None:
    sources = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    used = {
        name
        for path in sources
        for name in re.findall(r"(?:environ|case_count)[^\n]*?\"(LOGSTORE_\w+)\"", path.read_text())
    }
    told = set(re.findall(r"`(LOGSTORE_\w+)[=`]", (ROOT / "CONTRIBUTING.md").read_text()))
    assert used - told == set(), "CONTRIBUTING.md has a table of them"
    assert len(used) > 10


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
