"""What is good in a damaged partition is kept, in a new directory that proves clean; nothing else is written."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from logstore.audit.partition import open_partition
from logstore.audit.replica_diff import compare
from logstore.audit.verify import verify_partition
from logstore.config.topic import parse_config
from logstore.disk.directory import list_partition_directory
from logstore.disk.mapped import FileInMemory
from logstore.errors import DataDirectoryError, UsageError
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import recover_partition
from logstore_tools.commands import logstore
from logstore_tools.copy_commands import repair as repair_command
from logstore_tools.copy_commands import salvage as salvage_command
from logstore_tools.salvage import placement
from logstore_tools.salvage import salvage as salvaging
from logstore_tools.salvage import sample as sampling
from logstore_tools.salvage.copying import broken_metadata
from logstore_tools.salvage.salvage import losses, plan_salvage, salvage
from tests.naive.batch import scan
from tests.support.audit_faults import FAULTS, ROLLED, Plant, lay_plain, plain_batches
from tests.support.encoder import CONTROL, SOME_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.golden import Golden
from tests.support.odd_logs import LOADED, REFUSED, batch, hurt, large, lay_out

SETTINGS = LoadSettings(False, 0, 0, SOME_TIME, parse_config({}))
LOG_FAULTS = ("log-crc", "log-length", "log-tail")
SIDE_FAULTS = ("offset-index", "time-index", "transaction-index", "snapshot-state", "leader-epochs", "index-zeros")


@pytest.fixture
def damaged(golden: Golden, tmp_path: Path) -> Callable[[Plant], Path]:
    """The partition `rolled-0` of a copy in which a fault was planted."""

    def plant(fault: Plant) -> Path:
        root = shutil.copytree(golden("transactions"), tmp_path / "data")
        fault(root)
        return root / ROLLED

    return plant


def rescued(source: Path, tmp_path: Path) -> Path:
    """The partition, salvaged to a directory of its own."""
    (tmp_path / "rescued").mkdir()
    destination = tmp_path / "rescued" / source.name
    salvage(str(source), str(destination), SETTINGS)
    return destination


def batch_offsets(directory: Path) -> list[int]:
    logs = sorted(directory.glob("*.log"))
    return [row.base_offset for log in logs for row in scan(log.read_bytes(), 0, log.stat().st_size).rows]


@pytest.mark.parametrize("rule", LOG_FAULTS)
def test_good_batches_before_and_behind_damage_are_kept(
    damaged: Callable[[Plant], Path], golden: Golden, tmp_path: Path, rule: str
) -> None:
    source = damaged(FAULTS[rule][0])
    before = {path.name: path.read_bytes() for path in source.iterdir()}
    destination = rescued(source, tmp_path)
    assert verify_partition(open_partition(str(destination))).findings == ()
    whole = batch_offsets(golden("transactions") / ROLLED)
    kept = batch_offsets(destination)
    assert len(whole) - len(kept) == (0 if rule == "log-tail" else 1)
    assert set(kept) <= set(whole)
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before


@pytest.mark.parametrize("rule", SIDE_FAULTS)
def test_everything_beside_a_whole_log_is_made_anew(
    damaged: Callable[[Plant], Path], golden: Golden, tmp_path: Path, rule: str
) -> None:
    destination = rescued(damaged(FAULTS[rule][0]), tmp_path)
    assert verify_partition(open_partition(str(destination))).findings == ()
    assert compare(str(destination), str(golden("transactions") / ROLLED)).is_same


@pytest.mark.parametrize("name", LOADED)
def test_what_a_broker_loads_is_kept(name: str, tmp_path: Path) -> None:
    source = lay_out(LOADED[name], tmp_path / "t-0")
    assert [piece.problem for piece in plan_salvage(str(source)) if piece.problem is not None] == []
    assert batches_in(rescued(source, tmp_path)) == batches_in(source)


@pytest.mark.parametrize("name", REFUSED)
def test_what_keeps_a_broker_from_the_rest_is_left_out(name: str, tmp_path: Path) -> None:
    log, lost_count = REFUSED[name]
    source = lay_out(log, tmp_path / "t-0")
    lost = losses(plan_salvage(str(source)))
    assert sum(piece.batch_count or 1 for piece in lost) == lost_count
    destination = rescued(source, tmp_path)
    kept = {path.name: path.read_bytes() for path in destination.iterdir()}
    _, done = recover_partition(str(destination), SETTINGS)
    assert [repair for repair in done.repairs if repair.file.endswith(".log")] == []
    assert {path.name: path.read_bytes() for path in destination.iterdir()} == kept


def batches_in(directory: Path) -> Counter[bytes]:
    logs = [path.read_bytes() for path in sorted(directory.glob("*.log"))]
    return Counter(log[row.position : row.position + row.size] for log in logs for row in scan(log, 0, len(log)).rows)


def test_a_batch_outside_of_its_producers_transaction_is_left_out(tmp_path: Path) -> None:
    first, second, third = plain_batches()
    first = replace(first, flags=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
    second = replace(second, producer_id=7, producer_epoch=0, base_sequence=2)
    source = lay_plain(tmp_path, [first, second, third])
    pieces = plan_salvage(str(source))
    assert [(piece.first_offset, piece.problem is None) for piece in pieces] == [(0, True), (2, False), (4, True)]
    assert "Expected transactional write from producer 7" in (pieces[1].problem or "")
    assert batch_offsets(rescued(source, tmp_path)) == [0, 4]


def test_a_marker_that_is_none_is_left_out(tmp_path: Path) -> None:
    odd = Batch(2, [Rec(key=b"?")], flags=TRANSACTIONAL | CONTROL, producer_id=7, producer_epoch=0)
    source = lay_plain(tmp_path, [plain_batches()[0], odd, plain_batches()[2]])
    assert batch_offsets(rescued(source, tmp_path)) == [0, 4]


def test_a_copy_is_made_only_where_nothing_is(golden: Golden, tmp_path: Path) -> None:
    source = str(golden("transactions") / ROLLED)
    (tmp_path / ROLLED).mkdir()
    with pytest.raises(UsageError, match="already"):
        salvage(source, str(tmp_path / ROLLED), SETTINGS)
    with pytest.raises(UsageError, match="name"):
        salvage(source, str(tmp_path / "other-0"), SETTINGS)
    assert list((tmp_path / ROLLED).iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == [ROLLED]


@pytest.mark.parametrize("parent_is", ["missing", "file"])
def test_folder_of_the_copy_has_to_be_there(golden: Golden, tmp_path: Path, parent_is: str) -> None:
    source, parent = str(golden("transactions") / ROLLED), tmp_path / "new"
    if parent_is == "file":
        parent.touch()
    with pytest.raises(UsageError) as raised:
        salvage(source, str(parent / ROLLED), SETTINGS)
    error = raised.value
    assert (error.path, error.found) == (str(parent), "nothing" if parent_is == "missing" else "something else")
    told = CliRunner().invoke(salvage_command, [source, str(parent / ROLLED)])
    assert told.exit_code == 2
    for words in (str(parent), f"to make {ROLLED} in", "make it first"):
        assert words in told.output
    assert parent.is_file() == (parent_is == "file") == parent.exists()


def test_torn_ends_are_no_losses(damaged: Callable[[Plant], Path]) -> None:
    pieces = plan_salvage(str(damaged(FAULTS["log-tail"][0])))
    assert pieces[-1].problem is not None
    assert losses(pieces) == []


@pytest.mark.parametrize("rule", LOG_FAULTS[:2])
def test_records_lost_in_the_middle_are_a_loss(damaged: Callable[[Plant], Path], rule: str) -> None:
    pieces = plan_salvage(str(damaged(FAULTS[rule][0])))
    assert [piece.problem is None for piece in pieces].count(False) == len(losses(pieces)) == 1


def test_a_partition_without_segments_has_lost_nothing(tmp_path: Path) -> None:
    source = tmp_path / "orders-0"
    source.mkdir()
    result = CliRunner().invoke(repair_command, [str(source)])
    assert (result.exit_code, "A copy would keep 0 batches" in result.output) == (0, True), result.output


def test_salvage_runs_dry_unless_it_has_a_destination(damaged: Callable[[Plant], Path], tmp_path: Path) -> None:
    source = damaged(FAULTS["log-crc"][0])
    runner = CliRunner()
    dry = runner.invoke(salvage_command, [str(source)])
    assert (dry.exit_code, "Nothing was written" in dry.output) == (1, True)
    planned = json.loads(runner.invoke(salvage_command, [str(source), "--format", "jsonl"]).output)
    assert [piece["problem"] is None for piece in planned["pieces"]].count(False) == 1
    (tmp_path / "new").mkdir()
    written = runner.invoke(salvage_command, [str(source), str(tmp_path / "new" / ROLLED)])
    assert written.exit_code == 1
    assert batch_offsets(tmp_path / "new" / ROLLED)
    again = runner.invoke(salvage_command, [str(source), str(tmp_path / "new" / ROLLED)])
    assert (again.exit_code, "already" in again.output) == (2, True)


@pytest.mark.parametrize(("copy", "fault"), [(salvage_command, "log-crc"), (repair_command, "transaction-index")])
def test_copies_go_into_a_directory_that_is_there(
    damaged: Callable[[Plant], Path], tmp_path: Path, copy: click.Command, fault: str
) -> None:
    source = damaged(FAULTS[fault][0])
    (tmp_path / "new").mkdir()
    CliRunner().invoke(copy, [str(source), str(tmp_path / "new"), "--dry-run"])
    assert list((tmp_path / "new").iterdir()) == []
    CliRunner().invoke(copy, [str(source), str(tmp_path / "new")])
    assert batch_offsets(tmp_path / "new" / ROLLED)


def test_repair_refuses_a_log_that_has_lost_something(damaged: Callable[[Plant], Path], tmp_path: Path) -> None:
    source = damaged(FAULTS["log-crc"][0])
    (tmp_path / "new").mkdir()
    result = CliRunner().invoke(repair_command, [str(source), str(tmp_path / "new" / ROLLED)])
    assert result.exit_code == 1
    assert "logstore salvage" in result.output
    assert list((tmp_path / "new").iterdir()) == []


def test_repair_makes_a_copy_with_everything_anew(damaged: Callable[[Plant], Path], tmp_path: Path) -> None:
    source = damaged(FAULTS["transaction-index"][0])
    (tmp_path / "new").mkdir()
    result = CliRunner().invoke(repair_command, [str(source), str(tmp_path / "new" / ROLLED)])
    assert result.exit_code == 0
    assert verify_partition(open_partition(str(tmp_path / "new" / ROLLED))).findings == ()


def test_a_file_that_is_cut_behind_the_plan_is_told(golden: Golden, tmp_path: Path) -> None:
    source = shutil.copytree(golden("transactions") / ROLLED, tmp_path / Path(ROLLED).name)
    pieces = plan_salvage(str(source))
    log = sorted(source.glob("*.log"))[0]
    os.truncate(log, log.stat().st_size - 1)
    (tmp_path / "rescued").mkdir()
    with pytest.raises(DataDirectoryError, match="became shorter") as told:
        salvage(str(source), str(tmp_path / "rescued" / source.name), SETTINGS, pieces=pieces)
    assert told.value.path == str(log)
    assert list((tmp_path / "rescued").iterdir()) == [], "nothing is left half-written"


def test_a_file_that_is_cut_during_the_plan_was_read_before(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapping of it would end the process here."""
    source = shutil.copytree(golden("transactions") / ROLLED, tmp_path / Path(ROLLED).name)
    expected, walk = plan_salvage(str(source)), salvaging.walk

    def cut(log: FileInMemory, base_offset: int) -> object:
        os.truncate(log.path, 0)
        return walk(log, base_offset)

    monkeypatch.setattr(salvaging, "walk", cut)
    assert plan_salvage(str(source)) == expected


