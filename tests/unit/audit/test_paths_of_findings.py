"""Findings name paths in one form: as the user gave the directory, joined with what lies below it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.audit.directory_audit import audit_directory
from tests.planted import prove
from tests.planted.planter import KINDS, Planter
from tests.support.dice import Dice

PLANTED = (
    "commit completed otherwise",
    "group ahead of the log",
    "group in another partition",
    "recovery points with a wrong words",
    "leader epochs with a wrong noise",
    "bit of a record flipped",
    "topic id of noise",
    "meta.properties emptied",
    "quorum-state of noise",
    ".txnindex of noise",
    "snapshot of version 7",
    "foreign directory",
)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("given", ["data", "./data"])
def test_a_path_begins_as_it_was_given(
    kind: str, given: str, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prove.MODULES  # registers the kinds
    base = "groups" if kind.startswith("group") else "transactions"
    root = shutil.copytree(golden(base), tmp_path / "data")
    KINDS[kind].plant(Planter(root, Dice("paths")))
    monkeypatch.chdir(tmp_path)
    paths = [finding.where.path for finding in audit_directory(given, 0).findings]
    assert paths, kind
    assert [path for path in paths if path is None or not path.startswith(f"{given}/")] == []
