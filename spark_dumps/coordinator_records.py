"""Records of a coordinator's topic as the coordinator itself takes them on load: a transaction's when it is committed.

Unlike a read_committed consumer it does not wait for the transactions before (`CoordinatorLoaderImpl`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from logstore.layout.batch import NO_PRODUCER_ID
from logstore.view.partition_reader import PartitionReader
from logstore.view.replay import ReplayedMarker, replayed

from .directories import Partition


class CoordinatorRecord(NamedTuple):
    """One record with a key.

    Attributes:
        is_pending: of a transaction that is not decided.
    """

    offset: int
    key: bytes
    value: bytes | None
    is_pending: bool


def coordinator_records(partition: Partition) -> Iterator[CoordinatorRecord]:
    """Yield the records in the order in which they count; what is pending comes last.

    Raises:
        LogstoreError: damage, behind what was before it.
    """
    reader = PartitionReader(partition.files.path)
    pending: dict[int, list[CoordinatorRecord]] = {}
    for item in replayed(reader):
        if isinstance(item, ReplayedMarker):
            decided = pending.pop(item.producer_id, [])
            yield from decided if item.is_commit else ()
        elif item.key is not None:
            record = CoordinatorRecord(item.offset, item.key, item.value, is_pending=False)
            if item.producer_id == NO_PRODUCER_ID:
                yield record
            else:
                pending.setdefault(item.producer_id, []).append(record)
    if reader.problem is not None:
        raise reader.problem
    for records in pending.values():
        yield from (record._replace(is_pending=True) for record in records)
