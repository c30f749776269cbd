"""What is said of two commits, and that each is asked by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.checkouts import checkouts, commit_of, git
from benchmarks.compare import changes, main, measured_round, only_in, report
from benchmarks.results import Measurement

AFTER_SECONDS, BEFORE_SECONDS = 0.001, 0.02
BENCHMARK = """
import time

import logstore


def test_speed(benchmark):
    benchmark.pedantic(time.sleep, args=(logstore.SECONDS,), rounds=3)
    benchmark.extra_info.update(title="sleep", hash="a", bytes=0, count=0, unit="records", peers={}, floor={})
    assert logstore.SECONDS
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pytest that a run starts measure, which it would not as a child of pytest-xdist."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def found(median_s: float, digest: str = "a", identity: str = "crc::test_crc") -> dict[str, Measurement]:
    return {identity: Measurement(identity, "CRC", [median_s], 0, 0, "records", digest)}


def verdict(before: list[float], after: list[float]) -> str:
    (change,) = changes([found(each) for each in before], [found(each) for each in after])
    return change.verdict


def test_a_change_is_one_that_every_round_shows() -> None:
    assert verdict([1.0, 1.1, 0.9], [0.5, 0.55, 0.5]) == "**2.00× as fast**"
    assert verdict([1.0, 1.1, 1.0], [2.0, 2.2, 3.0]) == "**2.00× as slow**"


def test_what_one_round_denies_is_noise() -> None:
    assert verdict([1.0, 1.0, 1.0], [0.5, 0.5, 1.01]) == "no change seen"
    assert verdict([1.0, 1.0, 1.0], [2.0, 2.0, 0.99]) == "no change seen"


def test_what_is_too_small_to_matter_is_no_change() -> None:
    assert verdict([1.0, 1.0, 1.0], [0.99, 0.98, 0.99]) == "no change seen"


def test_ratios_are_of_the_same_round() -> None:
    """The machine became slower by half: that is no change of ours."""
    (change,) = changes([found(1.0), found(2.0)], [found(1.0), found(2.0)])
    assert change.ratios == [1.0, 1.0]


def test_results_that_differ_are_said() -> None:
    text = report([found(1.0, "a")] * 5, [found(0.5, "b")] * 5)
    assert "| crc: CRC | 1.00 s | 500 ms | **2.00× as fast**, **another result** | -50.0 % to -50.0 % |" in text
    assert "another result" not in report([found(1.0)] * 5, [found(0.5)] * 5)


def test_what_only_one_side_can_run_is_listed() -> None:
    new = found(1.0, identity="append::test_new")
    before, after = [found(1.0)] * 5, [{**found(1.0), **new}] * 5
    assert only_in(after, before) == ["append::test_new"]
    assert "Ran only after:\n- append::test_new" in report(before, after)
    assert "1 benchmarks, 5 rounds; chance alone may call up to 0.1 changed." in report(before, after)


def test_too_few_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["HEAD", "--rounds", "2"])
    assert "2 rounds cannot tell a change from chance" in capsys.readouterr().err


def test_an_unknown_commit_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["no-such-commit"]) == 1
    assert "git rev-parse --verify no-such-commit^{commit}: " in capsys.readouterr().err


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit with a slow library, and a newer one with another benchmark that asks it."""
    root = tmp_path / "repository"
    files = {
        "logstore/__init__.py": f"SECONDS = {BEFORE_SECONDS}\n",
        "tools/__init__.py": "",
        "tools/commands.py": "def logstore(words):\n    return None\n",
        "tests/__init__.py": "",
        "benchmarks/bench_speed.py": "def test_speed():\n    assert False, 'of before'\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git_in(root, "init", "--quiet")
    commit(root, "before")
    (root / "logstore/__init__.py").write_text(f"SECONDS = {AFTER_SECONDS}\n")
    (root / "benchmarks/bench_speed.py").write_text(BENCHMARK)
    return root


def git_in(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path, message: str) -> str:
    git_in(root, "add", "--all", "--force")
    git_in(root, "commit", "--quiet", "--message", message)
    return git(root, "rev-parse", "HEAD")


def measure_both(root: Path, place: Path, head: str | None) -> list[dict[str, Measurement]]:
    sizes: dict[str, Any] = {"LOGSTORE_BENCH_SCALE": "0"}
    base = git(root, "rev-list", "--max-parents=0", "HEAD")
    with checkouts(root, place, base, head) as sides:
        return [measured_round(side, ["speed"], sizes, place / f"{side.path.name}.json") for side in sides]


def test_both_commits_are_asked_by_the_newer_benchmarks(repository: Path, tmp_path: Path) -> None:
    head = commit(repository, "after")
    place = tmp_path / "place"
    place.mkdir()
    before, after = measure_both(repository, place, head)
    assert before["speed::test_speed"].median_s > BEFORE_SECONDS > after["speed::test_speed"].median_s > AFTER_SECONDS
    assert git(repository, "worktree", "list").count("\n") == 0


def test_without_a_head_changes_of_the_checkout_are_taken(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@t")
    now = commit_of(repository, None)
    assert now != git(repository, "rev-parse", "HEAD")
    assert git(repository, "show", f"{now}:logstore/__init__.py") == f"SECONDS = {AFTER_SECONDS}"
    assert git(repository, "stash", "list") == ""
    git_in(repository, "checkout", "--", ".")
    assert commit_of(repository, None) == git(repository, "rev-parse", "HEAD")


def test_a_commit_whose_kernels_do_not_compile_is_refused(repository: Path, tmp_path: Path) -> None:
    (repository / "tools/commands.py").write_text("raise RuntimeError('no compiler')\n")
    head = commit(repository, "broken")
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(RuntimeError, match=r"(?s)do not compile.*no compiler"):
        measure_both(repository, place, head)
    assert git(repository, "worktree", "list").count("\n") == 0
