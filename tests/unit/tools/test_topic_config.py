"""`recover`, `salvage`, `repair` and `sample` load a log with the configuration that its topic has in the metadata."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore_tools.commands import logstore
from tests.support.golden import Golden

LOG, INDEX = f"{0:020d}.log", f"{0:020d}.index"
SPARSE = 0  # bytes of an index with an entry every 4,096 bytes, which is Kafka's default


@pytest.fixture
def data(golden: Golden, tmp_path: Path) -> Path:
    """A killed broker's directory; its topic `payments` has index.interval.bytes=100."""
    return shutil.copytree(golden("killed"), tmp_path / "data")


def run(*words: object) -> tuple[int, dict[str, object]]:
    done = CliRunner().invoke(logstore, [*map(str, words), "--format", "jsonl"])
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout.splitlines()[0])


def taken_over(data: Path) -> Path:
    """A copy of the directory that `import` recovered."""
    copy = shutil.copytree(data, data.parent / "taken over")
    assert run("import", copy)[0] == 0
    return copy


def test_recover_makes_the_indexes_that_import_makes(data: Path) -> None:
    wanted = (taken_over(data) / "payments-0" / INDEX).read_bytes()
    run("recover", data / "payments-0")
    assert (data / "payments-0" / INDEX).read_bytes() == wanted
    assert len(wanted) > SPARSE


@pytest.mark.parametrize("verb", ["salvage", "repair", "sample"])
def test_a_copy_has_the_indexes_that_import_makes(data: Path, verb: str) -> None:
    wanted = (taken_over(data) / "payments-0" / INDEX).read_bytes()
    run(verb, data / "payments-0", data.parent / "copy")
    assert (data.parent / "copy" / "payments-0" / INDEX).read_bytes() == wanted


def test_a_configuration_that_is_given_wins(data: Path) -> None:
    run("recover", data / "payments-0", "--config", "index.interval.bytes=4096")
    assert (data / "payments-0" / INDEX).stat().st_size == SPARSE


def test_without_metadata_the_configuration_is_kafkas_default(data: Path) -> None:
    shutil.rmtree(data / "__cluster_metadata-0")
    run("recover", data / "payments-0")
    assert (data / "payments-0" / INDEX).stat().st_size == SPARSE


def test_a_dry_run_names_the_batches_that_only_the_topics_index_interval_loses(golden: Golden, tmp_path: Path) -> None:
    data = shutil.copytree(golden("demo"), tmp_path / "data")
    (data / ".kafka_cleanshutdown").unlink()
    log = data / "payments-0" / LOG
    whole = bytearray(log.read_bytes())
    whole[700] ^= 1  # of a base offset, which no checksum covers
    log.write_bytes(whole)
    code, row = run("recover", data / "payments-0", "--dry-run")
    assert (code, row["removedBatches"]) == (1, 23)
    assert run("recover", data / "payments-0", "--dry-run", "--config", "index.interval.bytes=4096")[0] == 0
