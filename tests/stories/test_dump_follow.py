"""`dump --follow` prints what is added to logs, segments that are rolled and partitions that are new."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import logstore
from logstore.errors import CorruptRecordError, DataDirectoryError
from logstore.model import FetchIsolation
from logstore_tools.dump import follower, run
from logstore_tools.dump.command import error_line
from logstore_tools.dump.findings import Findings
from logstore_tools.dump.follower import DumpFollower
from logstore_tools.dump.options import DumpOptions
from logstore_tools.dump.output import Output
from tests.support.encoder import Batch, Rec
from tests.support.stores import FEW_PARTITIONS

LOGSTORE = Path(sys.executable).with_name("logstore")
COMMITTED = FetchIsolation.READ_COMMITTED
FIRST, SECOND = (f"{offset:020}.log" for offset in (0, 2))


def batch(offset: int) -> bytes:
    return Batch(offset, [Rec(b"key-%d" % offset)]).to_bytes()


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / FIRST).write_bytes(batch(0))
    process = subprocess.Popen(
        [LOGSTORE, "dump", "--follow", "--print-data-log", "."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def lines_to(process: subprocess.Popen[str], key: str) -> list[str]:
    """What is printed up to the record with this key."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or f"key: {key}" not in lines[-1]:
        lines.append(process.stdout.readline().rstrip("\n"))
        assert lines[-1], process.stderr.read() if process.stderr else ""
    return lines


def test_batches_segments_and_partitions_are_printed_as_they_come(
    followed: subprocess.Popen[str], tmp_path: Path
) -> None:
    first = lines_to(followed, "key-0")
    assert first[:2] == [f"Dumping ./orders-0/{FIRST}", "Log starting offset: 0"]
    with (tmp_path / "orders-0" / FIRST).open("ab", buffering=0) as log:
        content = batch(1)
        log.write(content[:50])  # nothing is said of half a batch
        log.write(content[50:])
    assert [line.split(" ")[0] for line in lines_to(followed, "key-1")] == ["baseOffset:", "|"]
    (tmp_path / "orders-0" / SECOND).write_bytes(batch(2))
    assert lines_to(followed, "key-2")[:2] == [f"Dumping ./orders-0/{SECOND}", "Log starting offset: 2"]
    (tmp_path / "orders-1").mkdir()
    (tmp_path / "orders-1" / FIRST).write_bytes(batch(7))
    assert lines_to(followed, "key-7")[0] == f"Dumping ./orders-1/{FIRST}"
    (tmp_path / "orders-0" / FIRST).unlink()
    with (tmp_path / "orders-0" / SECOND).open("ab") as log:
        log.write(batch(3))
    assert lines_to(followed, "key-3")[0] == f"Dumping ./orders-0/{SECOND}"
    followed.send_signal(signal.SIGINT)
    _, told = followed.communicate(timeout=60)
    gap = f"Non-consecutive offsets in {tmp_path}/./orders-1/{FIRST}\n  -1 is followed by 7\n"
    assert (followed.returncode, told) == (130, f"{gap}logstore: interrupted\n")


def test_a_log_that_is_cut_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FIRST
    path.write_bytes(batch(0) + batch(1))
    looks = []

    def list_paths() -> list[str]:
        looks.append(path)
        if len(looks) == 2:
            os.truncate(path, len(batch(0)))
        return [str(path)]

    stdout = io.BytesIO()
    options = DumpOptions(["--follow", "--deep-iteration"])
    with pytest.raises(DataDirectoryError, match="was cut while it was followed") as told:
        DumpFollower(options, Output.to_stream(stdout), stdout, Findings(print)).run(list_paths)
    assert error_line(told.value).startswith(f"logstore: The log was cut while it was followed; at {path}; expected at")
    assert stdout.getvalue().count(b"| offset") == 2


def test_offsets_below_zero_count_from_the_end_at_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FIRST
    path.write_bytes(batch(0) + batch(1) + batch(2))
    looks = Looks(monkeypatch, "--records", "--offset", "-2:")
    printed = looks.run(lambda: [str(path)], lambda: path.write_bytes(b"".join(map(batch, range(6)))))
    assert offsets_of(printed) == [[1, 2], [3, 4, 5]]


