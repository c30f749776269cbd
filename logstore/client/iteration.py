"""Records that `for record in consumer` hands out one by one, and where that leaves the consumer."""

from __future__ import annotations

from itertools import chain

from ..model import TopicPartition
from .consumer_record import ConsumerRecord
from .record_fetcher import Offsets, Records


class Iteration:
    """Some records as `poll` would give them; the consumer's positions go behind those that were handed out.

    Attributes:
        records: in their order.
        row: the next one; all before it were handed out.
        settled_row: the positions are behind all before it.
        change_count: of the positions that the records were read from.
    """

    __slots__ = ("_ends", "change_count", "records", "row", "settled_row")

    def __init__(self, records: Records, ends: Offsets, change_count: int) -> None:
        """`ends`: the positions behind all of them."""
        self.records: list[ConsumerRecord] = list(chain.from_iterable(records.values()))
        self.row = self.settled_row = 0
        self.change_count = change_count
        self._ends = ends

    def positions(self) -> Offsets:
        """The offsets of the next records, in partitions without one the position behind all."""
        found: Offsets = {}
        for record in self.records[self.row :]:
            partition = TopicPartition(record.topic, record.partition)
            if partition not in found:
                found[partition] = record.offset
                if len(found) == len(self._ends):
                    break
        return self._ends | found
