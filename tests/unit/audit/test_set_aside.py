"""Partitions that a broker has set aside: what lists nothing of them says so, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore_tools.commands import logstore as command
from tests.support.golden import Golden

REFUSED = [("producers", "-delete")] + [
    (verb, end) for verb in ("txns list", "txns hanging", "txns explain") for end in ("-delete", "-stray", "-future")
]


@pytest.mark.parametrize(("verb", "end"), REFUSED)
def test_a_directory_of_which_nothing_is_listed_is_told(verb: str, end: str, golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    path = (root / "orders-0").rename(root / f"orders-0.{'0' * 32}{end}")
    done = CliRunner().invoke(command, [*verb.split(), str(path)])
    assert (done.exit_code, done.stdout) == (3, "")
    for words in (str(path), f"ends in {end}", "logstore salvage"):
        assert words in done.stderr


@pytest.mark.parametrize("end", ["-stray", "-future"])
def test_producers_of_a_directory_that_a_broker_may_load_are_listed(end: str, golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    listed = CliRunner().invoke(command, ["producers", str(root / "payments-0"), "--format", "csv"]).stdout
    path = (root / "payments-0").rename(root / f"payments-0.{'0' * 32}{end}")
    done = CliRunner().invoke(command, ["producers", str(path), "--format", "csv"])
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == len(listed.splitlines()) > 1


@pytest.mark.parametrize("end", ["-stray", "-future"])
def test_a_directory_that_is_set_aside_is_no_partition_of_its_topic(end: str, golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    (before,) = (row for row in logstore.topics(root) if row.topic == "orders")
    shutil.copytree(root / "orders-0", root / f"orders-0.{'0' * 32}{end}")
    (row,) = (row for row in logstore.topics(root) if row.topic == "orders")
    assert row == before._replace(segment_count=2, size=2 * before.size)
