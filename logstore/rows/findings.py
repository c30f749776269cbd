"""Rows about what is wrong, and about what was looked at."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .schema import Int32


class FindingRow(NamedTuple):
    """Something that is wrong. `logstore audit --explain RULE` says more."""

    severity: Annotated[str, "error or warning"]
    rule: Annotated[str, "name of the rule that is broken"]
    topic: Annotated[str | None, "name of the topic"]
    partition: Annotated[Int32 | None, "number of the partition"]
    path: Annotated[str | None, "file or directory"]
    position: Annotated[int | None, "byte in the file"]
    offset: Annotated[int | None, "Kafka offset"]
    expected: Annotated[str, "what should be there"]
    found: Annotated[str, "what is there"]
    advice: Annotated[str, "what to do"]


class VerifiedRow(NamedTuple):
    """A partition that was looked at."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    path: Annotated[str, "the directory"]
    segment_count: Annotated[Int32, "how many segments"]
    batch_count: Annotated[int, "good batches"]
    size: Annotated[int, "bytes of the log"]
    log_end_offset: Annotated[int, "behind its last batch"]
    finding_count: Annotated[Int32, "how many findings"]


class NotAskedRow(NamedTuple):
    """A rule that could not be asked of some partitions."""

    rule: Annotated[str, "name of the rule"]
    partition_count: Annotated[Int32, "how many partitions"]
    reason: Annotated[str, "why it could not be asked"]


class AuditedRow(NamedTuple):
    """What an audit looked at."""

    path: Annotated[str, "the directory"]
    partition_count: Annotated[Int32, "how many partitions"]
    size: Annotated[int, "bytes of their logs"]
    batch_count: Annotated[int, "good batches"]
    transaction_count: Annotated[int, "transactions, counted once in each of their partitions"]
    open_count: Annotated[Int32, "transactions that are open, counted once in each of their partitions"]
    overdue_count: Annotated[Int32, "those of them that should have ended by now"]
    held_back_count: Annotated[Int32, "partitions in which read_committed consumers wait for them"]
    group_offset_count: Annotated[Int32, "offsets that groups have committed"]
    not_asked: Annotated[tuple[NotAskedRow, ...], "rules that could not be asked"]
