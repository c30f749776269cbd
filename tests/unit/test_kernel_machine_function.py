"""Where functions in machine code are not to be had, and what `send` does when there is no memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import logstore
from logstore.client import native_send
from logstore.client.record_future import RecordFuture
from logstore.kernels import machine_function, python_layout
from logstore.store.schedule import Schedule

needs_native = pytest.mark.skipif(not native_send.is_usable(), reason="this Python has no `send` in machine code")


class Plain:
    """Has its attributes in a dict."""


def test_slots_are_found_where_they_are() -> None:
    places = [machine_function.place_of_slot(RecordFuture, name) for name in RecordFuture.__slots__]
    assert len(set(places)) == 4
    assert all(place % 8 == 0 and 16 <= place < RecordFuture.__basicsize__ for place in places)
    assert machine_function.place_of_slot(Plain, "name") == -1


@needs_native
def test_other_pythons_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine_function.is_usable()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        assert not machine_function.is_usable()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        assert not machine_function.is_usable()
    with monkeypatch.context() as patch:
        patch.setattr(machine_function, "INTERPRETED", True)
        assert not machine_function.is_usable()
    with monkeypatch.context() as patch:
        patch.setattr(python_layout, "TYPE_PLACE", 0)
        assert not machine_function.is_usable()


@needs_native
def test_a_record_for_which_there_is_no_memory_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the things that it needs cannot be had; without other threads, which would go without as well."""
    hooks = pytest.importorskip("_testcapi")
    monkeypatch.setattr(Schedule, "start", lambda self: None)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("t", 1)
        producer = store.producer(linger_ms=600_000, batch_size=1 << 20)
        producer._accumulator.keep_going = lambda: None
        futures = [producer.send("t", b"first")]
        batch = producer._accumulator.lanes_of("t").of_partition(0).open
        assert batch is not None
        send, value, failed_count = producer.send, b"v" * 1000, 0
        for number in range(600):
            hooks.set_nomemory(number % 5, number % 5 + 1)
            try:
                future = send("t", value)
            except MemoryError:
                future = None
            finally:
                hooks.remove_mem_hooks()
            assert len(batch.values) == len(batch.timestamps)
            if future is None:
                failed_count += 1
            else:
                futures.append(future)
        assert len(futures) == len(batch.values)
        assert failed_count > 100
        producer.flush()
        assert [future.get(0).offset for future in futures] == list(range(len(futures)))