@pytest.mark.parametrize("is_named", [False, True])
def test_a_log_that_was_deleted_and_comes_back_is_dumped_from_its_start(
    is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FIRST
    path.write_bytes(batch(0) + batch(1))
    looks = Looks(monkeypatch, *([str(path)] if is_named else []))
    printed = looks.run(lambda: [str(path)], path.unlink, lambda: None, lambda: path.write_bytes(batch(7)))
    lines = [line for look in printed for line in look]
    assert [line.split(" ")[1] for line in lines if line.startswith("baseOffset: ")] == ["0", "1", "7"]
    assert lines[-2] == "Log starting offset: 0"


def test_a_partition_that_is_made_anew_is_dumped_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, gone = tmp_path / "orders-0", tmp_path / "gone"
    directory.mkdir()
    (directory / FIRST).write_bytes(batch(0) + batch(1))

    def make_anew() -> None:
        directory.mkdir()
        (directory / FIRST).write_bytes(batch(0))

    looks = Looks(monkeypatch, "--deep-iteration")
    printed = looks.run(lambda: [str(directory / FIRST)], lambda: directory.rename(gone), make_anew)
    assert offsets_of(printed) == [[0, 1], [], [0]]


def test_a_parquet_file_has_an_end() -> None:
    stderr = io.StringIO()
    assert run(["--follow", "--format", "parquet", "x.log"], io.BytesIO(), stderr) == 2
    assert stderr.getvalue() == "logstore: --follow has no end, which a Parquet file needs; --format arrow\n"


class Looks:
    """A follower whose looks are the steps of a test: no time passes in between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *argv: str) -> None:
        monkeypatch.setattr(follower, "INTERVAL_S", 0)
        self.told: list[str] = []
        self.findings = Findings(self.told.append)
        self._options = DumpOptions(["--follow", *argv])
        self._stdout = io.BytesIO()

    def run(self, paths: Callable[[], list[str]], *steps: Callable[[], object]) -> list[list[str]]:
        """Take a step before each look after the first; return the lines that each look printed."""
        looks: list[bytes] = []
        waiting = iter(steps)

        def list_paths() -> list[str]:
            if self._has_looked:
                looks.append(self._stdout.getvalue())
                self._stdout.seek(0)
                self._stdout.truncate()
                step = next(waiting, None)
                if step is None:
                    raise KeyboardInterrupt
                step()
            self._has_looked = True
            return paths()

        self._has_looked = False
        with pytest.raises(KeyboardInterrupt):
            DumpFollower(self._options, Output.to_stream(self._stdout), self._stdout, self.findings).run(list_paths)
        return [look.decode().splitlines() for look in looks]


def offsets_of(looks: list[list[str]]) -> list[list[int]]:
    return [[int(line.split()[2]) for line in look if line.startswith("| offset: ")] for look in looks]


def test_a_committed_dump_goes_on_when_transactions_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch, "--deep-iteration", "--isolation-level", "read_committed")
    with logstore.open(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("orders", 1)
        log = store.log("orders", 0)
        log.append_records([b"0"])
        first, second = (store.producer(transactional_id=name) for name in ("first", "second"))

        first.init_transactions()
        second.init_transactions()

        def begin() -> None:
            for producer in (first, second):
                producer.begin_transaction()
                producer.send("orders", b"in a transaction")  # offsets 1, 2
                producer.flush()
            log.append_records([b"3"])

        printed = looks.run(
            lambda: sorted(map(str, (tmp_path / "orders-0").glob("*.log"))),
            begin,
            lambda: None,
            log.roll,
            first.abort_transaction,  # its marker, offset 4, is in another segment; the log of its batch does not grow
            lambda: log.append_records([b"5"]),
            second.commit_transaction,
            lambda: log.append_records([b"7"]),
        )
        assert offsets_of(printed) == [[0], [], [], [], [], [], [2, 3, 5], [7]]
        assert not any(printed[1] + printed[2] + printed[4])
        assert [line for line in printed[6] if line.startswith("Dumping")] == [
            f"Dumping {tmp_path / 'orders-0' / name}.log" for name in (f"{0:020}", f"{4:020}")
        ]
        chunks = log.records(isolation=COMMITTED).chunks()
        expected = [int(offset) for chunk in chunks for offset in chunk.offset]
        assert [offset for look in offsets_of(printed) for offset in look] == expected
        assert looks.told == []


def test_a_dump_of_a_transactional_id_sees_its_next_producer_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch, "--deep-iteration", "--transactional-id", "mine")
    with logstore.open(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("orders", 1)
        owner = store.producer(transactional_id="mine")
        owner.init_transactions()

        def write(value: bytes) -> None:
            owner.begin_transaction()
            owner.send("orders", value)
            owner.commit_transaction()

        def take_a_new_id() -> None:
            """As a coordinator does when the epochs of an id are used up."""
            state = next(iter(store.transactions))
            producer_id = store.next_producer_id()
            changed = state._replace(producer_id=producer_id, producer_epoch=0)
            store.transactions._state_of("mine").replace(changed)
            log = store.log("orders", 0)
            log.append_records([b"new id"], producer_id=producer_id, producer_epoch=0, base_sequence=0)

        write(b"0")
        printed = looks.run(
            lambda: [str(tmp_path / "orders-0" / FIRST)],
            lambda: store.log("orders", 0).append_records([b"2"]),
            take_a_new_id,
        )
    assert offsets_of(printed) == [[0, 1], [], [3]]


def test_what_is_found_in_a_look_is_told_once_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look compared its first record with -1 and kept a finding that nobody ever printed."""
    path = tmp_path / FIRST
    path.write_bytes(batch(0))

    def append(offset: int) -> Callable[[], object]:
        return lambda: path.write_bytes(path.read_bytes() + batch(offset))

    for kind in ("text", "json"):
        looks = Looks(monkeypatch, "--deep-iteration", "--format", kind)
        looks.run(lambda: [str(path)], append(1), append(2), append(5), append(6))
        assert looks.told == [f"Non-consecutive offsets in {path}", "  2 is followed by 5"]
        assert not list(looks.findings.lines())
        path.write_bytes(batch(0))


def test_logs_that_are_deleted_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    lexists = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: looked.append(str(path)) or lexists(path))
    (tmp_path / FIRST).write_bytes(batch(0))
    looks = Looks(monkeypatch)
    looks.run(
        lambda: sorted(map(str, tmp_path.glob("*.log"))),
        lambda: (tmp_path / FIRST).rename(tmp_path / SECOND),
        looked.clear,
        lambda: None,
    )
    assert str(tmp_path / FIRST) not in looked