@pytest.mark.parametrize("command", [salvage_command, repair_command], ids=lambda command: command.name)
@pytest.mark.parametrize("files", [[], ["00000000000000000000.log"]], ids=["no files", "an empty log"])
def test_of_an_empty_partition_an_empty_one_is_made(command: click.Command, files: list[str], tmp_path: Path) -> None:
    """As a broker makes of it, which starts with both."""
    source, destination = tmp_path / "t-0", tmp_path / "rescued" / "t-0"
    source.mkdir()
    destination.parent.mkdir()
    for name in files:
        (source / name).touch()
    told = CliRunner().invoke(command, [str(source), str(destination)])
    assert told.exit_code == 0, told.output
    assert "has 0 batches; 0 bytes were left out." in told.output
    assert verify_partition(open_partition(str(destination))).findings == ()
    assert [path.stat().st_size for path in destination.glob("*.log")] == [0]


def run(*words: object) -> Result:
    return CliRunner().invoke(logstore, list(map(str, words)))


def five(place: Path) -> Path:
    """A partition of five batches."""
    return lay_out({0: b"".join(map(large, range(5)))}, place / "data" / "orders-0")


@pytest.mark.parametrize("verb", ["salvage", "repair"])
@pytest.mark.parametrize("start", [3, 100])
def test_a_copy_has_what_is_below_the_log_start(verb: str, start: int, tmp_path: Path) -> None:
    source = five(tmp_path)
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
    told = run(verb, source, tmp_path / "saved")
    assert told.exit_code == 0, told.output
    assert "has 5 batches; 0 bytes were left out." in told.output
    assert f"The log started at offset {start}; a copy begins at offset 0" in told.output
    assert batches_in(tmp_path / "saved" / "orders-0") == batches_in(source)
    row = json.loads(run(verb, source, tmp_path / "again", "--format", "jsonl").output)
    assert (row["keptBatches"], row["leftOutBytes"], row["logStartOffset"]) == (5, 0, start)


