"""A coordinator that reads its log again knows what the one that wrote it knew."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from logstore.coordinator.groups.offsets import GroupOffsets, OffsetAndMetadata, commit_records, encode_records
from logstore.errors import UnstableOffsetCommitError
from logstore.topics import consumer_offsets
from tests.properties.coordinator_author import Author
from tests.properties.coordinator_rehearsal import Rehearsal


def settle(rehearsal: Rehearsal) -> None:
    """Write all that waits to be written."""
    while rehearsal.appends or rehearsal.completions:
        for name in list(rehearsal.appends):
            rehearsal.step({"do": "written", "id": name})
        for name in list(rehearsal.completions):
            current = rehearsal.table.get(name)
            assert current is not None
            for topic, partition in sorted(current.partitions):
                rehearsal.step({"do": "marker", "id": name, "topic": topic, "partition": partition})
            rehearsal.step({"do": "complete", "id": name})


def logged(rows: list[list[Any]], version: int) -> list[list[Any]]:
    """What the log keeps of each row: not the epoch before the last; of version 0 still less."""
    kept = [[*row[:5], -1, *row[6:]] for row in rows]
    return kept if version else [[*row[:2], -1, -1, *row[4:11], 0, *row[12:]] for row in kept]


@given(seed=st.integers(0, 2**32))
def test_a_restart_changes_nothing_that_was_settled(seed: int) -> None:
    author = Author(random.Random(seed))
    author.write()
    rehearsal = author.rehearsal
    settle(rehearsal)
    before = rehearsal.known()
    rehearsal.step({"do": "restart"})
    after = rehearsal.known()
    assert logged(after, author.version) == logged(before, author.version)
    assert all(row[7] in ("EMPTY", "ONGOING", "COMPLETE_COMMIT", "COMPLETE_ABORT") for row in after)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["commit", "transactional", "tombstone", "marker"]),
        st.sampled_from(["g", "h"]),
        st.integers(0, 2),
        st.integers(1, 3),
        st.booleans(),
    ),
    max_size=30,
)


def offsets_of(offsets: GroupOffsets) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for group in ("g", "h"):
        for partition in (("t", 0), ("t", 1), ("t", 2)):
            for is_stable in (False, True):
                try:
                    found[group, partition, is_stable] = offsets.fetch(group, partition, require_stable=is_stable)
                except UnstableOffsetCommitError:
                    found[group, partition, is_stable] = "unstable"
    return found


@given(steps=STEPS)
def test_offsets_come_back_from_their_records(steps: list[tuple[str, str, int, int, bool]]) -> None:
    offsets = GroupOffsets()
    log: list[tuple[int, bytes, bytes | None, bool]] = []
    for kind, group, partition, producer_id, is_commit in steps:
        at = len(log)
        if kind == "marker":
            offsets.replay_marker(producer_id, is_commit=is_commit)
            log.append((producer_id, b"", None, is_commit))
        elif kind == "tombstone":
            for key in [one for one in offsets.tombstones(group) if one.partition == partition]:
                offsets.replay(key, None, record_offset=at)
                log.append((-1, consumer_offsets.encode_key(key), None, False))
        else:
            commits = {("t", partition): OffsetAndMetadata(at, metadata="é")}
            records = commit_records(group, commits, now_ms=at)
            pid = producer_id if kind == "transactional" else -1
            offsets.replay(*records[0], record_offset=at, producer_id=pid)
            [(key_bytes, value_bytes)] = encode_records(records)
            log.append((pid, key_bytes, value_bytes, False))
    again = GroupOffsets()
    for at, (pid, key_bytes, logged_value, is_commit) in enumerate(log):
        if not key_bytes:
            again.replay_marker(pid, is_commit=is_commit)
            continue
        key_read = consumer_offsets.decode_key(key_bytes)
        value_read = consumer_offsets.decode_value(key_read, logged_value)
        assert isinstance(key_read, consumer_offsets.OffsetKey)
        assert value_read is None or isinstance(value_read, consumer_offsets.CommittedOffset)
        again.replay(key_read, value_read, record_offset=at, producer_id=pid)
    assert offsets_of(again) == offsets_of(offsets)
    assert sorted(again.groups()) == sorted(offsets.groups())