def test_logs_that_a_cleaner_replaces_go_on_behind_what_was_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, last = (tmp_path / f"{offset:020}.log" for offset in (0, 2, 4))
    for path, offsets in ((first, (0, 1)), (second, (2, 3)), (last, (4,))):
        path.write_bytes(b"".join(map(batch, offsets)))

    def join() -> None:
        """As a cleaner that has kept two records, while the old logs are gone and the new one is not there yet."""
        (tmp_path / "swap").write_bytes(batch(1) + batch(3))
        first.rename(tmp_path / "old")
        second.unlink()

    def roll_and_clean() -> None:
        last.rename(tmp_path / "older")
        last.write_bytes(batch(4) + batch(6))
        (tmp_path / f"{7:020}.log").write_bytes(batch(7))

    looks = Looks(monkeypatch, "--deep-iteration")
    printed = looks.run(
        lambda: sorted(map(str, tmp_path.glob("*.log"))),
        join,
        lambda: (tmp_path / "swap").rename(first),
        roll_and_clean,
        lambda: (tmp_path / f"{7:020}.log").write_bytes(batch(7) + batch(8)),
    )
    assert offsets_of(printed) == [[0, 1, 2, 3, 4], [], [], [6, 7], [8]]


def test_a_log_that_is_cut_at_a_segment_goes_on_with_what_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / FIRST, tmp_path / SECOND
    first.write_bytes(batch(0) + batch(1))
    second.write_bytes(batch(2) + batch(3))

    def cut() -> None:
        second.unlink()
        first.write_bytes(first.read_bytes() + batch(2))

    looks = Looks(monkeypatch, "--deep-iteration")
    printed = looks.run(
        lambda: sorted(map(str, tmp_path.glob("*.log"))), cut, lambda: (tmp_path / f"{3:020}.log").write_bytes(batch(3))
    )
    assert offsets_of(printed) == [[0, 1, 2, 3], [2], [3]]


def test_a_log_that_is_deleted_before_its_turn_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / FIRST, tmp_path / SECOND]
    paths[1].write_bytes(batch(2))
    assert offsets_of(Looks(monkeypatch, "--deep-iteration").run(lambda: list(map(str, paths)))) == [[2]]


def test_a_topic_that_is_deleted_is_not_printed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / FIRST).write_bytes(batch(0))

    def make_anew() -> None:
        directory.rename(tmp_path / "orders-0.0f2a-delete")
        directory.mkdir()
        (directory / FIRST).write_bytes(batch(7))

    looks = Looks(monkeypatch, "--deep-iteration")
    printed = looks.run(lambda: sorted(map(str, tmp_path.glob("*/*.log"))), make_anew)
    assert offsets_of(printed) == [[0], [7]]


def test_a_log_that_begins_with_half_a_batch_has_one_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FIRST
    path.write_bytes(b"")
    printed = Looks(monkeypatch).run(
        lambda: [str(path)], lambda: path.write_bytes(batch(0)[:40]), lambda: path.write_bytes(batch(0))
    )
    assert [len(look) for look in printed] == [2, 0, 1]


def test_a_committed_dump_of_a_damaged_log_says_where_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "orders-0" / FIRST
    path.parent.mkdir()
    damaged = bytearray(batch(1))
    damaged[-1] ^= 1
    path.write_bytes(batch(0) + damaged + batch(2))
    looks = Looks(monkeypatch, "--deep-iteration", "--isolation-level", "read_committed")
    stdout = io.BytesIO()
    with pytest.raises(CorruptRecordError, match="cannot be read to its end"):
        DumpFollower(looks._options, Output.to_stream(stdout), stdout, looks.findings).run(lambda: [str(path)])
    assert stdout.getvalue().count(b"| offset: 0") == 1
    assert stdout.getvalue().count(b"| offset") == 1
