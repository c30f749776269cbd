"""`logstore.open` and `import` remove no readable batch unless that is accepted, and say before what would go."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import logstore
from logstore.errors import LogstoreError, RecoveryLossError
from logstore.layout.clean_shutdown import FILE_NAME
from logstore_tools import recover_command, takeover_commands
from tests.support.stores import FEW_PARTITIONS, values_of

LOG = f"{0:020}.log"


def call(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(getattr(takeover_commands, f"{command}_" if command == "import" else command), arguments)


def told(command: str, root: Path, *options: str) -> dict[str, Any]:
    result = call(command, str(root), *options, "--format", "jsonl")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return dict(json.loads(result.stdout))


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A store of two partitions of five batches, that was not closed in order."""
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("t", 2)
        for number in range(2):
            for value in range(5):
                store.log("t", number).append_records([b"value %d" % value])
    (root / FILE_NAME).unlink()
    (root / "recovery-point-offset-checkpoint").unlink()
    return root


def damage(root: Path, number: int) -> None:
    path = root / f"t-{number}" / LOG
    content = bytearray(path.read_bytes())
    content[len(content) // 5 + 70] ^= 1  # in the second batch
    path.write_bytes(content)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.glob("t-*/*")}


def test_all_partitions_that_would_lose_batches_are_named_and_none_changes(
    crashed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2):
        damage(crashed, number)
    before = contents(crashed)
    with pytest.raises(RecoveryLossError, match="would remove in 2 partitions") as refused:
        logstore.open(crashed)
    for number in range(2):
        assert (
            f"3 readable batches (3 records, 225 bytes) from offset 2 on, bytes 75 to 375 of {crashed}/t-{number}/"
            in (str(refused.value))
        )
    assert contents(crashed) == before
    with caplog.at_level(logging.INFO, "logstore"), logstore.open(crashed, accept_loss=True) as store:
        told = [record.message for record in caplog.records if record.levelno == logging.INFO]
        assert len([text for text in told if "has removed 3 readable batches" in text]) == len(told) == 2
        assert [store.log("t", number).log_end_offset for number in range(2)] == [1, 1]
        assert {Path(path).name: one[0].batch_count for path, one in store.removals.items() if one} == {
            "t-0": 3,
            "t-1": 3,
        }


