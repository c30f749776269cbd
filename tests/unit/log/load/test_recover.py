"""What recovery refuses, tells, and does otherwise than Kafka on purpose; and the command around it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from logstore.columns.batch_table import scan
from logstore.config.topic import parse_config, segment_size_max
from logstore.disk.seam import Seam
from logstore.errors import (
    CorruptIndexError,
    DataDirectoryError,
    InvalidNameError,
    InvalidRecordError,
    InvalidTxnStateError,
    LogstoreError,
    OffsetOverflowError,
    UsageError,
)
from logstore.folds.producer_state import ProducerState
from logstore.layout.offset_index import OffsetIndex
from logstore.layout.producer_snapshot import ProducerSnapshot
from logstore.log.load import loader, split
from logstore.log.load.loader import LoadSettings
from logstore.log.load.producers import PartitionProducers
from logstore.log.load.recover import recover_partition
from logstore.log.load.removals import RecoveryPlan
from logstore.log.load.segment_recovery import recover_segment
from logstore.log.segment.log_segment import LogSegment
from logstore.log.state import LogState
from logstore.view import segment as segments
from logstore_tools.recover_command import command
from tests.recovery.cases import NOW_MS, move_last_offset
from tests.support.dice import Dice
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec
from tests.support.recovered_json import as_json
from tests.support.seams import FullDisk, ListeningSeam, UnsyncedSeam

LAST_BASE = f"{65:020}"


@pytest.fixture
def rolled(golden: Callable[[str], Path], tmp_path: Path) -> Path:
    """A partition of five segments, with transactions."""
    return Path(shutil.copytree(golden("transactions") / "rolled-0", tmp_path / "data" / "rolled-0"))


def recover(
    directory: Path,
    *,
    was_clean: bool = False,
    log_start: int = 0,
    config: dict[str, str] | None = None,
    seam: Seam | None = None,
) -> tuple[LogState, RecoveryPlan]:
    settings = LoadSettings(was_clean, 0, log_start, NOW_MS, parse_config(config or {}))
    return recover_partition(str(directory), settings, seam or UnsyncedSeam())


def test_repairs_are_listed_with_their_reasons(rolled: Path) -> None:
    log = rolled / f"{LAST_BASE}.log"
    log.write_bytes(log.read_bytes()[:-10])
    (rolled / f"{0:020}.index.deleted").touch()
    repairs = {repair.file: repair for repair in recover(rolled)[1].repairs}
    assert repairs[f"{0:020}.index.deleted"].action == "deleted"
    assert repairs[log.name].action == "truncated"
    assert "the last batch is cut off" in repairs[log.name].reason
    assert recover(rolled, was_clean=True)[1].repairs == ()


def test_names_that_recovery_makes_are_synced_together_at_its_end(rolled: Path) -> None:
    seam = ListeningSeam()
    for index in rolled.glob("*index"):
        index.unlink()
    recover(rolled, seam=seam)
    assert sum(call.startswith("rename") for call in seam.calls) > 10
    assert seam.calls[-1] == "sync directory rolled-0"
    assert seam.calls.count("sync directory rolled-0") == 1


def test_an_invalid_batch_is_told_with_its_checksum(rolled: Path) -> None:
    log = rolled / f"{LAST_BASE}.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    recovered, done = recover(rolled)
    (repair,) = [repair for repair in done.repairs if repair.action == "truncated"]
    assert "at byte 0: Record is corrupt (stored crc = " in repair.reason
    assert recovered.log_end_offset == 65


@pytest.mark.parametrize(("name", "error"), [("rolled", InvalidNameError), ("t-0.0123-delete", UsageError)])
def test_directories_that_are_no_live_partitions_are_refused(
    name: str, error: type[LogstoreError], rolled: Path
) -> None:
    other = rolled.rename(rolled.with_name(name))
    before = sorted(path.name for path in other.iterdir())
    with pytest.raises(error):
        recover(other)
    assert sorted(path.name for path in other.iterdir()) == before


def test_a_link_is_refused_before_anything_is_changed(rolled: Path, tmp_path: Path) -> None:
    log = rolled / f"{LAST_BASE}.log"
    log.rename(tmp_path / "elsewhere.log")
    log.symlink_to(tmp_path / "elsewhere.log")
    with pytest.raises(DataDirectoryError, match="symbolic link"):
        recover(rolled)
    assert (rolled / f"{LAST_BASE}.index").exists()


@pytest.mark.parametrize("size", [88, 800])
def test_an_index_that_is_too_large_is_refused_and_kept(size: int, rolled: Path) -> None:
    index = rolled / f"{LAST_BASE}.index"
    index.write_bytes(bytes(size))
    with pytest.raises(CorruptIndexError, match=rf"newPosition > limit: \({size} > 80\)"):
        recover(rolled, was_clean=True, config={"segment.index.bytes": "80"})
    assert index.read_bytes() == bytes(size)


def test_a_swapped_in_log_without_an_index_gets_one_made(rolled: Path) -> None:
    for suffix in (".log", ".timeindex"):
        (rolled / (LAST_BASE + suffix)).rename(rolled / f"{LAST_BASE}{suffix}.swap")
    (rolled / f"{LAST_BASE}.index").unlink()
    recovered, _ = recover(rolled, was_clean=True, config={"index.interval.bytes": "0"})
    entry_count = recovered.segments.last.offset_index.entry_count
    assert (rolled / f"{LAST_BASE}.index").stat().st_size == 8 * entry_count > 0


@pytest.mark.parametrize("torn_size", [0, 10])
def test_segments_without_indexes_are_read_once(
    torn_size: int, rolled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in rolled.glob("*.index"):
        index.unlink()
    log = rolled / f"{LAST_BASE}.log"
    log.write_bytes(log.read_bytes()[: log.stat().st_size - torn_size])
    twin = Path(shutil.copytree(rolled, tmp_path / "twin" / rolled.name))
    read: list[int] = []

    def counted(segment: LogSegment, *arguments: Any) -> int:
        read.append(segment.base_offset)
        return recover_segment(segment, *arguments)

    monkeypatch.setattr(loader, "recover_segment", counted)
    once, planned_once = recover(rolled)
    assert read == sorted(set(read))
    monkeypatch.setattr(loader, "KEPT_PRODUCER_COUNT_MAX", -1)
    twice, planned_twice = recover(twin)
    assert len(read) == 3 * len(once.segments)
    contents = [{path.name: path.read_bytes() for path in each.iterdir()} for each in (rolled, twin)]
    assert contents[0] == contents[1]
    assert as_json(once) == as_json(twice)
    assert replace(planned_once, path="") == replace(planned_twice, path="")


def test_indexes_that_are_made_anew_are_not_read_before(rolled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in (rolled / f"{LAST_BASE}.index", rolled / f"{LAST_BASE}.timeindex"):
        index.write_bytes(bytes(12 * 8 * 1000))
    expected, planned = recover(Path(shutil.copytree(rolled, rolled.parent / "twin" / rolled.name)))
    sizes: list[int] = []
    parse = segments.parse_offset_index

    def told(data: bytes, **place: Any) -> OffsetIndex:
        sizes.append(len(data))
        return parse(data, **place)

    monkeypatch.setattr(segments, "parse_offset_index", told)
    recovered, done = recover(rolled)
    assert max(sizes, default=0) < 1000
    assert as_json(recovered) == as_json(expected)
    assert replace(done, path="") == replace(planned, path="")


def test_indexes_below_a_segment_without_one_are_read(rolled: Path) -> None:
    (rolled / f"{LAST_BASE}.index").unlink()
    for snapshot in rolled.glob("*.snapshot"):  # so that the producers are read from the segments below
        snapshot.unlink()
    bases = sorted(int(log.stem) for log in rolled.glob("*.log"))
    read: list[int] = []

    class Told(LogSegment):
        def _read_offset_index(self) -> OffsetIndex:
            read.append(self.base_offset)
            return super()._read_offset_index()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "LogSegment", Told)
        recover(rolled)
    assert set(read[: len(bases) - 1]) == set(bases[:-1])


def test_a_segment_is_read_again_after_other_producers(rolled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (rolled / f"{LAST_BASE}.index").unlink()
    read: list[int] = []

    def counted(segment: LogSegment, *arguments: Any) -> int:
        read.append(segment.base_offset)
        return recover_segment(segment, *arguments)

    monkeypatch.setattr(loader, "recover_segment", counted)
    monkeypatch.setattr(PartitionProducers, "digest", lambda _: f"{len(read)}".encode())
    recover(rolled)
    assert read.count(int(LAST_BASE)) == 2


@pytest.mark.parametrize("has_index", [True, False])
def test_a_segment_that_overflows_is_split_and_has_its_records_once(has_index: bool, rolled: Path) -> None:
    size = (rolled / f"{LAST_BASE}.log").stat().st_size
    move_last_offset(rolled, f"{LAST_BASE}.log:5000000000", Dice(""))
    if not has_index:
        (rolled / f"{LAST_BASE}.index").unlink()
    recovered, _ = recover(rolled, was_clean=not has_index)
    *_, first, second = recovered.segments
    assert (first.base_offset, second.base_offset) == (65, 5_000_000_000)
    assert first.size + second.size == size


@pytest.mark.parametrize("last_offset", [2, 2**31 - 1])
def test_a_segment_whose_last_batch_fits_is_not_split(last_offset: int, tmp_path: Path) -> None:
    """As in Kafka, which looks at the last batch alone (`LogSegment.hasOverflow`)."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    batches = [Batch(offset, [Rec(b"", b"")]).to_bytes() for offset in (1, 5_000_000_000, last_offset)]
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    with pytest.raises(OffsetOverflowError, match="only permitted for segments with overflow") as told:
        recover(directory)
    assert told.value.expected == "offsets 0 to 2147483647 in all batches"
    assert [path.name for path in directory.iterdir()] == [f"{0:020}.log"]


