"""Topics that are compacted and deleted from: the cleaner's turn does both, and puts its own checkpoint right."""

from __future__ import annotations

from pathlib import Path

import pytest

import logstore
from logstore.client.store import Store
from logstore.layout.checkpoint_writing import offset_checkpoint_bytes
from tests.support.clock import DAY_MS, Clock
from tests.support.stores import append_segments, read_checkpoint, run_later

BACKOFF_MS = 15_000  # log.cleaner.backoff.ms
NEVER_CLEANED = {"min.cleanable.dirty.ratio": 1}
POLICIES = [("compact,delete", True), ("compact", False)]


def offsets_of(store: Store) -> list[int]:
    return [record.offset for chunk in store.log("state", 0).records().chunks() for record in chunk.to_records()]


@pytest.mark.parametrize(("policy", "is_deleted_from"), POLICIES)
def test_segments_of_a_compacted_topic_go_by_time(
    policy: str, is_deleted_from: bool, store: Store, clock: Clock
) -> None:
    store.create_topic("state", 1, {**NEVER_CLEANED, "cleanup.policy": policy, "retention.ms": DAY_MS})
    append_segments(store, "state", 3)
    assert "cleaning" in run_later(store, clock, DAY_MS)
    assert offsets_of(store) == [0, 1, 2]
    append_segments(store, "state", 1)
    assert "cleaning" in run_later(store, clock, BACKOFF_MS)
    assert offsets_of(store) == ([3] if is_deleted_from else [0, 1, 2, 3])
    assert store.log("state", 0).log_start_offset == (3 if is_deleted_from else 0)
    assert store.failures == {}


@pytest.mark.parametrize(("policy", "is_deleted_from"), POLICIES)
def test_segments_of_a_compacted_topic_go_by_size(
    policy: str, is_deleted_from: bool, store: Store, clock: Clock
) -> None:
    store.create_topic("state", 1, {**NEVER_CLEANED, "cleanup.policy": policy})
    append_segments(store, "state", 5)
    size = store.log("state", 0).size // 5
    run_later(store, clock, BACKOFF_MS)
    assert offsets_of(store) == [0, 1, 2, 3, 4]
    store.alter_config("state", {"retention.bytes": 2 * size})
    assert "cleaning" in run_later(store, clock, BACKOFF_MS)
    assert offsets_of(store) == ([3, 4] if is_deleted_from else [0, 1, 2, 3, 4])
    assert store.failures == {}


def test_a_log_is_cleaned_before_it_is_deleted_from(store: Store, clock: Clock) -> None:
    """What cleaning leaves fits, so nothing has to go."""
    store.create_topic("state", 1, {"cleanup.policy": "compact,delete"})
    append_segments(store, "state", 9)
    store.alter_config("state", {"retention.bytes": store.log("state", 0).size // 9 * 3})
    run_later(store, clock, BACKOFF_MS)
    assert offsets_of(store) == [6, 7, 8]
    assert store.log("state", 0).log_start_offset == 0


def test_a_checkpoint_below_the_start_of_the_log_is_written_anew(store: Store, clock: Clock) -> None:
    store.create_topic("state", 1, {"cleanup.policy": "compact,delete"})
    append_segments(store, "state", 3)
    run_later(store, clock, BACKOFF_MS)
    assert read_checkpoint(store, "cleaner") == {("state", 0): 3}
    store.alter_config("state", NEVER_CLEANED)
    append_segments(store, "state", 3)
    store.log("state", 0).delete_records(5)
    run_later(store, clock, BACKOFF_MS)
    assert read_checkpoint(store, "cleaner") == {("state", 0): 5}
    assert offsets_of(store) == [5]


def test_a_checkpoint_behind_the_end_of_the_log_is_written_anew(tmp_path: Path, clock: Clock) -> None:
    """As after an unclean end that lost what had been cleaned: new records would never be, until they pass it."""
    with logstore.open(tmp_path, now_ms=clock) as store:
        store.create_topic("state", 1, {**NEVER_CLEANED, "cleanup.policy": "compact"})
        append_segments(store, "state", 3)
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(offset_checkpoint_bytes({("state", 0): 9}))
    with logstore.open(tmp_path, now_ms=clock) as store:
        store.log("state", 0)
        run_later(store, clock, BACKOFF_MS)
        assert read_checkpoint(store, "cleaner") == {("state", 0): 0}
        assert store.failures == {}
