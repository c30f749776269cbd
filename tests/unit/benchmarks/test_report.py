"""From the JSON file of a run to its table, its pictures and pages; and what is said of two checkouts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.support import compare, report
from benchmarks.support.report import Measurement
from docs.generators import benchmarks as pages

SVG = "{http://www.w3.org/2000/svg}"
NAME = "consumer::test_consume[polled]"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A file as pytest-benchmark writes it: three rounds, and a benchmark without a floor."""
    peers = {"confluent-kafka": {"times_s": [0.2, 0.6, 1.2]}, "aiokafka": {"absent": "not installed"}}
    info = {"title": "records | polled", "bytes": 1000, "count": 10, "unit": "records", "hash": "ab", "peers": peers}
    floor = {"name": "copy", "times_s": [0.01, 0.02, 0.03]}
    line = {"picture": "records", "series": "poll", "size": 10}
    path, test = "benchmarks/bench_consumer.py", "test_consume[polled]"
    full = {"stats": {"data": [0.1, 0.2, 0.3]}, "extra_info": {**info, "floor": floor, "growth": line}}
    plain = {
        "stats": {"data": [1.0]},
        "extra_info": {**info, "title": "other", "peers": {}, "floor": {"none": "short"}},
    }
    content = {
        "commit_info": {"id": "0123456789abcdef", "dirty": True},
        "logstore": {"machine": "2 × Fast", "load": 0.5, "scale": 1.0},
        "benchmarks": [{"fullname": f"{path}::{test}", **full}, {"fullname": f"{path}::test_other", **plain}],
    }
    found = tmp_path / "results.json"
    found.write_text(json.dumps(content))
    return found


def test_a_run_has_a_table_and_pictures(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results.parent / "growth-old.svg").write_text("of an earlier run")
    assert report.main([str(results)]) == 0
    table = (results.parent / "table.md").read_text()
    assert capsys.readouterr().out == table
    assert "Commit 0123456789ab, with changes, 2 × Fast, load 0.5 at the start, real sizes. A" in table
    row = "| 200 ms | 100 ms | 0.000 GB/s, 50.0 records/s | confluent-kafka 3.0× (2.0 to 4.0) | 5.00 % of copy | ab |"
    assert "### consumer\n\n| benchmark |" in table
    assert f"| records / polled {row}" in table
    assert "- aiokafka: not installed (1 benchmarks)" in table
    (picture,) = results.parent.glob("*.svg")
    root = ElementTree.fromstring(picture.read_text())
    lines = {text.text for text in root.iter(f"{SVG}text")} & {"poll", "poll, confluent-kafka"}
    assert (picture.name, len(root.findall(f"{SVG}circle/{SVG}title")), len(lines)) == ("growth-records.svg", 2, 2)


def test_what_is_kept_of_a_run_gives_the_same_tables(results: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert report.main([str(results), "--keep", str(kept)]) == 0
    assert report.circumstances(kept) == report.circumstances(results)
    assert report.read_results(kept) == report.read_results(results)


def test_pages_show_a_run_between_their_markers(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- benchmarks: begin -->\nold\n<!-- benchmarks: end -->\nafter\n")
    monkeypatch.setattr(pages, "_SUMMARY", [(NAME, "confluent-kafka")])
    text = pages.filled(page, lambda: pages.summary(results))
    assert text.startswith("before\n<!-- benchmarks: begin -->\n\nCommit 0123456789ab, ")
    assert "| records / polled | confluent-kafka | 3.0× (2.0 to 4.0) |" in text
    assert text.endswith("|\n\n<!-- benchmarks: end -->\nafter\n")
    page.write_text("no markers")
    with pytest.raises(ValueError, match=r"page\.md has no lines"):
        pages.filled(page, str)


def test_a_run_in_which_nothing_is_measured_fails(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")
    assert report.main([str(tmp_path / "empty.json")]) == report.main([str(tmp_path / "none.json")]) == 1


def of(*medians_s: float, digest: str = "a", name: str = NAME) -> list[dict[str, Measurement]]:
    return [{name: Measurement(name, "t", [each], digest=digest)} for each in medians_s]


def test_a_ratio_is_of_one_round_and_has_its_spread() -> None:
    text = compare.changes(of(1.0, 2.0, 1.0), of(1.5, 3.0, 1.6))
    assert f"| {NAME} | 1.00 s | 1.60 s | **1.50** (1.50 to 1.60) | slower |" in text
    assert "**1.02** (1.02 to 1.03) |  |" in compare.changes(of(1.0, 1.0, 1.0), of(1.02, 1.03, 1.02))
    assert "**1.00** (0.90 to 1.10) |  |" in compare.changes(of(1.0, 1.0, 1.0), of(0.9, 1.1, 1.0))
    assert "**0.50** (0.50 to 0.50) | faster, another result |" in compare.changes(of(1.0), of(0.5, digest="b"))


BENCHMARK = """
import time
import logstore

def test_speed(benchmark):
    benchmark.pedantic(time.sleep, args=(logstore.SECONDS,), rounds=3)
    benchmark.extra_info.update(title="sleep", hash="a", bytes=0, count=0, unit="records", peers={}, floor={})
"""


@pytest.mark.long
def test_a_slower_checkout_is_seen_beside_the_commit_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = "[tool.pytest.ini_options]\naddopts = '--benchmark-disable'"  # of before: those of now count
    files = {"tools/__init__.py": "", "tests/__init__.py": "", "pyproject.toml": settings}
    files |= {"logstore/__init__.py": "SECONDS = 0.02", "tools/main.py": "def main(): pass"}
    for name, text in {**files, "benchmarks/bench_speed.py": BENCHMARK}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "before"]):
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "logstore/__init__.py").write_text("SECONDS = 0.04")
    (tmp_path / "pyproject.toml").write_text("")
    assert compare.main(["HEAD", "--only", "speed", "--rounds", "1"], tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[2].endswith("| slower |")
    worktrees = subprocess.run(["git", "worktree", "list"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert worktrees.stdout.count("\n") == 1
