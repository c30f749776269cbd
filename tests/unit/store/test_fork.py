"""The child of a fork does not hold the lock of the directory that its parent has open, and leaves the files alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import logstore
from logstore.layout.clean_shutdown import FILE_NAME

_BEGIN = """
import multiprocessing, os, sys, threading
import logstore
from logstore.errors import DataDirectoryError, KafkaStorageError

path = sys.argv[1]
store = logstore.open(path)
store.create_topic("t", partitions=1)
log = store.log("t", 0)
for number in range(3):  # the third takes the quick way
    log.append_records([b"before %d" % number])
producer, lingering = store.producer(), store.producer(linger_ms=60_000)
producer.send("t", b"sent")
producer.flush()
pending = lingering.send("t", b"lingering")

def raised(*calls):
    for call in calls:
        try:
            call()
        except (DataDirectoryError, KafkaStorageError) as error:
            assert "opened by another process" in str(error), error
        else:
            raise AssertionError(call)

def in_child(what):
    child = os.fork()
    if child == 0:
        try:
            what()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def writing():
    raised(
        lambda: log.append_records([b"child"]),
        lambda: log.append_end_transaction(1, 0, is_commit=True, coordinator_epoch=0, transaction_version=2),
        log.roll,
        log.flush,
        lambda: log.delete_records(-1),
        lambda: producer.send("t", b"child"),
        lambda: lingering.send("t", b"child"),
        lingering.flush,
        lambda: store.create_topic("child"),
        store.next_producer_id,
        store.run_due,
        lambda: store.log("t", 0),
        lambda: store.groups.commit(logstore.ConsumerGroupMetadata("group"), {}) or store.log("t", 0),
    )
    log.close()
    lingering.close()
    with store, producer:
        pass
"""
_END = """
log.append_records([b"after"])
lingering.flush()
store.close()
"""


def run(path: Path, middle: str, end: str = _END) -> None:
    done = subprocess.run(
        [sys.executable, "-Wignore::DeprecationWarning", "-c", _BEGIN + middle + end, str(path)],
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def values(path: Path) -> list[bytes | None]:
    assert (path / FILE_NAME).exists()
    with logstore.open(path) as store:
        assert sorted(store.topics) == ["t"]
        chunks = store.log("t", 0).records().chunks()
        return [record.value for chunk in chunks for record in chunk.to_records()]


_ALL = [b"before 0", b"before 1", b"before 2", b"sent", b"after", b"lingering"]


@pytest.mark.parametrize(
    "middle",
    [
        "in_child(writing)",
        "child = multiprocessing.get_context('fork').Process(target=writing)\n"
        "child.start(); child.join(); assert child.exitcode == 0",
        "in_child(lambda: in_child(writing))",
    ],
    ids=["fork", "multiprocessing", "grandchild"],
)
def test_writes_of_a_forked_child_are_refused_and_the_parent_loses_nothing(tmp_path: Path, middle: str) -> None:
    run(tmp_path, middle)
    assert values(tmp_path) == _ALL


def test_a_child_that_ends_in_order_leaves_the_files_and_the_lock(tmp_path: Path) -> None:
    middle = """
def files():
    return {name: os.stat(os.path.join(path, name)).st_mtime_ns for name in sorted(os.listdir(path))}

before = files()
child = os.fork()
if child == 0:
    sys.exit()  # with what `atexit` does
assert os.waitpid(child, 0)[1] == 0
assert files() == before

def opening():
    try:
        logstore.open(path)
    except DataDirectoryError as error:
        assert "Failed to acquire lock" in str(error)
    else:
        raise AssertionError

in_child(opening)
"""
    run(tmp_path, middle)
    assert values(tmp_path) == _ALL


def test_a_child_does_not_wait_for_locks_that_threads_of_its_parent_held(tmp_path: Path) -> None:
    middle = """
is_held, is_done = threading.Event(), threading.Event()

def hold():
    with store.directory.lock, log.lock, store._clients_lock, store.directory._timers._lock, lingering._buffer.mutex:
        is_held.set()
        is_done.wait(60)

thread = threading.Thread(target=hold)
thread.start()
is_held.wait()

in_child(writing)
is_done.set()
thread.join()
"""
    run(tmp_path, middle)
    assert values(tmp_path) == _ALL


@pytest.mark.slow
def test_a_child_has_no_member_and_no_transaction_of_its_parent(tmp_path: Path) -> None:
    """A heartbeat wrote nothing, so it succeeded; and locks of the coordinators were held for ever."""
    middle = """
from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import Joining
from logstore.coordinator.groups.membership import ConsumerGroupMetadata

store.groups.join("g", Joining(member_id="m", topics=("t",), assignors=ASSIGNORS))
member = ConsumerGroupMetadata("g", store.groups.sync("g", "m").generation, "m")
identity = store.transactions.init_producer_id("x", 1000)
is_held, is_done = threading.Event(), threading.Event()

def hold():
    with store.groups._partition_of("g").lock, store.transactions._state_of("x")._lock:
        is_held.set()
        is_done.wait(60)

thread = threading.Thread(target=hold)
thread.start()
is_held.wait()
in_child(lambda: raised(
    lambda: store.groups.heartbeat(member),
    lambda: store.transactions.end_transaction("x", identity, is_commit=False),
))
is_done.set()
thread.join()
store.groups.heartbeat(member)
store.groups.leave("g", "m")
store.groups.delete("g")
"""
    run(tmp_path, middle, end="lingering.flush(); store.close()")
    with logstore.open(tmp_path) as store:
        assert [one.transactional_id for one in store.transactions] == ["x"]
        assert list(store.groups.group_ids()) == []


@pytest.mark.slow
def test_a_child_opens_the_directory_anew_when_its_parent_has_closed_it(tmp_path: Path) -> None:
    middle = """
reader, writer = os.pipe()

def opening():
    os.read(reader, 1)
    with logstore.open(path) as again:
        store.close()
        again.log("t", 0).append_records([b"after"])
        raised(lambda: log.append_records([b"child"]))
        assert os.system(f"{sys.executable} -c 'import logstore; logstore.open({path!r})' 2>/dev/null") != 0

child = os.fork()
if child == 0:
    opening()
    os._exit(0)
lingering.flush()
store.close()
os.write(writer, b"x")
assert os.waitpid(child, 0)[1] == 0
"""
    run(tmp_path, middle, end="")
    assert values(tmp_path) == [*_ALL[:4], b"lingering", b"after"]


def test_a_child_waits_for_no_record_of_its_parent(tmp_path: Path) -> None:
    middle = """
future = lingering.send("t", b"of the parent")
consumer = store.consumer("t", auto_offset_reset="earliest")
next(consumer)
in_child(lambda: raised(future.get, lambda: future.get(60), lambda: consumer.poll(600_000), lambda: next(consumer)))
in_child(consumer.close)
lingering.flush()
assert future.get().offset >= 0
"""
    run(tmp_path, middle)
    assert b"of the parent" in values(tmp_path)
