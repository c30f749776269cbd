"""Rows about consumer groups."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .schema import Int32, TimeMs


class CommittedOffsetRow(NamedTuple):
    """A committed offset of a group, or the pending one of an open transaction, as `__consumer_offsets` has it."""

    group_id: Annotated[str, "id of the group"]
    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    offset: Annotated[int, "the committed offset: the next one to read"]
    leader_epoch: Annotated[Int32 | None, "of the record before, as the consumer knew it"]
    metadata: Annotated[str, "what the consumer said with it"]
    commit_timestamp: Annotated[TimeMs | None, "when it was committed"]
    expire_timestamp: Annotated[TimeMs | None, "when it expires; only of old clients"]
    topic_id: Annotated[str | None, "id of the topic; only of new clients"]
    is_pending: Annotated[bool, "its transaction is open"]


class GroupRow(NamedTuple):
    """A committed offset of a group, and how far it is behind.

    Lag counts offsets, as other tools do: markers and aborted records let it stay above 0 for ever. `record_lag` counts
    the records that a read_committed consumer still gets.
    """

    group_id: Annotated[str, "id of the group, as `kafka-consumer-groups` names it"]
    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    offset: Annotated[int, "the committed offset: the next one to read; -1 for none"]
    lag: Annotated[int | None, "offsets up to the log's end, negative beyond it; null without partition or offset"]
    record_lag: Annotated[int | None, "records that are still to be read"]
    record_lag_is_exact: Annotated[bool, "false: the record lag is the least that it can be"]
    producer_id: Annotated[int | None, "of the transaction that committed it"]
    commit_timestamp: Annotated[TimeMs | None, "when it was committed"]
    pending_offset: Annotated[int | None, "of an open transaction, for whose end consumers of read_committed wait"]
    pending_producer_id: Annotated[int | None, "of that transaction"]
