"""What is at each offset of a partition, by one pass and by asking each offset; markers by slices and all at once."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logstore.audit import lives
from logstore.audit.directory_audit import audit_directory
from logstore.audit.facts.offsets import Label
from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from tests.support.audit_story import Story
from tests.support.audit_story_faults import FAULTS
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec
from tests.support.offset_ranges import each_range
from tests.support.sampling import sampled

NOT_THERE = {Label.COMPACTED, Label.LOST}


@st.composite
def logs(draw: st.DrawFn) -> list[list[Batch]]:
    """The batches of some segments: data of few producers and of none, markers, holes before batches and in them."""
    offset, segments = draw(st.integers(0, 3)), []
    for _ in range(draw(st.integers(1, 4))):
        batches = []
        for _ in range(draw(st.integers(1, 8))):
            offset += draw(st.sampled_from([0, 0, 0, 2]))
            batch = draw(st.sampled_from([_plain, _data, _data, _marker]))(draw)
            batches.append(replace(batch, base_offset=offset))
            offset += batch.last_offset_delta + 1
        segments.append(batches)
    return segments


def _data(draw: st.DrawFn) -> Batch:
    return replace(_plain(draw), flags=TRANSACTIONAL, producer_id=draw(st.integers(1, 3)), producer_epoch=0)


def _plain(draw: st.DrawFn) -> Batch:
    span = draw(st.integers(1, 3))
    deltas = sorted(draw(st.sets(st.integers(0, span - 1), min_size=1)))
    return Batch(0, [Rec(value=b"v", offset_delta=delta) for delta in deltas], last_offset_delta=span - 1)


def _marker(draw: st.DrawFn) -> Batch:
    record = Rec(key=struct.pack(">hh", 0, draw(st.integers(0, 1))), value=struct.pack(">hi", 0, 0))
    producer_id = draw(st.integers(1, 3))
    return Batch(0, [record], flags=TRANSACTIONAL | CONTROL, producer_id=producer_id, producer_epoch=0)


def asked_one_by_one(batches: list[Batch]) -> dict[int, Label]:
    labels = {}
    for row, batch in enumerate(batches):
        label = Label.COMMITTED
        if batch.flags & CONTROL:
            label = Label.CONTROL
        elif batch.flags:
            ends = (one for one in batches[row:] if one.flags & CONTROL and one.producer_id == batch.producer_id)
            end = next(ends, None)
            is_commit = end is not None and end.records[0].key == struct.pack(">hh", 0, 1)
            label = Label.OPEN if end is None else Label.COMMITTED if is_commit else Label.ABORTED
        labels |= {batch.base_offset + delta: label for delta in range(batch.last_offset_delta + 1)}
    return labels


@given(segments=logs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ranges_say_what_is_at_each_offset(
    segments: list[list[Batch]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("ranges") / "t-0"
    directory.mkdir()
    for segment in segments:
        path = directory / f"{segment[0].base_offset:020d}.log"
        path.write_bytes(b"".join(batch.to_bytes() for batch in segment))
    batches = [batch for segment in segments for batch in segment]
    ranges = list(each_range(verify_partition(open_partition(str(directory))).ranges))
    assert [one.start for one in ranges] == [0, *(one.end for one in ranges)][:-1]
    expected = asked_one_by_one(batches)
    found = {offset: one.label for one in ranges for offset in range(one.start, one.end)}
    assert {offset: label for offset, label in found.items() if offset in expected} == expected
    assert {label for offset, label in found.items() if offset not in expected} <= {*NOT_THERE, Label.RETENTION}
    counts = Counter(expected[batch.base_offset] for batch in batches for _ in batch.records)
    assert counts == Counter({one.label: 0 for one in ranges}) + Counter(
        label for one in ranges for label in [one.label] * one.record_count
    )
    for before, one in pairwise(ranges):
        is_full = all(each.record_count == each.end - each.start for each in (before, one))
        assert not (before.label is one.label and (is_full or before.record_count == one.record_count == 0))


@pytest.mark.parametrize("size", sampled([1, 3], [3], pytest.mark.slow))
def test_markers_by_slices_tell_what_all_at_once_tell(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stories: list[Story] = [make() for makers in FAULTS.values() for make in makers]
    roots = [(story.write(tmp_path / str(number)), story) for number, story in enumerate(stories)]
    told = [set(audit_directory(str(root), story.now_ms).findings) for root, story in roots]
    monkeypatch.setattr(lives, "SLICE_SIZE", size)
    assert [set(audit_directory(str(root), story.now_ms).findings) for root, story in roots] == told
    assert sum(map(len, told)) > len(stories) // 2
