"""Damage in `__cluster_metadata-0` is told by every verb whose answer comes from it, and nothing of it goes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore.disk.directory import list_partition_directory
from logstore.errors import CorruptRecordError, RecoveryLossError
from logstore.replay import metadata_state
from logstore.topics.cluster_metadata import encode_value
from logstore_tools.commands import logstore as command
from tests.naive.batch import scan
from tests.support.formatted import formatted
from tests.support.golden import Golden
from tests.support.stores import append_metadata, contents

METADATA = "__cluster_metadata-0"
LOG = f"{0:020d}.log"
OF_PAYMENTS = 1741  # a byte of the batch with the partition and the configuration of `payments`, at byte 1603
OF_LEVELS = 200  # a byte of the first records, which have the levels of features, in the batch at byte 174
VERBS = (
    "topics {data}",
    "groups {data}",
    "producers {data}",
    "txns list {data}",
    "txns explain {data}/payments-0",
    "recover {data}/orders-0 --dry-run",
    "recover {data}/orders-0",
    "salvage {data}/orders-0",
    "repair {data}/orders-0",
    "sample {data}/orders-0 {data}/../copy",
)
Damaged = Callable[[int], Path]


@pytest.fixture
def damaged(golden: Golden, tmp_path: Path) -> Damaged:
    """A data directory with one flipped bit in its metadata log."""

    def flip(position: int) -> Path:
        data = shutil.copytree(golden("demo"), tmp_path / "data")
        change(data / METADATA / LOG, position)
        return data

    return flip


def change(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, [*map(str, words)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("words", VERBS)
def test_damage_is_told_once_with_its_place(damaged: Damaged, words: str) -> None:
    data = damaged(OF_PAYMENTS)
    code, out, err = run(*words.format(data=data).split())
    assert err.count(f"error log-crc {data}/{METADATA}/{LOG} byte 1603 offset 21: expected the checksum") == 1
    assert code == (3 if words.startswith("producers") else 1)  # of the metadata log itself it lists none
    assert out


def test_a_metadata_log_that_the_system_refuses_is_told(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, opened = shutil.copytree(golden("demo"), tmp_path / "data"), os.open

    def refuse(path: Any, *rest: Any, **others: Any) -> int:
        if str(path).endswith(f"{METADATA}/{LOG}"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *rest, **others)

    monkeypatch.setattr(os, "open", refuse)
    for words in ("topics {data}", "producers {data}", "recover {data}/orders-0 --dry-run"):
        code, _, err = run(*words.format(data=data).split())
        assert err.count(f"error log-unreadable {data}/{METADATA}/{LOG}: ") == 1, err
        assert code == 3, words


def test_an_end_that_is_being_written_is_no_damage(golden: Golden, tmp_path: Path) -> None:
    data = shutil.copytree(golden("demo"), tmp_path / "data")
    (data / ".kafka_cleanshutdown").unlink()
    with (data / METADATA / LOG).open("ab") as log:
        log.write(bytes(7))
    for words in ("topics {data}", "groups {data}", "features {data}", "recover {data}/orders-0 --dry-run"):
        code, _, err = run(*words.format(data=data).split())
        assert (code, err) == (0, ""), words


def test_features_behind_damage_are_not_taken_for_off(damaged: Damaged) -> None:
    data = damaged(OF_LEVELS)
    code, out, err = run("features", data)
    assert (code, out) == (1, "")
    assert f"{data}/{METADATA}/{LOG}, byte 174, offset 3; expected the checksum of the bytes" in err
    assert "`logstore verify`" in err


@pytest.mark.parametrize("how", [["--dry-run"], []], ids=["dry run", "upgrade"])
def test_an_upgrade_behind_damage_is_refused_till_import_has_removed_the_rest(damaged: Damaged, how: list[str]) -> None:
    data = damaged(OF_PAYMENTS)
    code, out, err = run("features", data, "upgrade", "--release-version", "4.4", *how)
    assert (code, out) == (1, "")
    assert "`logstore import --yes`" in err
    assert run("import", data, "--yes")[0] == 0
    assert run("features", data, "upgrade", "--release-version", "4.4", *how)[0] == 0


def test_features_behind_a_wrong_length_are_not_taken_for_off(golden: Golden, tmp_path: Path) -> None:
    data = shutil.copytree(golden("demo"), tmp_path / "data")
    log = data / METADATA / LOG
    second = scan(log.read_bytes(), 0, log.stat().st_size).rows[1].position
    change(log, second + 9)  # of the batch's length, which then reaches behind the end of the file
    code, out, err = run("features", data)
    assert (code, out) == (1, "")
    assert f"{log}, byte {second}" in err


def test_features_of_a_damaged_snapshot_are_refused(tmp_path: Path) -> None:
    data = formatted(tmp_path / "data")
    (snapshot,) = (data / METADATA).glob("*.checkpoint")
    change(snapshot, snapshot.stat().st_size // 2)
    code, out, err = run("features", data)
    assert (code, out) == (1, "")
    assert str(snapshot) in err


@pytest.mark.parametrize("content", [b"", bytes(500)])
def test_a_newest_snapshot_that_a_power_failure_emptied_is_named(
    golden: Golden, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The log still has what was in it: readers go by that."""
    data = shutil.copytree(golden("demo"), tmp_path / "data")
    snapshot = data / METADATA / f"{40:020d}-0000000001.checkpoint"
    snapshot.write_bytes(content)
    for words in ("import {data} --dry-run", "promote {data} --dry-run", "features {data}"):
        code, _, err = run(*words.format(data=data).split())
        assert code == 1
        assert f"{snapshot}, byte 0" in err
        assert "move it away, as the log has what was in it" in err
    with pytest.raises(CorruptRecordError) as caught:
        logstore.open(data)
    assert caught.value.path == str(snapshot)
    with logstore.open(data, read_only=True) as store:
        assert {"orders", "payments"} < set(store.topics)
    assert str(snapshot) in caplog.text
    (finding,) = logstore.verify(data)
    assert (finding.rule, finding.severity) == ("metadata-snapshot", "error")