def test_a_part_holds_no_batch_below_its_first_one() -> None:
    batches = b"".join(Batch(offset, [Rec(b"", b"")]).to_bytes() for offset in (5_000_000_000, 4_999_999_999))
    assert list(split._parts(scan(np.frombuffer(batches, np.uint8)))) == [(0, 1), (1, 2)]


def test_nothing_of_an_index_stays_behind_a_split(rolled: Path) -> None:
    move_last_offset(rolled, f"{LAST_BASE}.log:5000000000", Dice(""))
    (rolled / f"{LAST_BASE}.txnindex").write_bytes(bytes(34))
    recover(rolled, was_clean=True)
    assert f"{LAST_BASE}.txnindex" not in {path.name for path in rolled.iterdir()}


def test_an_offset_after_which_there_is_none_does_not_delete_the_log(rolled: Path) -> None:
    move_last_offset(rolled, f"{LAST_BASE}.log:{2**63 - 1}", Dice(""))
    with pytest.raises(OffsetOverflowError, match="No offset can follow") as told:
        recover(rolled, was_clean=True)
    assert told.value.found == 2**63 - 1
    assert len(list(rolled.glob("*.log"))) == 5


@pytest.mark.parametrize("call_count", [0, 1, 5, 9])
def test_a_full_disk_stops_recovery_and_loses_nothing(call_count: int, rolled: Path) -> None:
    logs = {path.name: path.read_bytes() for path in rolled.glob("*.log")}
    for path in rolled.glob("*.index"):
        path.unlink()
    with pytest.raises(DataDirectoryError, match="No space left on device"):
        recover(rolled, seam=FullDisk(call_count))
    assert {path.name: path.read_bytes() for path in rolled.glob("*.log")} == logs
    assert recover(rolled)[0].log_end_offset == 76


