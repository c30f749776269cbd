"""A recovery is planned by itself: what it would remove is told before, and asked for, and is what it does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.config.topic import parse_config
from logstore.disk.mapped import MappedFile
from logstore.errors import CheckpointFormatError, DataDirectoryError, InvalidOffsetError, RecoveryLossError
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import plan_recovery, recover_partition
from logstore.log.load.removals import Removal, hidden_removal
from logstore.view.walk import Damage, LogBytes, Run
from logstore_tools.recover_command import command
from tests.support.encoder import SOME_TIME, Batch, Rec
from tests.support.logs import open_log
from tests.support.seams import UnsyncedSeam

EMPTY_LAST = {f"{10:020}.log": b"", f"{10:020}.index": b"", f"{10:020}.timeindex": b""}
LOG, INDEX, SWAP = f"{0:020}.log", f"{0:020}.index", f"{0:020}.log.swap"


def batch(offset: int, key: bytes | None = None, value: bytes | None = b"x" * 5000, count: int = 1) -> bytes:
    """One batch, by default of one record with a key of its own, large enough for an index entry."""
    records = [Rec(key or b"k%d" % offset, value, offset_delta=delta) for delta in range(count)]
    return Batch(offset, records, count - 1).to_bytes()


def batches(*offsets: int) -> bytes:
    return b"".join(map(batch, offsets))


TEN = batches(*range(10))
SIZE = len(batch(0))
DAMAGED = bytearray(TEN)
DAMAGED[2 * SIZE + 200] ^= 1  # in the third batch
HEADLESS = bytearray(TEN)
HEADLESS[8 * SIZE + 11] ^= 1  # the length of the last but one


@dataclass(frozen=True)
class Loss:
    """Files of a partition, how it is loaded, and the offsets of the batches that this would remove."""

    files: dict[str, bytes | bytearray]
    lost: list[int]
    was_clean: bool = False
    recovery_point: int = 0
    log_start: int = 0
    config: dict[str, str] = field(default_factory=dict)
    opens: bool = False

    def lay_out(self, place: Path) -> Path:
        directory = place / "orders-0"
        directory.mkdir(parents=True)
        for name, content in self.files.items():
            (directory / name).write_bytes(content)
        return directory

    def settings(self, *, accepts_loss: bool) -> LoadSettings:
        config = parse_config(self.config)
        return LoadSettings(
            self.was_clean, self.recovery_point, self.log_start, SOME_TIME, config, accepts_loss=accepts_loss
        )

    def load(self, directory: Path, *, accepts_loss: bool) -> None:
        if self.opens:
            open_log(str(directory), self.settings(accepts_loss=accepts_loss), seam=UnsyncedSeam()).close()
        else:
            recover_partition(str(directory), self.settings(accepts_loss=accepts_loss), UnsyncedSeam())


COMPACTED = {"cleanup.policy": "compact"}
INDEXED = {INDEX: b"", f"{0:020}.timeindex": b""}
LOSSES = {
    "offsets go back": Loss({LOG: TEN + batch(3), **INDEXED}, [*range(10), 3]),
    "the log starts beyond its end": Loss({LOG: TEN}, [*range(10)], was_clean=True, log_start=100),
    "the log starts beyond its end, unclean": Loss({LOG: TEN}, [*range(10)], log_start=100),
    "damage behind a clean shutdown without index": Loss({LOG: DAMAGED}, [*range(3, 10)], was_clean=True),
    "damage below the recovery point without index": Loss(
        {LOG: DAMAGED, **EMPTY_LAST}, [*range(3, 10)], recovery_point=10
    ),
    "damage, and segments behind it": Loss(
        {LOG: DAMAGED, **INDEXED, f"{10:020}.log": batches(10, 11)}, [*range(3, 12)]
    ),
    "damage without index, and segments behind it": Loss(
        {LOG: DAMAGED, f"{10:020}.log": batches(10, 11)}, [*range(3, 10)]
    ),
    "an empty segment is no damage, bytes that are no batch are": Loss(
        {LOG: b"", f"{5:020}.log": b"x" * 100 + batches(5, 6)}, [5, 6]
    ),
    "a swap file with part of the segment": Loss({LOG: TEN, SWAP: batches(0, 1, 2)}, [*range(3, 10)]),
    "a swap file with part of a compacted segment": Loss(
        {LOG: TEN, SWAP: batches(0, 1, 2)}, [*range(3, 10)], config=COMPACTED
    ),
    "an empty swap file": Loss({LOG: TEN, SWAP: b""}, [*range(10)]),
    "an empty swap file of a compacted segment": Loss({LOG: TEN, SWAP: b""}, [*range(10)], config=COMPACTED),
    "a swap file beside an unfinished cleaning": Loss({SWAP: TEN, f"{0:020}.log.cleaned": b""}, [*range(10)]),
    "the newest value of a key is not in the swap file": Loss(
        {LOG: b"".join(batch(offset, b"same") for offset in range(4)), SWAP: batch(2, b"same")}, [3], config=COMPACTED
    ),
    "the length of a batch behind the last index entry": Loss(
        {LOG: HEADLESS, **INDEXED}, [9], was_clean=True, opens=True
    ),
    "the last batch goes back, and what is above is written again": Loss(
        {LOG: TEN + batch(3), **INDEXED}, [*range(4, 10)], was_clean=True, opens=True
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_readable_batches_go_only_if_that_is_accepted(name: str, tmp_path: Path) -> None:
    loss = LOSSES[name]
    directory = loss.lay_out(tmp_path)
    before = contents(directory)
    with pytest.raises(RecoveryLossError, match="would remove") as refused:
        loss.load(directory, accepts_loss=False)
    for text in (f"{len(loss.lost)} readable batch", f"({len(loss.lost)} record", f"offset {min(loss.lost)} on"):
        assert text in str(refused.value)
    assert "logstore salvage" in (refused.value.advice or "")
    assert str(refused.value.path).startswith(str(directory))
    assert contents(directory) == before
    loss.load(directory, accepts_loss=True)
    assert contents(directory) != before or loss.opens


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if not loss.opens])
def test_the_plan_is_what_the_recovery_does(name: str, tmp_path: Path) -> None:
    loss = LOSSES[name]
    directory = loss.lay_out(tmp_path)
    before = contents(directory)
    plan = plan_recovery(str(directory), loss.settings(accepts_loss=False))
    assert contents(directory) == before
    assert sum(one.batch_count for one in plan.readable) == len(loss.lost)
    assert {one.first_offset for one in plan.readable} >= {min(loss.lost)}
    _, done = recover_partition(str(directory), loss.settings(accepts_loss=True), UnsyncedSeam())
    assert done == plan


NO_LOSSES = {
    "a torn batch at the end": Loss({LOG: TEN[:-100]}, []),
    "zeros at the end": Loss({LOG: TEN + bytes(100_000)}, []),
    "a torn batch behind a clean shutdown": Loss({LOG: TEN[:-100], **INDEXED}, [], was_clean=True, opens=True),
    "damage of the last batch": Loss({LOG: DAMAGED[: 3 * SIZE]}, []),
    "offsets overlap (KAFKA-3919)": Loss({LOG: batches(*range(6)) + batch(4, count=4) + batches(8, 9)}, []),
    "the last batch goes back, and nothing is appended": Loss({LOG: TEN + batch(3), **INDEXED}, [], was_clean=True),
    "damage behind a clean shutdown": Loss({LOG: DAMAGED, **INDEXED}, [], was_clean=True),
    "damage below the recovery point": Loss({LOG: DAMAGED, **INDEXED, **EMPTY_LAST}, [], recovery_point=10),
    "a swap file with the whole segment": Loss({LOG: TEN, SWAP: TEN}, []),
    "a split that had begun": Loss(
        {LOG: TEN, SWAP: batches(*range(6)), f"{6:020}.log.swap": batches(*range(6, 10))}, []
    ),
    "a segment that is split, and begins behind its name": Loss({LOG: batches(3, 5_000_000_000), **INDEXED}, []),
    "a cleaning that is finished": Loss(
        {
            LOG: b"".join(batch(offset, b"same") for offset in range(4)) + batch(4, b"gone", None),
            SWAP: batch(3, b"same"),
            f"{5:020}.log": batch(5, b"other"),
        },
        [],
        config=COMPACTED,
    ),
    "a cleaning of which nothing is left": Loss(
        {LOG: batch(0, b"same") + batch(1, b"same"), SWAP: b"", f"{2:020}.log": batch(2, b"same")},
        [],
        config=COMPACTED,
    ),
    "a cleaning that had not begun to swap": Loss(
        {LOG: TEN, SWAP: batches(4, 9), f"{0:020}.log.cleaned": batches(4, 9)}, [], config=COMPACTED
    ),
    "what was to be deleted": Loss({f"{0:020}.log.deleted": TEN, f"{10:020}.log": batch(10)}, []),
}


@pytest.mark.parametrize("name", NO_LOSSES)
def test_nothing_is_asked_where_no_readable_batch_goes(name: str, tmp_path: Path) -> None:
    loss = NO_LOSSES[name]
    directory = loss.lay_out(tmp_path)
    if not loss.opens:
        assert plan_recovery(str(directory), loss.settings(accepts_loss=False)).readable == []
    loss.load(directory, accepts_loss=False)


def test_offsets_that_go_back_without_an_index_are_told_as_a_broker_treats_them(tmp_path: Path) -> None:
    """A broker fails, leaves an index behind, and removes the segment when it is started again."""
    loss = replace(LOSSES["offsets go back"], files={LOG: TEN + batch(3)})
    directory = loss.lay_out(tmp_path)
    for accepts_loss in (False, True):
        with pytest.raises(InvalidOffsetError, match="would remove all batches of the segment"):
            loss.load(directory, accepts_loss=accepts_loss)
        assert contents(directory) == {LOG: TEN + batch(3)}


def test_a_recovery_that_does_not_do_as_planned_is_an_error(tmp_path: Path) -> None:
    class Forgetful(UnsyncedSeam):
        def unlink(self, path: str) -> None:
            """Do nothing."""

    loss = LOSSES["damage, and segments behind it"]
    directory = loss.lay_out(tmp_path)
    with pytest.raises(DataDirectoryError, match="did not leave the files that it planned") as found:
        recover_partition(str(directory), loss.settings(accepts_loss=True), Forgetful())
    assert str(found.value.path).startswith(str(directory))
    assert (found.value.expected, found.value.found) == ("no such file", "another one")


def test_a_cut_that_is_not_made_is_an_error(tmp_path: Path) -> None:
    class Uncut(UnsyncedSeam):
        def truncate(self, descriptor: int, size: int) -> None:
            """Do nothing."""

    loss = NO_LOSSES["a torn batch at the end"]
    with pytest.raises(DataDirectoryError, match="did not leave the files that it planned") as found:
        recover_partition(str(loss.lay_out(tmp_path)), loss.settings(accepts_loss=True), Uncut())
    assert (found.value.expected, found.value.found) == ("the planned file", "another one")


def test_an_error_leaves_everything_as_it_was(golden: Callable[[str], Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(golden("transactions") / "rolled-0", tmp_path / "rolled-0"))
    min(directory.glob("*.index")).unlink()
    (directory / f"{7:020}.log.cleaned").touch()
    max(directory.glob("*.txnindex")).write_bytes(b"\0\7" + bytes(32))
    before = contents(directory)
    (directory / "x.snapshot").touch()
    settings = LoadSettings(False, 0, 0, SOME_TIME, parse_config({}))
    with pytest.raises(ValueError, match="For input string"):
        recover_partition(str(directory), settings, UnsyncedSeam())
    assert contents(directory) == {**before, "x.snapshot": b""}


def test_a_broken_topic_id_is_told_before_anything_changes(golden: Callable[[str], Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(golden("killed") / "rolled-0", tmp_path / "rolled-0"))
    (directory / "partition.metadata").write_text("version: 0")
    before = contents(directory)
    settings = LoadSettings(False, 0, 0, SOME_TIME, parse_config({}))
    for load in (plan_recovery, recover_partition):
        with pytest.raises(CheckpointFormatError):
            load(str(directory), settings)
        assert contents(directory) == before


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("the log starts beyond its end", ["--clean", "--log-start", "100"]),
        ("damage behind a clean shutdown without index", ["--clean"]),
        ("damage below the recovery point without index", ["--unclean", "--recovery-point", "10"]),
        ("a swap file with part of the segment", ["--unclean"]),
    ],
)
def test_the_command_asks_for_what_it_would_remove(name: str, options: list[str], tmp_path: Path) -> None:
    loss = LOSSES[name]
    directory = loss.lay_out(tmp_path)
    before = contents(directory)
    arguments = [str(directory), *options, "--format", "jsonl"]
    dry = CliRunner().invoke(command, [*arguments, "--dry-run"])
    told = json.loads(dry.stdout)
    assert (dry.exit_code, told["removedBatches"], told["removedRecords"]) == (1, len(loss.lost), len(loss.lost))
    assert told["removedBytes"] == len(loss.lost) * SIZE
    refused = CliRunner().invoke(command, arguments)
    assert (refused.exit_code, "would remove" in refused.stderr, "--yes" in refused.stderr) == (1, True, True)
    assert {name: content for name, content in contents(directory).items() if name != ".lock"} == before
    done = CliRunner().invoke(command, [*arguments, "--yes"])
    assert (done.exit_code, json.loads(done.stdout)["removals"]) == (0, told["removals"])


@pytest.mark.parametrize("options", [["--dry-run"], []])
@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", f"{0:020d}.log"])
def test_zeros_that_keep_the_command_from_a_recovery_are_told_with_a_way_on(
    name: str, options: list[str], tmp_path: Path
) -> None:
    """As a power failure leaves them; behind a clean shutdown nobody cuts them off."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    log, arguments = directory / f"{0:020d}.log", [str(directory), *options]
    log.write_bytes(batches(0, 1))
    for suffix in (".index", ".timeindex"):  # without one a segment is recovered
        log.with_suffix(suffix).touch()
    with (directory / name).open("ab") as file:
        file.write(bytes(4096))
    refused = CliRunner().invoke(command, [*arguments, "--clean"])
    assert refused.exit_code == 1
    assert "of partition orders-0" in refused.stderr
    assert "`logstore repair` copies a log that has lost no batch" in refused.stderr
    after_crash = CliRunner().invoke(command, [*arguments, "--unclean"])
    assert after_crash.exit_code == (0 if name == log.name else 1)


