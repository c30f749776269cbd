"""What the Java consumer does with one fetch, batch after batch: a heap of transactions to come, a set of producers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Seen(NamedTuple):
    """What the consumer looks at in a batch."""

    last_offset: int
    producer_id: int
    is_transactional: bool
    is_abort_marker: bool


def skipped(batches: Iterable[Seen], aborted: Iterable[tuple[int, int]]) -> Iterator[bool]:
    """Whether each batch is skipped; `aborted` are (producer id, first offset)."""
    to_come = [(first_offset, producer_id) for producer_id, first_offset in aborted]
    heapq.heapify(to_come)
    aborted_producer_ids: set[int] = set()
    for batch in batches:
        is_skipped = False
        if batch.producer_id > -1:
            while to_come and to_come[0][0] <= batch.last_offset:
                aborted_producer_ids.add(heapq.heappop(to_come)[1])
            if batch.is_abort_marker:
                aborted_producer_ids.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in aborted_producer_ids:
                is_skipped = True
        yield is_skipped
