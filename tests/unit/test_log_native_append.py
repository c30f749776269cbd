"""`append_records` in machine code: what it takes, what it leaves to the method, and that it does as that does.

That both ways are the same to the byte `tests/properties/test_quick_append.py` asks.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore import clock
from logstore.disk.seam import Seam
from logstore.errors import KafkaStorageError, UsageError
from logstore.kernels import append_slots, machine_function
from logstore.log import native_append
from logstore.log.append_info import AppendInfo
from logstore.log.config import parse_config
from logstore.log.loader import LoadSettings
from logstore.log.log_appends import LogAppends
from logstore.log.partition_log import PartitionLog

pytestmark = pytest.mark.skipif(not machine_function.is_usable(), reason="this Python has no functions in machine code")
PRODUCER: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}


class CountingSeam(Seam):
    """The system's write, or what stands in its place for a test."""

    def __init__(self, write: Callable[[int, bytes], int] = os.write) -> None:
        self.write_count = 0
        self.put(write)

    def put(self, write: Callable[[int, bytes], int]) -> None:
        """What the kernels call from the next segment on."""

        def counted(descriptor: int, data: int, size: int) -> int:
            self.write_count += 1
            return write(descriptor, ctypes.string_at(data, size))

        self._write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(counted)

    def write_address(self) -> int:
        return ctypes.cast(self._write, ctypes.c_void_p).value or 0


def opened(path: Path, config: dict[str, str] | None = None, **more: Any) -> Any:
    """A log to which a record was appended the long way, and one the quick way."""
    settings = LoadSettings(
        was_clean=True, recovery_point=0, log_start_offset=0, now_ms=1000, config=parse_config(config or {})
    )
    path.mkdir(exist_ok=True)
    log = PartitionLog.open(
        str(path / "t-0"), settings, **{"now_ms": lambda: 1000, "requires_verification": False, **more}
    )
    for sequence in range(2):
        log.append_records([b"v"], base_sequence=sequence, **PRODUCER)
    return log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    log = opened(tmp_path)
    yield log
    log.close()


