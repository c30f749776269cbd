"""A store is stopped before a system call, or one of its calls fails, wherever that is: opened again it is whole.

What was answered is there, what was in doubt is there as a whole or not at all, no producer id is given twice, and
nothing lies about that belongs to nobody. `LOGSTORE_CRASH_CASES` times 8 places are tried of some hundreds,
`LOGSTORE_CRASH_SEED` makes a run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from logstore.client.store import Store, open_store
from logstore.errors import DataDirectoryError, LogstoreError
from logstore.store.timers import Timers
from tests.support.dice import Dice
from tests.support.sampling import case_count, seed_of
from tests.support.seams import UnsyncedSeam

CASE_COUNT = 8 * case_count("LOGSTORE_CRASH_CASES", sample=1, whole=4)
SEED = seed_of("CRASH")
NOW = 1_700_000_000_000


class Stopped(BaseException):
    """The process is gone."""


class Interrupting(UnsyncedSeam):
    """The real calls up to one, before which the process ends, or which fails and all that follow too."""

    def __init__(self, call: int, fault: Callable[[], BaseException]) -> None:
        self.call_count = 0
        self._call, self._fault = call, fault


def _counted(name: str) -> Any:
    def call(self: Interrupting, *args: Any) -> Any:
        self.call_count += 1
        if self.call_count >= self._call:
            raise self._fault()
        return getattr(UnsyncedSeam, name)(self, *args)

    return call


for _name in (
    *("create", "open", "open_at", "write", "truncate", "sync", "rename", "set_modified_ms", "unlink"),
    *("make_directory", "remove_directory", "sync_directory"),
):
    setattr(Interrupting, _name, _counted(_name))


@dataclass
class Told:
    """What the store had answered, and what it was asked last."""

    topics: dict[str, int] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    flushed: dict[str, int] = field(default_factory=dict)
    producer_ids: list[int] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)
    is_closed: bool = False


def opened(root: Path, seam: UnsyncedSeam) -> Store:
    return open_store(str(root), config={}, now_ms=lambda: NOW, progress=None, seam=seam)


def work(store: Store, told: Told) -> None:
    """Everything that a store can be asked, each step noted before and behind it."""
    for name, count in (("a", 2), ("b", 1), ("c", 1)):
        told.doubtful = {name}
        store.create_topic(name, count, {"retention.ms": 1})
        told.topics[name] = count
        told.configs[name] = "1"
    told.doubtful = set()
    store.log("a", 1).append_records([b"1", b"2"])
    store.log("a", 1).flush()
    told.flushed["a"] = 2
    for _ in range(3):
        told.producer_ids.append(store.next_producer_id())
    for name in ("b", "a"):
        told.doubtful = {name}
        told.topics.pop(name)
        store.delete_topic(name)
        told.flushed.pop(name, None)
    told.doubtful = {"c"}
    told.topics.pop("c")
    store.add_partitions("c", 3)
    told.topics["c"] = 3
    told.doubtful = set()
    store.alter_config("c", {"retention.ms": 2})
    told.configs["c"] = "2"


def story(root: Path, seam: Interrupting) -> Told:
    """Work until the end or the fault, in a store that is opened twice; no lock is left behind."""
    told = Told()
    store = None
    try:
        store = opened(root, seam)
        work(store, told)
        store.close()
        store = opened(root, seam)
        told.producer_ids.append(store.next_producer_id())
        store.close()
        told.is_closed = True
    except (Stopped, LogstoreError):
        if store is not None:
            store.directory.directory_lock.release()
    return told


def check(root: Path, told: Told) -> None:
    with opened(root, UnsyncedSeam()) as store:
        found = {name: topic.partition_count for name, topic in store.topics.items()}
        assert {name: count for name, count in found.items() if name not in told.doubtful} == told.topics
        assert store.stray_directories == ()
        for name, topic in store.topics.items():
            assert topic.config["retention.ms"] in (told.configs.get(name, "1"), "2")
            for number in range(topic.partition_count):
                assert store.log(name, number).topic_id == topic.topic_id
        for name, count in told.flushed.items():
            assert name not in found or store.log(name, 1).log_end_offset == count
        assert store.next_producer_id() not in told.producer_ids
        live = {path.name for path in root.iterdir() if path.is_dir() and not path.name.endswith("-delete")}
        partitions = {f"{name}-{number}" for name, count in found.items() for number in range(count)}
        assert live == {"__cluster_metadata-0", *partitions}
    assert (root / ".kafka_cleanshutdown").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # threads that close logs stop too
@pytest.mark.parametrize("kind", ["stopped", "failing"])
def test_a_store_is_whole_after_any_interruption(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timers, "start", lambda self: None)
    fault = Stopped if kind == "stopped" else lambda: DataDirectoryError("No space left on device", found="disk full")
    whole = Interrupting(10**9, fault)
    assert story(tmp_path / "whole", whole).is_closed
    assert whole.call_count > 200
    dice = Dice(f"{SEED} {kind}")
    for number in range(CASE_COUNT // 2):
        place = 1 + dice.below(whole.call_count)
        root = tmp_path / f"{number}-{place}"
        try:
            told = story(root, Interrupting(place, fault))
            assert not told.is_closed or place >= whole.call_count
            check(root, told)
        except Exception as error:
            error.add_note(f"LOGSTORE_CRASH_SEED={SEED}, {kind} at call {place} of {whole.call_count}")
            raise
