"""A reader of a directory that others write, state by state: torn ends, preallocated zeros, swaps, cuts, indexes."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from logstore.columns import batch_table
from logstore.config.topic import parse_config
from logstore.errors import CorruptRecordError, DataDirectoryError, InvalidNameError, InvalidTxnStateError
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import recover_partition
from logstore.log.state import LogState
from logstore.model import FetchIsolation
from logstore.view import record_reader
from logstore.view.folder import PartitionFolder
from logstore.view.follower import settled_names
from logstore.view.live_segment import DirectoryChangedError
from logstore.view.partition_reader import PartitionReader
from tests.naive.legacy import Message, wrapped
from tests.naive.transactional_log import TransactionalLog, transactional_log
from tests.support.encoder import TRANSACTIONAL, Batch, Rec

COMMITTED = FetchIsolation.READ_COMMITTED
UNCOMMITTED = FetchIsolation.READ_UNCOMMITTED


@pytest.fixture
def log() -> TransactionalLog:
    return transactional_log("reader", batch_count=200, segment_count=5)


@pytest.fixture
def directory(tmp_path: Path, log: TransactionalLog) -> Path:
    path = tmp_path / "data" / "made-0"
    path.mkdir(parents=True)
    for name, content in log.files().items():
        (path / name).write_bytes(content)
    return path


def offsets(reader: PartitionReader, isolation: FetchIsolation = COMMITTED, start: int | None = None) -> list[int]:
    return [int(offset) for chunk in reader.records(start, isolation=isolation).chunks() for offset in chunk.offset]


def recover(directory: Path) -> LogState:
    config = parse_config({"segment.index.bytes": 65536})
    settings = LoadSettings(was_clean=False, recovery_point=0, log_start_offset=0, now_ms=0, config=config)
    return recover_partition(str(directory), settings)[0]


def visible(log: TransactionalLog, isolation: FetchIsolation) -> list[int]:
    return [record.offset for record in (log.committed if isolation is COMMITTED else log.records)]


def renamed(directory: Path, base_offset: int, old: str, new: str) -> None:
    for kind in (".log", ".index", ".timeindex", ".txnindex"):
        path = directory / f"{base_offset:020}{kind}{old}"
        if path.exists():
            path.rename(directory / f"{base_offset:020}{kind}{new}")


@pytest.fixture(params=["one thread", "two threads"])
def _threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_table, "WINDOW_SIZE", 700)
    if request.param == "two threads":
        monkeypatch.setattr(record_reader, "PARALLEL_SIZE_MIN", 0)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
def test_reader_gives_what_a_consumer_may_see(
    directory: Path, log: TransactionalLog, isolation: FetchIsolation
) -> None:
    reader = PartitionReader(str(directory))
    assert reader.bounds[1:5] == (0, log.end_offset, log.end_offset, log.last_stable_offset)
    assert offsets(reader, isolation) == visible(log, isolation)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
@pytest.mark.parametrize("place", [0, 1, 50, 199])
def test_records_before_a_wrong_checksum_are_given(
    directory: Path, log: TransactionalLog, isolation: FetchIsolation, place: int
) -> None:
    reader, found = PartitionReader(str(directory)), list[int]()
    bad_offset = log.batch_offsets[place]
    base_offset = max(base_offset for base_offset in log.segments if base_offset <= bad_offset)
    path = directory / f"{base_offset:020}.log"
    content = bytearray(path.read_bytes())
    number = sum(base_offset <= offset < bad_offset for offset in log.batch_offsets)
    table = batch_table.scan(np.frombuffer(content, np.uint8))
    content[int(table.position[number]) + 17] ^= 1
    path.write_bytes(content)
    records_of = reader.records(isolation=isolation)
    if bad_offset >= isolation.end_offset(reader.bounds):  # an open transaction hides it
        assert offsets(reader, isolation) == visible(log, isolation)
        return
    with pytest.raises(CorruptRecordError, match=f"at offset {bad_offset} is invalid"):
        found.extend(int(offset) for chunk in records_of.chunks() for offset in chunk.offset)
    assert found == [offset for offset in visible(log, isolation) if offset < bad_offset]
    assert records_of.position <= bad_offset


@pytest.mark.parametrize("step", [1, 7, 61, 100, 1000])
def test_a_log_that_grows_by_parts_of_batches_is_read_batch_by_batch(
    directory: Path, log: TransactionalLog, step: int
) -> None:
    files = log.files()
    for name in files:
        (directory / name).unlink()
    reader, found = PartitionReader(str(directory)), list[int]()
    assert reader.bounds.log_end_offset == 0
    for name, content in files.items():
        for end in range(0, len(content) + step, step * max(1, len(content) // step // 40)):
            (directory / name).write_bytes(content[:end])
            reader.refresh()
            assert reader.problem is None or "checksum" in str(reader.problem.found)
            found += offsets(reader, UNCOMMITTED, start=found[-1] + 1 if found else 0)
        (directory / name).write_bytes(content)
    reader.refresh()
    found += offsets(reader, UNCOMMITTED, start=found[-1] + 1)
    assert found == visible(log, UNCOMMITTED)
    assert offsets(reader) == visible(log, COMMITTED)


def test_a_batch_with_a_wrong_checksum_is_not_there_yet(directory: Path, log: TransactionalLog) -> None:
    path = directory / sorted(log.files())[-1]
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    reader = PartitionReader(str(directory))
    assert reader.bounds.log_end_offset == log.batch_offsets[-1]
    assert reader.problem is not None
    assert "checksum" in str(reader.problem)
    path.write_bytes(content)
    reader.refresh()
    assert reader.problem is None
    assert reader.bounds.log_end_offset == log.end_offset


def test_preallocated_files_end_where_their_zeros_begin(directory: Path, log: TransactionalLog) -> None:
    path = directory / sorted(log.files())[-1]
    path.write_bytes(path.read_bytes() + bytes(100_000))
    for name in log.files():
        stem = name.removesuffix(".log")
        (directory / f"{stem}.index").write_bytes(bytes(10_000))
        (directory / f"{stem}.timeindex").write_bytes(bytes(12_000))
    reader = PartitionReader(str(directory))
    assert reader.problem is None
    assert reader.bounds.log_end_offset == log.end_offset
    assert offsets(reader, start=300) == [offset for offset in visible(log, COMMITTED) if offset >= 300]


def test_an_index_of_another_cleaning_is_not_believed(directory: Path, log: TransactionalLog) -> None:
    base_offset = sorted(log.segments)[1]
    entries = b"".join(struct.pack(">ii", 5 + number, 1000 + 37 * number) for number in range(20))
    (directory / f"{base_offset:020}.index").write_bytes(entries)
    reader = PartitionReader(str(directory))
    wanted = [offset for offset in visible(log, UNCOMMITTED) if offset >= base_offset + 20]
    assert offsets(reader, UNCOMMITTED, base_offset + 20) == wanted


def test_nothing_is_missed_at_any_step_of_a_swap(directory: Path, log: TransactionalLog) -> None:
    """Two segments become one: whole files take their place one after the other, and a refresh may come between any."""
    bases = sorted(log.segments)
    merged = log.segments[bases[1]] + log.segments[bases[2]]
    reader = PartitionReader(str(directory))
    everything = visible(log, UNCOMMITTED)

    def check() -> None:
        reader.refresh()
        assert offsets(reader, UNCOMMITTED) == everything
        assert offsets(PartitionReader(str(directory)), UNCOMMITTED) == everything

    new = directory / f"{bases[1]:020}.log.cleaned"
    new.write_bytes(merged[: len(merged) // 2])
    check()
    new.write_bytes(merged)
    check()
    new.rename(directory / f"{bases[1]:020}.log.swap")
    check()
    renamed(directory, bases[1], "", ".deleted")
    check()
    renamed(directory, bases[2], "", ".deleted")
    check()
    renamed(directory, bases[1], ".swap", "")
    check()
    renamed(directory, bases[1], ".deleted", ".gone")
    check()


def test_a_rolled_segment_that_is_cleaned_before_it_was_read_is_read_anew(
    directory: Path, log: TransactionalLog
) -> None:
    last = max(log.segments)
    path = directory / f"{last:020}.log"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    reader = PartitionReader(str(directory))
    assert reader.bounds.log_end_offset < log.end_offset
    path.unlink()
    path.write_bytes(content)  # another file of the same name
    reader.refresh()
    assert offsets(reader) == visible(log, COMMITTED)
    assert reader.bounds.log_end_offset == log.end_offset


def test_deleted_segments_move_the_start(directory: Path, log: TransactionalLog) -> None:
    reader = PartitionReader(str(directory))
    bases = sorted(log.segments)
    renamed(directory, bases[0], "", ".deleted")
    reader.refresh()
    assert reader.bounds.log_start_offset == bases[1]
    assert offsets(reader, UNCOMMITTED) == [offset for offset in visible(log, UNCOMMITTED) if offset >= bases[1]]


def test_the_checkpoint_of_the_data_directory_moves_the_start(directory: Path, log: TransactionalLog) -> None:
    reader = PartitionReader(str(directory))
    (directory.parent / "log-start-offset-checkpoint").write_text("0\n1\nmade 0 77\n")
    reader.refresh()
    assert reader.bounds.log_start_offset == 77
    assert PartitionReader(str(directory)).bounds == reader.bounds


@pytest.mark.parametrize("kept_size", [0, 1, 2, 3])
def test_a_log_that_was_cut_and_written_anew_is_begun_anew(
    directory: Path, log: TransactionalLog, kept_size: int
) -> None:
    reader = PartitionReader(str(directory))
    kept = sorted(log.segments)[:kept_size]
    for base_offset in log.segments:
        if base_offset not in kept:
            (directory / f"{base_offset:020}.log").unlink()
    base = kept[-1] if kept else 0
    path = directory / f"{base:020}.log"
    batch = Batch(base, [Rec(value=b"new")])
    path.write_bytes(batch.to_bytes())
    reader.refresh()
    assert reader.bounds.log_end_offset == base + 1
    assert offsets(reader, UNCOMMITTED)[-1] == base


def test_a_last_segment_that_was_cut_and_is_longer_now_is_begun_anew(directory: Path, log: TransactionalLog) -> None:
    reader = PartitionReader(str(directory))
    last = max(log.segments)
    batch = Batch(last, [Rec(value=b"new" * 100, offset_delta=delta) for delta in range(90)], last_offset_delta=89)
    with (directory / f"{last:020}.log").open("r+b") as file:
        file.truncate(0)
        file.write(batch.to_bytes())
    reader.refresh()
    assert reader.bounds.log_end_offset == last + 90
    assert offsets(reader, UNCOMMITTED, last) == list(range(last, last + 90))


CHECKPOINT = "recovery-point-offset-checkpoint"


def in_time(reader: PartitionReader, log: TransactionalLog) -> list[tuple[int, int] | None]:
    """Where a search by the time of each record leads."""
    found = [reader.offset_for_timestamp(time) for time in sorted({record.timestamp for record in log.records})]
    return [one if one is None else (one.timestamp, one.offset) for one in found]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.properties", ""),  # killed before the first checkpoint
        (CHECKPOINT, "0\n0\n"),
        (CHECKPOINT, "0\n1\nmade 0 {second}\n"),
        (CHECKPOINT, "no checkpoint"),
    ],
)
def test_what_may_not_be_on_the_disk_is_not_relied_on_without_a_clean_shutdown(
    name: str, content: str, directory: Path, log: TransactionalLog
) -> None:
    recover(directory)
    second = sorted(log.segments)[1]
    right = in_time(PartitionReader(str(directory)), log)
    for path in directory.glob("*.t*index"):
        if int(path.stem) >= second:
            path.write_bytes(path.read_bytes()[:12] if path.suffix == ".timeindex" else b"")
    (directory.parent / name).write_text(content.format(second=second))
    reader = PartitionReader(str(directory))
    assert (offsets(reader), in_time(reader, log)) == (visible(log, COMMITTED), right)
    (directory.parent / ".kafka_cleanshutdown").touch()
    assert offsets(PartitionReader(str(directory))) != visible(log, COMMITTED)


def test_segments_below_the_recovery_point_are_taken_as_they_are(directory: Path, log: TransactionalLog) -> None:
    recover(directory)
    last = max(log.segments)
    (directory.parent / CHECKPOINT).write_text(f"0\n1\nmade 0 {last}\n")
    for path in directory.glob("*.txnindex"):
        if int(path.stem) < last:
            path.write_bytes(b"")
    assert offsets(PartitionReader(str(directory))) != visible(log, COMMITTED)


def test_a_refusal_of_the_log_is_told_and_the_next_look_begins_anew(directory: Path, log: TransactionalLog) -> None:
    reader = PartitionReader(str(directory))
    bounds = reader.bounds
    path = directory / f"{max(log.segments):020}.log"
    content = path.read_bytes()
    opened = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    begin = Batch(log.end_offset, [Rec()], flags=TRANSACTIONAL, **opened)
    stray = Batch(log.end_offset + 1, [Rec()], **opened)
    path.write_bytes(content + begin.to_bytes() + stray.to_bytes())
    with pytest.raises(InvalidTxnStateError) as told:
        reader.refresh()
    place = told.value.path, told.value.position, told.value.offset
    assert place == (str(path), len(content + begin.to_bytes()), log.end_offset + 1)
    assert reader.bounds == bounds
    path.write_bytes(content)
    reader.refresh()
    assert reader.bounds == bounds


def followed(reader: PartitionReader) -> set[bool]:
    """Whether the segments before the last were folded, some or all."""
    *before, _ = reader.view().segments
    return {getattr(segment, "indexes", None) is not None for segment in before}


def test_a_snapshot_spares_the_segments_before_it(directory: Path, log: TransactionalLog) -> None:
    copy = Path(shutil.copytree(directory, directory.parent / "copy" / "made-0"))
    recovered = recover(copy)
    reader = PartitionReader(str(copy))
    assert reader.bounds.last_stable_offset == recovered.last_stable_offset
    assert followed(reader) == {False}
    assert followed(PartitionReader(str(directory))) == {True}, "without snapshots"
    assert offsets(reader) == visible(log, COMMITTED)


def test_a_segment_followed_from_inside_keeps_the_aborted_transactions_before(
    directory: Path, log: TransactionalLog, tmp_path: Path
) -> None:
    _, *others = sorted(log.segments)
    aborted_offset = next(offset for _, offset in log.aborted if offset >= others[0])
    begun = max(base_offset for base_offset in others if base_offset <= aborted_offset)
    cut = Path(shutil.copytree(directory, tmp_path / "cut" / "made-0"))
    for base_offset in log.segments:
        if base_offset > begun:
            (cut / f"{base_offset:020}.log").unlink()
    os.truncate(cut / f"{begun:020}.log", len(log.segments[begun]) - 1)
    inside = recover(cut).log_end_offset
    recover(directory)
    for snapshot in directory.glob("*.snapshot"):
        snapshot.unlink()
    shutil.copy(cut / f"{inside:020}.snapshot", directory)
    reader = PartitionReader(str(directory))
    assert followed(reader) == {False, True}
    assert offsets(reader) == visible(log, COMMITTED)


def test_a_followed_segment_that_grew_rolled_and_went_is_still_read(directory: Path, log: TransactionalLog) -> None:
    last = max(log.segments)
    path = directory / f"{last:020}.log"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    reader = PartitionReader(str(directory))
    path.write_bytes(content)
    (directory / f"{log.end_offset:020}.log").write_bytes(Batch(log.end_offset, [Rec(value=b"next")]).to_bytes())
    reader.refresh()
    renamed(directory, last, "", ".deleted")
    for deleted in directory.glob("*.deleted"):
        deleted.unlink()
    assert offsets(reader, UNCOMMITTED, last)[:-1] == [offset for offset in visible(log, UNCOMMITTED) if offset >= last]


def test_a_time_index_of_another_cleaning_is_not_believed(directory: Path, log: TransactionalLog) -> None:
    """By the new one the segment has nothing as late; the reader still has the old segment."""
    base_offset = sorted(log.segments)[1]
    path = directory / f"{base_offset:020}.log"
    late = Batch(base_offset, [Rec()], base_timestamp=2**42, max_timestamp=2**42)
    path.write_bytes(late.to_bytes())
    recover(directory)  # with a snapshot only the last segment is read
    reader = PartitionReader(str(directory))
    path.rename(path.with_suffix(".log.deleted"))
    path.write_bytes(b"")
    os.utime(path, (2**33, 2**33))
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 1, 0))
    found = reader.offset_for_timestamp(2**42)
    assert found.offset == base_offset


def test_a_time_is_looked_for_in_old_messages(tmp_path: Path) -> None:
    (tmp_path / "made-0").mkdir()
    messages = [Message(offset, 10 * offset, None, b"v") for offset in range(4)]
    (tmp_path / "made-0" / f"{0:020}.log").write_bytes(wrapped(1, messages))
    found = PartitionReader(str(tmp_path / "made-0")).offset_for_timestamp(15)
    assert found is not None
    assert found[:2] == (20, 2)


CUT = """
import os, sys
from logstore.errors import DataDirectoryError
from logstore.view.partition_reader import PartitionReader