def test_a_dry_run_needs_no_right_to_write(tmp_path: Path) -> None:
    directory = LOSSES["damage, and segments behind it"].lay_out(tmp_path)
    directory.chmod(0o555)
    dry = CliRunner().invoke(command, [str(directory), "--unclean", "--dry-run", "--format", "jsonl"])
    directory.chmod(0o755)
    assert (dry.exit_code, json.loads(dry.stdout)["removedBatches"]) == (1, 9)


def test_only_bytes_that_go_are_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logstore.log.load import removals

    read = list[tuple[int, int]]()
    real = removals.walk

    def told(log: LogBytes, base: int, position: int = 0) -> Iterator[Run | Damage]:
        read.append((base, log.data.size - position))
        return real(log, base, position)

    monkeypatch.setattr(removals, "walk", told)
    Loss({LOG: TEN}, []).load(Loss({LOG: TEN}, []).lay_out(tmp_path / "whole"), accepts_loss=False)
    assert read == []
    torn = NO_LOSSES["a torn batch at the end"]
    torn.load(torn.lay_out(tmp_path / "torn"), accepts_loss=False)
    assert read == [(0, SIZE - 100)]


def test_a_removal_is_told_in_words(tmp_path: Path) -> None:
    plan = plan_recovery(
        str(LOSSES["damage, and segments behind it"].lay_out(tmp_path)),
        LoadSettings(False, 0, 0, SOME_TIME, parse_config({})),
    )
    first, second = plan.removals
    assert first._replace(reason="") == Removal(LOG, 2 * SIZE, 10 * SIZE, 3, 10, 7, 7, 7 * SIZE, "")
    assert second == Removal(
        f"{10:020}.log", 0, 2 * len(batch(10)), 10, 12, 2, 2, 2 * len(batch(10)), "lies behind the cut in segment 0"
    )


def test_what_is_written_again_is_told_as_one_removal(tmp_path: Path) -> None:
    """All of it lies between the first batch and the end of the last one."""
    loss = LOSSES["the last batch goes back, and what is above is written again"]
    with MappedFile(str(loss.lay_out(tmp_path) / LOG)) as log:
        found = hidden_removal(log, LOG, 4)
        assert hidden_removal(log, LOG, 10) is None
    assert found._replace(reason="") == Removal(LOG, 4 * SIZE, 10 * SIZE, 4, 10, 6, 6, 6 * SIZE, "")


def test_an_end_that_was_accepted_and_closed_is_not_asked_for_again(tmp_path: Path) -> None:
    loss = LOSSES["the last batch goes back, and what is above is written again"]
    directory = loss.lay_out(tmp_path)
    before = contents(directory)
    replace(loss, recovery_point=4).load(directory, accepts_loss=False)
    assert contents(directory)[LOG] == before[LOG]


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
