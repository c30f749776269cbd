"""Which batch of an index a pass over a segment begins at."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from logstore.disk.directory import SegmentFiles
from logstore.view.batch_search import IndexedBatch, indexed_batch
from tests.support.encoder import Batch, Rec

BATCHES = [Batch(3 * number, [Rec(value=b"v")] * 3, 2).to_bytes() for number in range(200)]
SIZE = len(BATCHES[0])
APPENDED = {20: 3 * 60 - 1, 60: 3 * 61 - 1, 61: 3 * 200 - 1}  # first batch of an append, and its last offset


def segment_of(directory: Path, entries: dict[int, int]) -> SegmentFiles:
    log, index = directory / f"{0:020d}.log", directory / f"{0:020d}.index"
    log.write_bytes(b"".join(BATCHES))
    index.write_bytes(b"".join(struct.pack(">ii", last, SIZE * first) for first, last in entries.items()))
    return SegmentFiles(0, str(log), str(index), None, None)


@pytest.mark.parametrize(("offset", "first"), [(None, 61), (599, 61), (598, 60), (182, 60), (181, 20), (179, 20)])
def test_an_entry_of_an_append_of_several_batches_leads_to_its_first(
    offset: int | None, first: int, tmp_path: Path
) -> None:
    found = indexed_batch(segment_of(tmp_path, APPENDED), offset)
    assert found == IndexedBatch(3 * first, SIZE * first)


def test_offsets_below_the_end_of_the_first_append_have_no_entry(tmp_path: Path) -> None:
    assert indexed_batch(segment_of(tmp_path, APPENDED), 178) is None


@pytest.mark.parametrize(
    "entries",
    [
        {20: 3 * 60 - 2},  # within a batch
        {20: 3 * 201 - 1},  # behind the end of the log
        {20: 3 * 20 - 1},  # of the batch before
        {20: 3 * 61 - 1, 60: 3 * 62 - 1},  # behind the next entry's position
    ],
    ids=str,
)
def test_an_entry_whose_offset_ends_no_batch_up_to_the_next_entry_is_not_believed(
    entries: dict[int, int], tmp_path: Path
) -> None:
    assert indexed_batch(segment_of(tmp_path, entries), entries[20]) is None


def test_an_entry_that_leads_into_a_batch_is_not_believed(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, {})
    assert segment.offset_index is not None
    Path(segment.offset_index).write_bytes(struct.pack(">ii", 3 * 60 - 1, 20 * SIZE + 1))
    assert indexed_batch(segment) is None