def test_the_internal_segment_size_goes_before_the_public_one() -> None:
    assert segment_size_max(parse_config({})) == 1 << 30
    assert segment_size_max(parse_config({"internal.segment.bytes": "14"})) == 14


def test_the_command_takes_what_it_is_not_told_from_the_data_directory(rolled: Path) -> None:
    parent = rolled.parent
    (parent / "log-start-offset-checkpoint").write_text("0\n1\nrolled 0 20\n")
    (parent / "recovery-point-offset-checkpoint").write_text("0\n1\nrolled 0 65\n")
    done = CliRunner().invoke(command, [str(rolled), "--now", str(NOW_MS), "--format", "jsonl"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["logStartOffset"], found["logEndOffset"], found["recoveryPoint"]) == (20, 76, 65)
    (parent / ".kafka_cleanshutdown").touch()
    done = CliRunner().invoke(command, [str(rolled), "--now", str(NOW_MS), "--format", "jsonl"])
    assert json.loads(done.stdout)["recoveryPoint"] == 76


def test_offsets_that_are_told_win_over_the_checkpoints_also_0(rolled: Path) -> None:
    (rolled.parent / "log-start-offset-checkpoint").write_text("0\n1\nrolled 0 20\n")
    (rolled.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nrolled 0 65\n")
    told = ["--log-start", "0", "--recovery-point", "0", "--now", str(NOW_MS), "--format", "jsonl"]
    found = json.loads(CliRunner().invoke(command, [str(rolled), *told]).stdout)
    assert (found["logStartOffset"], found["recoveryPoint"]) == (0, 0)


def test_a_dry_run_says_how_much_it_read(rolled: Path) -> None:
    arguments = [str(rolled), "--now", str(NOW_MS), "--format", "jsonl"]
    CliRunner().invoke(command, [*arguments, "--unclean"])
    done = CliRunner().invoke(command, [*arguments, "--clean", "--dry-run"])
    assert json.loads(done.stdout)["verdict"].startswith("nothing would be changed; closed in order, so only its end")


def test_the_command_prints_text(rolled: Path) -> None:
    done = CliRunner().invoke(command, [str(rolled), "--unclean", "--now", str(NOW_MS)])
    lines = done.stdout.splitlines()
    assert "logEndOffset: 76" in lines
    assert "segments: 5" in lines
    assert "  epoch: 0 startOffset: 0" in lines


def test_the_command_removes_readable_batches_only_if_told_so(rolled: Path) -> None:
    log = min(rolled.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[70] ^= 1  # in the first batch, so that all behind it goes
    log.write_bytes(content)
    before = {path.name: path.read_bytes() for path in rolled.iterdir()}
    arguments = [str(rolled), "--unclean", "--now", str(NOW_MS), "--format", "jsonl"]
    dry = CliRunner().invoke(command, [*arguments, "--dry-run"])
    assert dry.exit_code == 1
    assert json.loads(dry.stdout)["removedBatches"] > 1
    refused = CliRunner().invoke(command, arguments)
    assert refused.exit_code == 1
    assert "would remove" in refused.stderr
    assert "--yes" in refused.stderr
    assert {path.name: path.read_bytes() for path in rolled.iterdir()} == before
    done = CliRunner().invoke(command, [*arguments, "--yes"])
    assert (done.exit_code, json.loads(done.stdout)["logEndOffset"]) == (0, 0)


def test_a_dry_run_changes_nothing(rolled: Path) -> None:
    max(rolled.glob("*.index")).unlink()
    before = {path.name: path.read_bytes() for path in rolled.iterdir()}
    done = CliRunner().invoke(command, [str(rolled), "--unclean", "--dry-run"])
    assert (done.exit_code, "removedBatches: 0" in done.stdout) == (0, True)
    assert {path.name: path.read_bytes() for path in rolled.iterdir()} == before


def test_damage_below_the_recovery_point_removes_nothing(rolled: Path) -> None:
    *_, closed, last = sorted(rolled.glob("*.log"))
    content = bytearray(closed.read_bytes())
    content[70] ^= 1  # in its first batch
    closed.write_bytes(content)
    last.write_bytes(b"")
    arguments = [str(rolled), "--unclean", "--recovery-point", str(int(last.stem)), "--dry-run"]
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, "removedBatches: 0" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["missing-0"], 2, "There is no such directory"),
        (["--config", "nonsense", "."], 2, "expected NAME=VALUE"),
        (["--config", "segment.bytes=1", "."], 2, "Value must be at least 1048576"),
        (["--config", "segment.byte=1", "."], 2, "Unknown topic config name: segment.byte"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str], exit_code: int, words: str, rolled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rolled)
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == exit_code
    assert words in done.stderr


def test_a_marker_that_cannot_be_read_is_no_damage_to_be_cut(tmp_path: Path) -> None:
    """As in Kafka it stays in the log, and the load ends at it."""
    sent = Batch(0, [Rec(b"", b"")], flags=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
    unreadable = Batch(1, [Rec(b"\0", b"")], flags=CONTROL | TRANSACTIONAL, producer_id=7, producer_epoch=0)
    content = sent.to_bytes() + unreadable.to_bytes() + Batch(2, [Rec(b"", b"")]).to_bytes()
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = directory / f"{0:020}.log"
    log.write_bytes(content)
    with pytest.raises(InvalidRecordError) as told:
        recover(directory)
    assert (told.value.path, told.value.position, told.value.offset) == (str(log), len(sent.to_bytes()), 1)
    assert log.read_bytes() == content


def markers_that_go_back(*between: int) -> bytes:
    """Two ABORT markers whose offsets go back, behind plain batches at some offsets, each large enough for an index."""
    abort = Rec(bytes(4), bytes(6))
    batches = [
        Batch(number, [Rec(b"", b"")], flags=TRANSACTIONAL, producer_id=number, producer_epoch=0, base_sequence=0)
        for number in range(2)
    ]
    batches += [Batch(offset, [Rec(b"", bytes(5000))]) for offset in between]
    for number, offset in ((0, 20), (1, 19)):
        batches.append(Batch(offset, [abort], flags=TRANSACTIONAL | CONTROL, producer_id=number, producer_epoch=0))
    return b"".join(batch.to_bytes() for batch in batches)


GOING_BACK = b"".join(Batch(offset, [Rec(b"", bytes(5000))]).to_bytes() for offset in (30, 31, 30))


@pytest.mark.parametrize("behind", [b"", GOING_BACK])
def test_abort_markers_whose_offsets_go_back_are_refused_in_kafkas_words(behind: bytes, tmp_path: Path) -> None:
    """No transaction index can hold them: a broker does not start with such a log (`TransactionIndex.append`)."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = directory / f"{0:020}.log"
    log.write_bytes(markers_that_go_back() + behind)
    with pytest.raises(CorruptIndexError, match="must increase sequentially, but 19 is not greater") as told:
        recover(directory)
    assert (told.value.offset, told.value.java_class) == (19, "java.lang.IllegalArgumentException")
    assert [path.name for path in directory.iterdir()] == [log.name]


def test_the_first_batch_that_goes_back_decides(tmp_path: Path) -> None:
    """The offset index refuses one before the markers: a broker starts, and removes what the segment has."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = directory / f"{0:020}.log"
    log.write_bytes(markers_that_go_back(9, 10, 9))
    log.with_suffix(".index").touch()
    settings = LoadSettings(False, 0, 0, NOW_MS, parse_config({}), accepts_loss=True)
    _, done = recover_partition(str(directory), settings, UnsyncedSeam())
    assert [(one.start, one.batch_count) for one in done.removals] == [(0, 7)]
    assert log.read_bytes() == b""


def test_transactions_that_a_snapshot_has_twice_are_refused_in_kafkas_words(tmp_path: Path) -> None:
    """Two cannot begin at one offset: a broker does not start with such a snapshot (`completeTxn`)."""
    directory, ids = tmp_path / "t-0", np.arange(2)
    directory.mkdir()
    nothing, zeros = np.full(2, -1), np.zeros(2, np.int64)
    snapshot = ProducerSnapshot(0, ids, zeros, nothing, nothing, zeros, zeros, nothing, zeros)
    state = ProducerState("t-0")
    state.load(snapshot, 2, None)
    (directory / f"{2:020}.snapshot").write_bytes(state.to_snapshot_bytes())
    abort = Rec(bytes(4), bytes(6))
    markers = [
        Batch(2 + number, [abort], flags=TRANSACTIONAL | CONTROL, producer_id=number, producer_epoch=0)
        for number in ids.tolist()
    ]
    log = directory / f"{2:020}.log"
    log.write_bytes(b"".join(batch.to_bytes() for batch in markers))
    with pytest.raises(InvalidTxnStateError, match="which was not started") as told:
        recover(directory)
    assert (told.value.offset, told.value.java_class) == (3, "java.lang.IllegalArgumentException")


def test_a_first_offset_that_is_there_again_keeps_its_first_batch_with_its_time(tmp_path: Path) -> None:
    """As Kafka 4.3.1 leaves it: it truncates the segment to its base offset, which the index has at the second."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    times = [NOW_MS - 5, NOW_MS - 1, NOW_MS - 9]
    batches = [Batch(0, [Rec(b"", bytes(5000))], base_timestamp=ms, max_timestamp=ms).to_bytes() for ms in times]
    log = directory / f"{0:020}.log"
    log.write_bytes(b"".join(batches))
    log.with_suffix(".index").touch()
    settings = LoadSettings(False, 0, 0, NOW_MS, parse_config({}), accepts_loss=True)
    recover_partition(str(directory), settings, UnsyncedSeam())
    assert (log.read_bytes(), log.with_suffix(".index").read_bytes()) == (batches[0], b"")
    assert log.with_suffix(".timeindex").read_bytes() == times[0].to_bytes(8, "big") + bytes(4)
