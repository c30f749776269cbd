"""What a consumer gets: records, and how many there are still to come."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..model import TimestampType


class ConsumerRecord(NamedTuple):
    """One record (`ConsumerRecord`).

    Attributes:
        timestamp: ms; -1 none.
        key, value: bytes or None, or what the deserializers made of them.
        headers: (key, value) each.
        leader_epoch: of the leader that took it; None unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int | None


class Lag(NamedTuple):
    """How far a consumer is behind in a partition.

    Attributes:
        offsets: from its position to the end that it reads up to, as Kafka counts lag; markers, aborted records and
            those that the cleaner has removed are in it.
        records: what it will get of them.
    """

    offsets: int
    records: int