CHANGES_OF_BROKERS = {
    "BrokerRegistrationChangeRecord": {"brokerId": 1, "fenced": 0, "inControlledShutdown": 0, "logDirs": []},
    "UnregisterBrokerRecord": {"brokerId": 1},
    "FenceBrokerRecord": {"id": 1},
    "UnfenceBrokerRecord": {"id": 1},
}


@pytest.mark.parametrize("kind", CHANGES_OF_BROKERS)
def test_a_change_of_another_registration_of_a_broker_is_told(golden: Golden, tmp_path: Path, kind: str) -> None:
    """A broker ends at it: "the given epoch, 14, did not match the current broker epoch, 13"."""
    data, fields = shutil.copytree(golden("demo"), tmp_path / "data"), CHANGES_OF_BROKERS[kind]
    epoch = "epoch" if "id" in fields else "brokerEpoch"
    append_metadata(data, encode_value(kind, {**fields, epoch: 13}))
    assert run("import", data, "--dry-run")[0] == 0
    shutil.copytree(golden("demo"), data, dirs_exist_ok=True)
    append_metadata(data, encode_value(kind, {**fields, epoch: 14}))
    code, _, err = run("import", data, "--dry-run")
    assert code == 1
    for told in (f"A {kind} is of something that is not there", "offset 53", "registered with 13", "no broker starts"):
        assert told in err
    assert [one.offset for one in logstore.audit(data) if one.rule == "internal-record"] == [53]


def test_an_emptied_metadata_log_hides_neither_groups_nor_transactions(golden: Golden, tmp_path: Path) -> None:
    """A broker would set all partitions aside; this is before its start."""
    data = shutil.copytree(golden("demo"), tmp_path / "data")
    verbs = (["groups", data], ["txns", "list", data, "--now", 1800000000000])
    whole = [run(*words)[:2] for words in verbs]
    (data / METADATA / LOG).unlink()
    assert [run(*words)[:2] for words in verbs] == whole
    findings = [finding for finding in logstore.audit(data) if finding.rule == "partition-unknown"]
    assert {finding.found for finding in findings} == {"no topic at all in the metadata log"}
    assert len(findings) == 6


def test_a_store_that_is_opened_to_read_warns_of_damage(damaged: Damaged, caplog: pytest.LogCaptureFixture) -> None:
    data = damaged(OF_PAYMENTS)
    with logstore.open(data, read_only=True) as store:
        assert "orders" in store.topics
    assert f"{data}/{METADATA}/{LOG}, byte 1603" in caplog.text


def test_a_metadata_file_that_its_writer_takes_away_meanwhile_is_no_damage(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = damaged(1741) / METADATA
    listed = list_partition_directory(str(metadata))
    monkeypatch.setattr(metadata_state, "list_partition_directory", lambda _: listed)
    assert metadata_state.metadata_damage(listed.path) is not None
    (metadata / LOG).unlink()
    assert metadata_state.metadata_damage(listed.path) is None


VERBS_OF_THE_STORE = (
    "import {data} --dry-run",
    "import {data} --yes",
    "promote {data} --dry-run",
    "promote {data} --yes",
    "features {data}",
    "features {data} upgrade --metadata 4.4",
    "features {data} upgrade --metadata 4.4 --dry-run",
)


@pytest.fixture
def data(damaged: Damaged) -> Path:
    return damaged(OF_LEVELS)


@pytest.mark.parametrize("words", VERBS_OF_THE_STORE)
@pytest.mark.parametrize("has_owner", [True, False], ids=["with an owner", "without"])
def test_the_damage_is_named_and_nothing_is_changed(data: Path, words: str, has_owner: bool) -> None:
    if not has_owner:
        (data / "meta.properties").unlink()
    before = contents(data, but=".lock")
    done = CliRunner().invoke(command, words.format(data=data).split())
    if not has_owner and words.startswith("import"):
        assert (done.exit_code, "no meta.properties" in done.stderr) == (2, True)
        return
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{data}/{METADATA}/{LOG}, byte 174, offset 3; expected the checksum of the bytes" in done.stderr
    assert "empty metadata log" not in done.stderr
    assert contents(data, but=".lock") == before


@pytest.mark.parametrize("accept_loss", [False, True])
def test_a_store_does_not_remove_metadata_of_which_nothing_would_be_left(data: Path, accept_loss: bool) -> None:
    before = contents(data, but=".lock")
    with pytest.raises(RecoveryLossError) as caught:
        logstore.open(data, accept_loss=accept_loss)
    assert (caught.value.path, caught.value.position) == (str(data / METADATA / LOG), 174)
    assert contents(data, but=".lock") == before


def test_an_empty_metadata_log_beside_partitions_is_called_empty(data: Path) -> None:
    (data / METADATA / LOG).write_bytes(b"")
    (data / METADATA / f"{0:020d}-{0:010d}.checkpoint").unlink()
    done = CliRunner().invoke(command, ["import", str(data), "--dry-run"])
    assert (done.exit_code, "found an empty metadata log" in done.stderr) == (1, True)
