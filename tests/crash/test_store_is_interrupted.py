"""A call of a store fails, wherever that is, and all that follow too: opened again it is whole.

What was answered is there, what was in doubt is there as a whole or not at all, no producer id is given twice, and
nothing lies about that belongs to nobody. `LOGSTORE_CRASH_CASES` times 4 places are tried of some hundreds,
`LOGSTORE_CRASH_SEED` makes a run again. A process that ends before a call is what `store_points` are about.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.client import store as client_store
from logstore.client.store import Store
from logstore.errors import DataDirectoryError, LogstoreError
from tests.crash.store_points import Told, check, opened, work
from tests.support.dice import Dice
from tests.support.sampling import case_count, seed_of
from tests.support.seams import UnsyncedSeam

CASE_COUNT = 4 * case_count("LOGSTORE_CRASH_CASES", sample=1, whole=4)
SEED = seed_of("CRASH")


class FailingSeam(UnsyncedSeam):
    """The real calls up to one, which fails, and all that follow too."""

    def __init__(self, call: int) -> None:
        self.call_count = 0
        self._call = call


def _counted(name: str) -> Any:
    def call(self: FailingSeam, *args: Any) -> Any:
        self.call_count += 1
        if self.call_count >= self._call:
            raise DataDirectoryError("No space left on device", found="disk full")
        return getattr(UnsyncedSeam, name)(self, *args)

    return call


for _name in (
    *("create", "open", "open_at", "write", "truncate", "sync", "rename", "set_modified_ms", "unlink"),
    *("make_directory", "remove_directory", "sync_directory"),
):
    setattr(FailingSeam, _name, _counted(_name))


def worked(root: Path, seam: FailingSeam) -> tuple[Told, bool]:
    """Work until the end or the fault, which leaves no lock behind; whether the work came to its end."""
    told, stores = Told(), list[Store]()

    def open_next() -> Store:
        stores.append(opened(root, seam))
        return stores[-1]

    root.mkdir()
    try:
        work(open_next, told, SEED)
    except LogstoreError:
        for store in stores[-1:]:
            store.directory.directory_lock.release()
        return told, False
    return told, True


def test_a_store_is_whole_after_any_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_store, "_OPEN", set())  # nobody closes those that failed when the process ends
    whole = FailingSeam(10**9)
    assert worked(tmp_path / "whole", whole)[1]
    assert whole.call_count > 200
    dice = Dice(f"{SEED} failing")
    for number in range(CASE_COUNT):
        place = 1 + dice.below(whole.call_count)
        root = tmp_path / f"{number}-{place}"
        try:
            told, is_done = worked(root, FailingSeam(place))
            assert not is_done or place >= whole.call_count
            check(told, root, False)
        except Exception as error:
            error.add_note(f"LOGSTORE_CRASH_SEED={SEED}, failing at call {place} of {whole.call_count}")
            raise