def test_an_empty_log_begins_again_where_it_started(tmp_path: Path) -> None:
    source = lay_out({}, tmp_path / "orders-0")
    settings = replace(SETTINGS, log_start_offset=70)
    assert salvage(str(source), str(destination_of(tmp_path)), settings).log.log_end_offset == 70


def destination_of(tmp_path: Path) -> Path:
    (tmp_path / "new").mkdir()
    return tmp_path / "new" / "orders-0"


@pytest.mark.parametrize(
    "name",
    [
        "._00000000000000000000.log",
        "00000000000000000000 (copy).log",
        "backup.snapshot",
        ".index",
        "99999999999999999999.timeindex",
        "old.txnindex",
        "x.log.swap",
        "x.index.cleaned",
        ".DS_Store",
        "00000000000000000000.log~",
        "00000000000000000007.log/",
    ],
)
def test_a_foreign_file_costs_nothing(name: str, tmp_path: Path) -> None:
    source = five(tmp_path)
    whole = batches_in(source)
    if name.endswith("/"):
        (source / name).mkdir()
    else:
        (source / name).write_bytes(b"foreign")
    told = run("salvage", source, tmp_path / "saved")
    assert told.exit_code in (0, 3), told.output
    assert batches_in(tmp_path / "saved" / "orders-0") == whole
    if told.exit_code:
        assert f"{source}/{name.rstrip('/')}" in told.output