reader = PartitionReader(sys.argv[1])
for name in os.listdir(sys.argv[1]):
    os.truncate(os.path.join(sys.argv[1], name), 0)
for ask in (
    lambda: reader.read(0, 10),
    lambda: reader.read(reader.bounds.log_end_offset - 1, 10),
    lambda: list(reader.records().chunks()),
    lambda: reader.offset_for_timestamp(1),
):
    try:
        ask()
    except DataDirectoryError as error:
        assert "became shorter" in str(error), error
    else:
        raise AssertionError("nothing was told")
reader.refresh()
print(reader.bounds.log_end_offset)
"""


def test_a_log_that_is_cut_in_place_ends_a_read_but_not_the_process(directory: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CUT, str(directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_names_that_never_settle_are_given_up(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10**6))
    monkeypatch.setattr(PartitionFolder, "names", lambda self: [f"{next(numbers):020}.log"])
    with pytest.raises(DirectoryChangedError):
        settled_names(PartitionFolder(str(directory)))
    with pytest.raises(DataDirectoryError, match="changes all the time"):
        PartitionReader(str(directory))


def test_a_directory_of_another_name_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidNameError):
        PartitionReader(str(tmp_path / "nopartition"))
    with pytest.raises(DataDirectoryError):
        PartitionReader(str(tmp_path / "missing-0"))
