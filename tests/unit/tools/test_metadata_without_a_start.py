"""A metadata log whose first records are damaged is no empty one, and nothing of it goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.errors import RecoveryLossError
from logstore_tools.commands import logstore as command
from tests.support.golden import Golden

METADATA, LOG = "__cluster_metadata-0", f"{0:020d}.log"
IN_FIRST_RECORDS = 200  # in the batch at byte 174, which has the levels of features

VERBS = (
    "import {data} --dry-run",
    "import {data} --yes",
    "promote {data} --dry-run",
    "promote {data} --yes",
    "features {data}",
    "features {data} upgrade --metadata 4.4",
    "features {data} upgrade --metadata 4.4 --dry-run",
)


@pytest.fixture
def data(golden: Golden, tmp_path: Path) -> Path:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    content = bytearray((root / METADATA / LOG).read_bytes())
    content[IN_FIRST_RECORDS] ^= 1
    (root / METADATA / LOG).write_bytes(content)
    return root


def files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != ".lock"}


@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize("has_owner", [True, False], ids=["with an owner", "without"])
def test_the_damage_is_named_and_nothing_is_changed(data: Path, words: str, has_owner: bool) -> None:
    if not has_owner:
        (data / "meta.properties").unlink()
    before = files(data)
    done = CliRunner().invoke(command, words.format(data=data).split())
    if not has_owner and words.startswith("import"):
        assert (done.exit_code, "no meta.properties" in done.stderr) == (2, True)
        return
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{data}/{METADATA}/{LOG}, byte 174, offset 3; expected the checksum of the bytes" in done.stderr
    assert "empty metadata log" not in done.stderr
    assert files(data) == before


@pytest.mark.parametrize("accept_loss", [False, True])
def test_a_store_does_not_remove_metadata_of_which_nothing_would_be_left(data: Path, accept_loss: bool) -> None:
    before = files(data)
    with pytest.raises(RecoveryLossError) as caught:
        logstore.open(data, accept_loss=accept_loss)
    assert (caught.value.path, caught.value.position) == (str(data / METADATA / LOG), 174)
    assert files(data) == before


def test_an_empty_metadata_log_beside_partitions_is_called_empty(data: Path) -> None:
    (data / METADATA / LOG).write_bytes(b"")
    (data / METADATA / f"{0:020d}-{0:010d}.checkpoint").unlink()
    done = CliRunner().invoke(command, ["import", str(data), "--dry-run"])
    assert (done.exit_code, "found an empty metadata log" in done.stderr) == (1, True)