def without_python(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything fail that is not done in machine code."""
    monkeypatch.setattr(log.quick, "append", None)
    monkeypatch.setattr(log.quick, "_answer", None)


def test_the_common_append_is_done_without_python(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    without_python(log, monkeypatch)
    info = log.append_records([b"w", None], base_sequence=2, **PRODUCER)
    assert (type(info), info) == (AppendInfo, AppendInfo(2, 3, 1000, -1, 0, 2, False))
    assert type(info.is_duplicate) is bool
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (4, 4, 4)
    assert log.active.size == log.size == os.stat(log.active.path(".log")).st_size
    assert log.append_records([b"x"], [b"k"], [990]) == AppendInfo(4, 4, 990, -1, 0, 1, False)
    assert log.append_records(values=[b"x"], timestamps=None, keys=None, guard=None, is_transactional=False)[0] == 5
    with pytest.raises(TypeError):
        log.append_records([b"x"], is_transactional=True, base_sequence=4, **PRODUCER)


def test_the_time_of_an_append_to_a_topic_of_log_append_time_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path, {"message.timestamp.type": "LogAppendTime"})
    without_python(log, monkeypatch)
    assert log.append_records([b"w"], None, [5]) == AppendInfo(2, 2, 1000, 1000, 0, 1, False)
    log.close()


def test_the_clock_is_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(tmp_path, {"segment.ms": str(1 << 62)})
    without_python(log, monkeypatch)
    monkeypatch.setattr(log, "now_ms", lambda: 1234)
    assert log.append_records([b"w"]).max_timestamp == 1234
    before = clock.now_ms()
    monkeypatch.setattr(log, "now_ms", clock.now_ms)
    assert before <= log.append_records([b"w"]).max_timestamp <= clock.now_ms()
    log.close()


def test_a_clock_that_fails_fails_the_append_and_the_lock_is_let_go(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log, "now_ms", stopped)
        with pytest.raises(KeyboardInterrupt):
            log.append_records([b"w"])
    thread = threading.Thread(target=log.append_records, args=([b"w"],))
    thread.start()
    thread.join(10)
    assert log.log_end_offset == 3


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        (((b"v",),), {}),
        (([b"v"], None, [np.int64(1000)]), {"producer_id": np.int64(5), "producer_epoch": 0, "base_sequence": 2}),
        (([b"v"],), {"producer_id": 5, "producer_epoch": False, "base_sequence": 2, "leader_epoch": 0}),
        (([b"v"],), {"producer_id": 5, "producer_epoch": 0, "base_sequence": 2, "is_transactional": True}),
        (([b"v"],), {"is_transactional": None}),
        (([b"v"],), {"leader_epoch": 1}),
    ],
)
def test_what_is_not_for_it_is_done_by_the_method(log: PartitionLog, columns: Any, fields: dict[str, Any]) -> None:
    assert log.append_records(*columns, **fields).last_offset == 2
    assert log.append_records([b"next"], leader_epoch=fields.get("leader_epoch", 0)).last_offset == 3


@pytest.mark.parametrize(
    ("columns", "fields", "text"),
    [
        ((), {}, "missing 1 required positional argument: 'values'"),
        (([b"v"], None, None, 5), {}, "takes from 2 to 4 positional arguments"),
        (([b"v"],), {"values": [b"v"]}, "got multiple values for argument 'values'"),
        (([b"v"],), {"vlaues": [b"v"]}, "got an unexpected keyword argument 'vlaues'"),
    ],
)
def test_wrong_calls_are_told_of_as_by_the_method(log: PartitionLog, columns: Any, fields: Any, text: str) -> None:
    with pytest.raises(TypeError) as error:
        log.append_records(*columns, **fields)
    assert text in str(error.value)


def test_numbers_beyond_64_bits_are_refused_in_words(log: PartitionLog) -> None:
    with pytest.raises(UsageError, match="producer_id has no room in a batch"):
        log.append_records([b"v"], producer_id=2**63, producer_epoch=0, base_sequence=1)
    assert log.append_records([b"v"]).last_offset == 2


def test_what_the_log_is_for_others_is_asked_each_time(log: PartitionLog) -> None:
    log.is_only_replica = False
    assert log.append_records([b"v"]).last_offset == 2
    assert (log.log_end_offset, log.high_watermark) == (3, 2)
    log.is_only_replica = True
    assert log.append_records([b"v"], base_sequence=2, is_transactional=True, **PRODUCER).last_offset == 3
    assert log.append_records([b"v"]).last_offset == 4
    assert (log.high_watermark, log.first_unstable_offset, log.last_stable_offset) == (5, 3, 3)
    log.append_end_transaction(5, 0, is_commit=True, coordinator_epoch=0, transaction_version=0)
    assert log.append_records([b"v"]).last_offset == 6
    assert log.increment_log_start_offset(4)
    assert [log.append_records([b"v"]).log_start_offset for _ in range(3)] == [4, 4, 4]


def test_while_a_producer_is_verified_nothing_else_is_quick(log: PartitionLog) -> None:
    log.producers.state.requires_verification = True
    guard = log.begin_verification(8, sequence=0, producer_epoch=0, supports_epoch_bump=True)
    assert guard is not None
    size = log.active.size
    log.append_records([b"v"])
    assert log.active.size > size
    producer: dict[str, Any] = {"producer_id": 8, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    assert log.append_records([b"v"], guard=guard, **producer).last_offset == 3


def test_a_flush_that_is_due_is_done(tmp_path: Path) -> None:
    log = opened(tmp_path, {"flush.messages": "3"})
    points = []
    for _ in range(7):
        log.append_records([b"v"])
        points.append(log.recovery_point)
    assert points == [3, 3, 3, 6, 6, 6, 9]
    log.close()


@pytest.mark.parametrize("taken", [-1, 0, 30])
def test_what_the_system_did_not_write_is_written_after_it(tmp_path: Path, taken: int) -> None:
    seam = CountingSeam(lambda descriptor, data: os.write(descriptor, data[:taken]) if taken >= 0 else -1)
    log = opened(tmp_path, seam=seam)
    assert log.append_records([b"w"], base_sequence=2, **PRODUCER) == AppendInfo(2, 2, 1000, -1, 0, 1, False)
    assert (seam.write_count, log.active.size, os.stat(log.active.path(".log")).st_size) == (2, 207, 207)
    assert log.append_records([b"w"], base_sequence=3, **PRODUCER).last_offset == 3
    log.close()


def test_a_log_without_a_function_to_write_by_is_written_by_the_method(log: PartitionLog) -> None:
    log.active.file[append_slots.WRITE_ADDRESS] = 0
    assert log.append_records([b"w"]).last_offset == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is there on Linux only")
def test_a_write_that_fails_ends_the_writing(log: PartitionLog) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log.active._descriptor)
    os.close(full)
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0") as refused:
        log.append_records([b"w"], base_sequence=2, **PRODUCER)
    assert refused.value.found == "No space left on device"
    assert (log.log_end_offset, log.high_watermark, log.active.size) == (2, 2, 138)
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.append_records([b"w"])


def test_the_lock_is_held_while_the_system_writes_and_offsets_are_seen_when_it_has(tmp_path: Path) -> None:
    seen: list[Any] = []

    def write(descriptor: int, data: bytes) -> int:
        thread = threading.Thread(target=lambda: seen.append((log.lock.acquire(blocking=False), log.log_end_offset)))
        thread.start()
        thread.join()
        return os.write(descriptor, data)

    seam = CountingSeam()
    log = opened(tmp_path, seam=seam)
    seam.put(write)
    log.roll()
    for _ in range(3):
        log.append_records([b"w"])
    assert seen == [(False, 2 + number) for number in range(len(seen))]
    assert len(seen) >= 2
    log.close()


def test_threads_append_one_after_the_other(tmp_path: Path) -> None:
    log = opened(tmp_path)
    infos: list[list[AppendInfo]] = [[] for _ in range(4)]

    def append(number: int) -> None:
        for sequence in range(300):
            values = [b"v"] * (1 + sequence % 3)
            infos[number].append(log.append_records(values, base_sequence=-1))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranges = sorted((info.first_offset, info.last_offset) for each in infos for info in each)
    assert [first for first, _ in ranges] == [2, *(last + 1 for _, last in ranges[:-1])]
    assert log.log_end_offset == ranges[-1][1] + 1 == 2 + 4 * 600
    log.close()


def test_without_memory_a_batch_is_there_or_the_log_is_as_it_was(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = pytest.importorskip("_testcapi")
    failed_count = 0
    append, values = log.append_records, [b"v" * 20]
    for number in range(300):
        end_offset = log.log_end_offset
        hooks.set_nomemory(number % 12, number % 12 + 1)
        try:
            info = append(values)
        except MemoryError:
            info = None
        finally:
            hooks.remove_mem_hooks()
        failed_count += info is None
        assert log.log_end_offset - end_offset in ((0, 1) if info is None else (1,))
        assert log.active.size == os.stat(log.active.path(".log")).st_size
        assert log.quick._slots[append_slots.LOG_END_OFFSET] == log.log_end_offset == log.high_watermark
        assert log.failure is None
    assert failed_count > 50


def test_help_shows_the_method(log: PartitionLog) -> None:
    shown = inspect.signature(log.append_records)
    assert list(shown.parameters) == list(inspect.signature(LogAppends.append_records).parameters)[1:]
    assert (log.append_records.__name__, inspect.getdoc(log.append_records)) == (
        "append_records",
        inspect.getdoc(LogAppends.append_records),
    )


def test_other_pythons_and_other_methods_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(self: PartitionLog, *columns: Any, **fields: Any) -> AppendInfo:
        counts.append(1)
        return LogAppends.append_records(self, *columns, **fields)

    counts: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "append_records", counted)
        other = opened(tmp_path / "other")
        other.append_records([b"v"])
        other.close()
    assert len(counts) == 3
    taken = opened(tmp_path / "taken")
    method = taken.append_records
    assert type(method) is type(len)
    taken.close()
    monkeypatch.setattr(native_append, "_has_functions", lambda: False)
    plain = opened(tmp_path / "plain")
    assert "append_records" not in vars(plain)
    assert plain.append_records([b"v"]).last_offset == 2
    plain.close()


def test_what_is_put_in_the_place_of_the_method_stays(tmp_path: Path) -> None:
    settings = LoadSettings(was_clean=True, recovery_point=0, log_start_offset=0, now_ms=1000, config=parse_config({}))
    log = PartitionLog.open(str(tmp_path / "t-0"), settings, requires_verification=False)
    method = log.append_records
    log.append_records = lambda *columns: method(*columns)  # type: ignore[assignment,method-assign,misc]
    mine = log.append_records
    for _ in range(3):
        log.append_records([b"v"])
    assert log.append_records is mine
    log.close()