def test_a_store_that_crashed_opens_without_being_asked(crashed: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = crashed / "t-0" / LOG
    path.write_bytes(path.read_bytes()[:-3] + bytes(1000))
    with caplog.at_level(logging.INFO, "logstore"), logstore.open(crashed) as store:
        assert [(one.levelno, "in which no batch can be read" in one.message) for one in caplog.records] == [(20, True)]
        assert [store.log("t", number).log_end_offset for number in range(2)] == [4, 5]
        (removed,) = store.removals[str(crashed / "t-0")]
        assert (removed.batch_count, removed.end - removed.start) == (0, 1072)


def test_after_an_orderly_close_the_partition_is_refused_when_it_is_asked_for(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t", 2)
        for value in range(5):
            store.log("t", 0).append_records([b"value %d" % value])
    damage(tmp_path, 0)
    (tmp_path / "t-0" / f"{0:020}.index").unlink()
    before = contents(tmp_path)
    with logstore.open(tmp_path) as store:
        for _ in range(2):
            with pytest.raises(RecoveryLossError, match="would remove 3 readable batches"):
                store.log("t", 0)
        assert store.log("t", 1).log_end_offset == 0
    assert contents(tmp_path) == {**before, **{path: one for path, one in contents(tmp_path).items() if "t-1" in path}}
    assert (tmp_path / FILE_NAME).exists()
    with logstore.open(tmp_path, accept_loss=True) as store:
        assert store.log("t", 0).log_end_offset == 1


def test_a_swap_of_cleaned_segments_is_no_loss_after_the_policy_has_changed(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        store.create_topic("t", config={"cleanup.policy": "compact"})
        for number in range(3):
            store.log("t", 0).append_records([b"%d" % number], keys=[b"k"])
        store.alter_config("t", {"cleanup.policy": "delete"})
    (root / FILE_NAME).unlink()
    (root / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    content = (root / "t-0" / LOG).read_bytes()
    (root / "t-0" / f"{LOG}.swap").write_bytes(content[len(content) // 3 * 2 :])
    steps = told("import", root, "--dry-run")["steps"]
    assert steps[-1].endswith("t-0: was replaced by cleaned segments of offsets 0 to 3"), steps
    recovered = CliRunner().invoke(recover_command.command, [str(root / "t-0"), "--dry-run"])
    assert (recovered.exit_code, "removedBatches: 0" in recovered.stdout) == (0, True)
    with logstore.open(root) as store:
        assert values_of(store, "t") == [b"2"]


def test_the_metadata_log_is_asked_for_too(crashed: Path) -> None:
    path = crashed / "__cluster_metadata-0" / LOG
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    with pytest.raises(RecoveryLossError, match="Recovery of __cluster_metadata-0 would remove"):
        logstore.open(crashed)
    assert path.read_bytes() == content


def test_a_read_only_store_accepts_nothing(crashed: Path) -> None:
    with pytest.raises(ValueError, match="takes the path and now_ms alone"):
        logstore.open(crashed, read_only=True, accept_loss=True)  # type: ignore[call-overload]


BROKEN: dict[str, Callable[[Path], object]] = {
    "an empty quorum-state": lambda root: (root / "__cluster_metadata-0" / "quorum-state").write_bytes(b""),
    "leader epochs that do not parse": lambda root: (root / "t-0" / "leader-epoch-checkpoint").write_text("x"),
    "a segment without an offset in its name": lambda root: (root / "t-0" / "copy of 0.log").touch(),
    "a snapshot without an offset in its name": lambda root: (root / "t-0" / "backup.snapshot").touch(),
    "a directory that is no partition": lambda root: (root / "backup").mkdir(),
    "a symbolic link": lambda root: (root / "t-0" / f"{9:020}.log").symlink_to(root / "t-0" / LOG),
}


def test_a_dry_run_reads_the_coordinators_records(tmp_path: Path) -> None:
    with logstore.open(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("t")
        with store.producer(transactional_id="id") as producer:
            producer.init_transactions()
        store.log("__transaction_state", 0).append_records([b"\0\0cut"], [b"\0\0\0\2id"])
    dry = call("import", str(tmp_path), "--dry-run")
    assert (dry.exit_code, f"{tmp_path}/__transaction_state-0" in dry.stderr) == (1, True), dry.output
    with pytest.raises(LogstoreError) as refused:
        logstore.open(tmp_path)
    assert str(refused.value).split(";")[0] in dry.stderr


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_dry_run_fails_where_an_opening_fails(name: str, is_clean: bool, crashed: Path) -> None:
    if is_clean:
        (crashed / FILE_NAME).write_text('{"version":0,"brokerEpoch":1}')
    BROKEN[name](crashed)
    before = contents(crashed)
    dry = call("import", str(crashed), "--dry-run")
    assert (dry.exit_code, contents(crashed)) == (1, before), dry.output
    assert str(crashed) in dry.stderr
    with pytest.raises(LogstoreError) as refused, logstore.open(crashed) as store:
        [store.log("t", number) for number in range(2)]
    assert str(refused.value).split(";")[0] in dry.stderr


@pytest.mark.parametrize(
    ("damage_file", "file", "advice"),
    [
        (lambda path: path.write_bytes(b"{"), "__cluster_metadata-0/quorum-state", "delete it, where this node is the"),
        (lambda path: path.write_bytes(b'{"data_version":1}'), "__cluster_metadata-0/quorum-state", "put it back from"),
        (lambda path: path.write_bytes(path.read_bytes() + bytes(99)), f"t-0/{LOG}", "`logstore repair` copies"),
    ],
)
def test_a_refusal_names_the_file_and_what_to_do(
    damage_file: Callable[[Path], object], file: str, advice: str, crashed: Path
) -> None:
    (crashed / FILE_NAME).write_text('{"version":0,"brokerEpoch":1}')
    damage_file(crashed / file)
    with pytest.raises(LogstoreError) as refused, logstore.open(crashed) as store:
        store.log("t", 0)
    text = " ".join([str(refused.value), *getattr(refused.value, "__notes__", [])])
    assert (file in text, advice in text) == (True, True), text


def test_what_the_dry_run_says_is_what_import_does(crashed: Path) -> None:
    damage(crashed, 1)
    before = contents(crashed)
    dry = told("import", crashed, "--dry-run")
    (line,) = [step for step in dry["steps"] if step.startswith("remove")]
    assert line.startswith(f"remove 3 readable batches (3 records, 225 bytes) from offset 2 on, in {crashed}/t-1: ")
    refused = call("import", str(crashed))
    assert (refused.exit_code, "--yes" in refused.stderr, contents(crashed)) == (1, True, before)
    assert line in told("import", crashed, "--yes")["done"]


@pytest.mark.parametrize("command", ["import", "promote"])
def test_a_clean_directory_is_asked_for_too(command: str, crashed: Path) -> None:
    (crashed / FILE_NAME).write_text('{"version":0,"brokerEpoch":1}')
    (crashed / "log-start-offset-checkpoint").write_text("0\n1\nt 0 100\n")
    before = contents(crashed)
    dry = told(command, crashed, "--dry-run")
    assert any("remove 5 readable batches" in step for step in dry["steps"])
    assert call(command, str(crashed)).exit_code == 1
    assert contents(crashed) == before
    assert any("remove 5 readable batches" in step for step in told(command, crashed, "--yes")["done"])
    with logstore.open(crashed) as store:
        assert store.log("t", 0).log_start_offset == 100


def test_what_retention_deletes_meanwhile_is_no_damage(crashed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = logstore.open

    def opened(path: str, **options: Any) -> logstore.Store:
        store = real(path, **options)
        log = store.log("t", 0)
        log.update_config({**log.config, "retention.ms": 1})
        log.delete_old_segments(2**50)
        return store

    monkeypatch.setattr(logstore, "open", opened)
    done = told("promote", crashed)["done"]
    assert done == ["recover all partitions, because the directory was not closed in order"]
    monkeypatch.undo()
    with logstore.open(crashed) as store:
        assert store.log("t", 0).log_start_offset == 5


@pytest.mark.parametrize(
    ("options", "words"), [([], "would remove 3 readable batches"), (["--yes"], "did not remove what was planned")]
)
def test_a_recovery_that_removes_something_else_than_planned_is_an_error(
    options: list[str], words: str, crashed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = logstore.open

    def opened(path: str, **options: Any) -> logstore.Store:
        damage(crashed, 0)
        return real(path, **options)

    monkeypatch.setattr(logstore, "open", opened)
    result = call("import", str(crashed), *options)
    assert (result.exit_code, words in result.stderr) == (1, True)


def test_bare_partitions_are_planned_as_adopted_ones(crashed: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    bare = Path(shutil.copytree(crashed / "t-0", tmp_path / "bare" / "t-0")).parent
    damage(bare, 0)
    dry = told("promote", bare, "--dry-run")
    assert any("remove 3 readable batches" in step for step in dry["steps"])
    assert call("promote", str(bare)).exit_code == 1
    assert not (bare / "meta.properties").exists()
    assert any("remove 3 readable batches" in step for step in told("promote", bare, "--yes")["done"])