@pytest.mark.parametrize("content", ["", "version: 0", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "?"])
def test_a_broken_partition_metadata_is_left_out(content: str, tmp_path: Path) -> None:
    source = five(tmp_path)
    (source / "partition.metadata").write_text(content)
    told = run("salvage", source, tmp_path / "saved")
    assert (told.exit_code, "has 5 batches" in told.output) == (1, True)
    assert f"{source}/partition.metadata" in told.output
    assert not (tmp_path / "saved" / "orders-0" / "partition.metadata").exists()


@pytest.mark.parametrize("size_max", [12_000, 20_000])
def test_a_segment_that_is_too_large_is_split(size_max: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = five(tmp_path)
    monkeypatch.setattr(placement, "SEGMENT_SIZE_MAX", size_max)
    destination = destination_of(tmp_path)
    salvage(str(source), str(destination), SETTINGS)
    logs = sorted(destination.glob("*.log"))
    assert batches_in(destination) == batches_in(source)
    assert [log.stat().st_size <= size_max for log in logs] == [True] * len(logs)
    assert len(logs) > 1


@pytest.mark.long
def test_batches_behind_the_largest_position_are_saved(tmp_path: Path) -> None:
    source = five(tmp_path)
    with (source / f"{0:020d}.log").open("r+b") as log:
        log.seek(2**31)
        log.write(large(5) + large(6))
    told = run("salvage", source, tmp_path / "saved")
    assert "has 7 batches" in told.output, told.output
    assert batch_offsets(tmp_path / "saved" / "orders-0") == list(range(7))


def test_a_copy_that_is_not_as_planned_is_an_error(tmp_path: Path) -> None:
    source, destination = five(tmp_path), destination_of(tmp_path)
    pieces = plan_salvage(str(source))
    log = source / f"{0:020d}.log"
    log.write_bytes(hurt(log.read_bytes()))
    with pytest.raises(DataDirectoryError, match="not what was planned"):
        salvage(str(source), str(destination), SETTINGS, pieces=pieces)
    assert not destination.exists()


@pytest.mark.parametrize("verb", ["salvage", "repair", "sample"])
def test_a_destination_is_made_and_may_look_like_a_partition(verb: str, tmp_path: Path) -> None:
    source = five(tmp_path)
    (tmp_path / "backup-20241101").mkdir()
    for name in ("backup-20241101", "new-1", "rescued"):
        assert run(verb, source, tmp_path / name).exit_code == 0
        assert batches_in(tmp_path / name / "orders-0") == batches_in(source)
    assert run(verb, source, tmp_path / "no" / "parent").exit_code == 2
    assert run(verb, source, source / "inside").exit_code == 2
    assert not (source / "inside").exists()
    told = CliRunner().invoke(logstore, [verb, str(source), ""])  # a variable of the shell that is not set
    assert (told.exit_code, "not empty" in told.stderr) == (2, True)
    (source.parent / "meta.properties").touch()
    assert run(verb, source, source.parent / "inside").exit_code == 2
    assert not (source.parent / "inside").exists()


def test_a_destination_that_was_made_goes_with_a_copy_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = five(tmp_path)
    monkeypatch.setattr(salvaging, "require_as_planned", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(logstore, ["salvage", str(source), str(tmp_path / "saved")], catch_exceptions=False)
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("verb", ["salvage", "sample"])
def test_a_kill_leaves_nothing_under_the_name_of_the_copy(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, killed = five(tmp_path), tmp_path / "killed"
    module = salvaging if verb == "salvage" else sampling
    monkeypatch.setattr(module, "recover_partition", lambda path, *args: shutil.copytree(Path(path).parent, killed))
    with pytest.raises(TypeError):
        CliRunner().invoke(logstore, [verb, str(source), str(tmp_path / "saved")], catch_exceptions=False)
    left = f"{source.name}.unfinished-stray"
    assert [path.name for path in killed.iterdir()] == [left]
    told = run(verb, source, killed)
    assert (told.exit_code, told.stdout) == (2, "")
    assert f"{left}; remove it" in told.stderr
    shutil.rmtree(killed / left)
    monkeypatch.undo()
    assert run(verb, source, killed).exit_code == 0
    assert [path.name for path in killed.iterdir()] == [source.name]


def test_why_nothing_was_written_is_told(tmp_path: Path) -> None:
    source = five(tmp_path)
    assert "Nothing was written: name a destination." in run("salvage", source).output
    assert "Nothing was written: this is a dry run." in run("salvage", source, tmp_path / "a", "--dry-run").output
    log = source / f"{0:020d}.log"
    log.write_bytes(hurt(large(0)) + log.read_bytes()[len(large(0)) :])
    damaged = run("repair", source, tmp_path / "a")
    assert "Nothing was written: the log is damaged in the middle." in damaged.output
    assert not (tmp_path / "a").exists()


def test_a_copy_is_not_made_in_a_partition(tmp_path: Path) -> None:
    source, other = five(tmp_path), lay_out({0: large(0)}, tmp_path / "data" / "orders-1")
    for options in ([], ["--dry-run"]):
        told = run("salvage", source, other, *options)
        assert (told.exit_code, "in the directory of a partition" in told.output) == (2, True)
        told = run("salvage", source, tmp_path / "no" / "such", *options)
        assert (told.exit_code, "is missing" in told.output) == (2, True)
    assert not (other / "orders-0").exists()


def test_a_copy_may_lie_beside_the_log_of_a_program(tmp_path: Path) -> None:
    source = five(tmp_path)
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "salvage.log").write_text("what salvage printed")
    assert run("salvage", source, tmp_path / "saved").exit_code == 0
    assert batches_in(tmp_path / "saved" / "orders-0") == batches_in(source)


def test_snapshots_of_a_metadata_log_are_copied(golden: Golden, tmp_path: Path) -> None:
    source = shutil.copytree(golden("cluster") / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    whole = source / f"{0:020}-{0:010}.checkpoint"
    whole.write_bytes(batch(0))
    damaged = source / f"{7:020}-{1:010}.checkpoint"
    damaged.write_bytes(batch(0) + b"of what is below")
    (tmp_path / "new").mkdir()
    destination = tmp_path / "new" / source.name
    salvage(str(source), str(destination), SETTINGS)
    assert (destination / whole.name).read_bytes() == batch(0)
    assert not (destination / damaged.name).exists()
    (told,) = broken_metadata(list_partition_directory(str(source)))
    assert (told.path, told.position) == (str(damaged), len(batch(0)))


def test_replicas_are_compared_below_a_log_start_that_hides_all(tmp_path: Path) -> None:
    source = five(tmp_path)
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    other = lay_out({0: b"".join(map(large, (0, 1, 2))) + batch(3)}, tmp_path / "other" / "orders-0")
    difference = compare(str(source), str(other))
    assert (difference.start_offset, difference.batch_count, difference.is_same) == (0, 3, False)


@pytest.mark.parametrize("end", ["-delete", "-stray", "-future"])
@pytest.mark.parametrize("command", ["salvage", "repair", "sample"])
def test_a_copy_of_a_directory_that_was_set_aside_has_the_live_name(
    command: str, end: str, golden: Golden, tmp_path: Path
) -> None:
    source = tmp_path / f"orders-0.{'0' * 32}{end}"
    shutil.copytree(golden("demo") / "orders-0", source)
    done = CliRunner().invoke(logstore, [command, str(source), str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["orders-0"]


@pytest.mark.parametrize("command", ["salvage", "repair"])
def test_a_dry_run_refuses_a_destination_that_the_copy_refuses(command: str, golden: Golden, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    words = [command, str(golden("demo") / "orders-0"), str(tmp_path / "orders-0")]
    for more in ([], ["--dry-run"]):
        done = CliRunner().invoke(logstore, [*words, *more])
        assert done.exit_code == 2
        assert "There is such a directory already" in done.stderr
