"""`logstore features`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.replay.metadata_state import read_metadata
from logstore_tools.features_command import command
from tests.support.formatted import formatted, level
from tests.support.golden import Golden


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, [*map(str, words)], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def levels(root: Path) -> dict[str, int]:
    return read_metadata(str(root / "__cluster_metadata-0")).levels


def test_levels_are_shown(tmp_path: Path) -> None:
    logstore.open(tmp_path).close()
    code, out, err = run(tmp_path)
    rows = [line.split() for line in out.splitlines()[1:]]
    assert ["metadata.version", "30", "4.3-IV0", "7", "33"] in rows
    assert ["kraft.version", "1", "-", "0", "1"] in rows
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert (code, err) == (0, "")


def test_levels_of_a_directory_that_was_never_started_are_shown(tmp_path: Path) -> None:
    root = formatted(tmp_path / "data", level("metadata.version", 32), level("share.version", 2))
    _, out, _ = run(root, "--format", "jsonl")
    found = {row["feature"]: row["level"] for row in map(json.loads, out.splitlines())}
    assert (found["metadata.version"], found["share.version"], found["group.version"]) == (32, 2, 0)


def test_levels_rise_and_who_is_left_behind_is_told(tmp_path: Path) -> None:
    logstore.open(tmp_path).close()
    before = levels(tmp_path)
    code, out, err = run(tmp_path, "upgrade", "--release-version", "4.4", "--dry-run", "--format", "jsonl")
    rows = {row["feature"]: row for row in map(json.loads, out.splitlines())}
    assert (rows["metadata.version"]["previousLevel"], rows["metadata.version"]["level"]) == (30, 33)
    assert not any(row["done"] for row in rows.values())
    assert "no way down: Kafka 4.3 and older would not start" in err
    assert (code, levels(tmp_path)) == (0, before)
    code, out, err = run(tmp_path, "upgrade", "--release-version", "4.4-IV2", "--format", "jsonl")
    rows = {row["feature"]: row for row in map(json.loads, out.splitlines())}
    assert [name for name, row in rows.items() if row["done"]] == ["metadata.version", "share.version"]
    assert "no way down: Kafka 4.3 and older do not start on this directory any more" in err
    assert (levels(tmp_path)["metadata.version"], levels(tmp_path)["share.version"]) == (33, 2)
    size = (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").stat().st_size
    code, out, err = run(tmp_path, "upgrade", "--metadata", "4.4-IV2")
    assert (code, err) == (0, "")  # and nothing is written
    assert (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").stat().st_size == size


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["downgrade", "--release-version", "4.2"], 2, "no way down"),
        (["disable", "--feature", "share.version=0"], 2, "no way down"),
        (["upgrade", "--release-version", "4.2"], 1, "Invalid update version 29 for feature metadata.version. Can't"),
        (["upgrade"], 2, "You must specify at least one feature to upgrade"),
        (["upgrade", "--release-version", "9.9"], 2, "Unknown metadata.version '9.9'. Supported metadata.version are"),
        (["upgrade", "--release-version", "4.4", "--metadata", "4.4"], 2, "Can not specify `release-version`"),
        (["upgrade", "--feature", "a"], 2, "Can't parse feature=level string a: equals sign not found."),
        (["upgrade", "--feature", "a=b"], 2, "Can't parse feature=level string a=b: unable to parse b as a short."),
        (["upgrade", "--feature", "a=1", "--feature", "a=1"], 2, "Feature a was specified more than once."),
        (["upgrade", "--feature", "no.such=1"], 1, "Local controller 1 does not support this feature."),
        (["--release-version", "4.4"], 2, "say upgrade after the directory"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(tmp_path: Path, words: list[str], code: int, text: str) -> None:
    logstore.open(tmp_path).close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found, _, err = run(tmp_path, *words)
    assert (found, text in err) == (code, True), err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_levels_of_a_directory_without_owner_do_not_rise(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("orders")
    (tmp_path / "meta.properties").unlink()
    before = levels(tmp_path)
    code, out, err = run(tmp_path, "upgrade", "--release-version", "4.4", "--dry-run")
    assert (code, out, "without meta.properties" in err) == (1, "", True)
    assert run(tmp_path, "upgrade", "--release-version", "4.4") == (code, out, err)
    assert levels(tmp_path) == before


def test_a_directory_without_metadata_log_has_no_levels(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").touch()
    code, _, err = run(tmp_path)
    assert (code, "There is no metadata log" in err) == (1, True)


@pytest.mark.parametrize("how", [["--dry-run"], []], ids=["dry run", "upgrade"])
def test_levels_do_not_rise_where_the_opening_would_remove_readable_batches(
    golden: Golden, tmp_path: Path, how: list[str]
) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    (root / ".kafka_cleanshutdown").unlink()
    log = root / "orders-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[600] ^= 1  # in a batch that others follow
    log.write_bytes(content)
    code, out, err = run(root, "upgrade", "--release-version", "4.4", *how)
    assert (code, out) == (1, "")
    assert "Recovery of orders-0 would remove" in err
    assert "`logstore import --yes`" in err
    assert "accept_loss" not in err
    assert levels(root)["metadata.version"] == 30
