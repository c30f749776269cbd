"""A judge that is missing is a skip for a user and a failure in CI; what is kept of it is its owner's alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import oracle
from tests.support.judges import skip_without_judge


def test_a_missing_judge_skips_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOGSTORE_REQUIRE_ORACLE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Java"):
        skip_without_judge("no Java")


def test_a_missing_judge_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGSTORE_REQUIRE_ORACLE", "1")
    with pytest.raises(pytest.fail.Exception, match="LOGSTORE_REQUIRE_ORACLE=1, but no Java"):
        skip_without_judge("no Java")


def test_a_maven_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(oracle, "MAVEN_SECONDS", 0.05)
    with pytest.raises(oracle.OracleUnavailableError, match="has not resolved"):
        oracle.resolve_by_maven(tmp_path / "pom.xml", tmp_path / "classpath.txt")
    assert not (tmp_path / "classpath.txt").exists()


def test_only_a_line_feed_ends_a_line_of_a_judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Records of a broker may have what `str.splitlines` divides as well, and JSON of Java has it as it is."""
    printed = '{"value": "a\u0085b"}\n{"value": "\u2028\x1c"}\n'
    monkeypatch.setattr(oracle.Oracle, "run", lambda *args, **options: printed)
    judge = object.__new__(oracle.Oracle)
    assert judge.lines("Any", cwd=tmp_path) == ['{"value": "a\u0085b"}', '{"value": "\u2028\x1c"}']


def test_the_cache_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOGSTORE_ORACLE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with oracle.filling(oracle.oracle_cache()):
        assert oracle.oracle_cache().is_relative_to(tmp_path)
        assert oracle.oracle_cache().stat().st_mode & 0o077 == 0


def test_other_sources_are_compiled_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def compiled(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        place = Path(command[command.index("-d") + 1])
        (place / "A.class").write_text("compiled")
        runs.append(command)
        return subprocess.CompletedProcess(command, 0)

    runs: list[list[str]] = []
    source = tmp_path / "A.java"
    source.write_text("class A {}")
    monkeypatch.setattr(oracle, "SOURCES", (tmp_path,))
    monkeypatch.setattr(subprocess, "run", compiled)
    monkeypatch.setattr(oracle, "_program", str)
    first = oracle._compiled(tmp_path, "kafka.jar", oracle.FIRST)
    assert oracle._compiled(tmp_path, "kafka.jar", oracle.FIRST) == first
    source.write_text("class A { int b; }")
    assert oracle._compiled(tmp_path, "kafka.jar", oracle.FIRST) != first
    assert oracle._compiled(tmp_path, "other.jar", oracle.FIRST) != first
    assert len(runs) == 3
