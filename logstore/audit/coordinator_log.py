"""What `__transaction_state` of a data directory knows: every transactional id, now and before (KIP-98, KIP-890).

The topic is compacted, so of what was before only some is left. A broker holds only some of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import SchemaError
from ..topics.transaction_state import TOPIC, TransactionMetadata, TransactionState, decode_key, decode_value
from ..view.replay import ReplayedRecord
from . import rules
from .finding import Finding
from .partition import Partition, Report
from .topic_records import topic_records

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})


class CoordinatorEntry(NamedTuple):
    """One record of a transactional id: its place in the topic, when it was written (ms), and what it says."""

    partition: int
    offset: int
    timestamp: int
    metadata: TransactionMetadata


@dataclass(slots=True)
class CoordinatorLog:
    """All that is there.

    Attributes:
        history: the records of each transactional id, oldest first; ids that were forgotten have none.
        owners: from producer id to the transactional id that has, had, or is about to have it.
        is_complete: all partitions of the topic are there, so that what is not in it is not known to any coordinator.
    """

    history: dict[str, list[CoordinatorEntry]] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)
    is_complete: bool = False

    def current(self, transactional_id: str) -> CoordinatorEntry | None:
        """The last record of the id."""
        entries = self.history.get(transactional_id)
        return entries[-1] if entries else None

    def owner(self, producer_id: int) -> tuple[str, CoordinatorEntry] | None:
        """Whose producer id it is, and its last record."""
        transactional_id = self.owners.get(producer_id)
        entry = None if transactional_id is None else self.current(transactional_id)
        return None if transactional_id is None or entry is None else (transactional_id, entry)


def read_coordinator_log(
    partitions: Iterable[Partition], partition_count: int | None, *, is_whole_broker: bool = False
) -> tuple[CoordinatorLog, list[Finding]]:
    """Read `__transaction_state` among `partitions`.

    Args:
        partition_count: of the topic, as `__cluster_metadata` tells; None if it does not.
        is_whole_broker: no other log dir can have more of them.

    Returns:
        The log, and a finding for each record that does not parse.
    """
    log = CoordinatorLog()
    findings: list[Finding] = []
    numbers = set()
    for partition in partitions:
        if partition.files.topic != TOPIC:
            continue
        numbers.add(partition.files.partition)
        report = Report(TOPIC, partition.files.partition)
        for record in topic_records(partition, report):
            if isinstance(record, ReplayedRecord):
                _take(log, partition, record, report)
        findings += report.findings
    expected = range(max(numbers, default=-1) + 1 if partition_count is None else partition_count)
    log.is_complete = is_whole_broker and bool(numbers) and numbers >= set(expected)
    return log, findings


def _take(log: CoordinatorLog, partition: Partition, record: ReplayedRecord, report: Report) -> None:
    try:
        if record.key is None:
            raise SchemaError("The record has no key", offset=record.offset)
        transactional_id = decode_key(record.key, offset=record.offset)
        metadata = decode_value(record.value, offset=record.offset)
    except SchemaError as error:
        report.add_error(rules.INTERNAL_RECORD, partition.files.path, error, expected="a transactional id's state")
        return
    if metadata is None:
        log.history.pop(transactional_id, None)
        return
    entry = CoordinatorEntry(partition.files.partition, record.offset, record.timestamp, metadata)
    log.history.setdefault(transactional_id, []).append(entry)
    for producer_id in (metadata.producer_id, metadata.previous_producer_id, metadata.next_producer_id):
        if producer_id >= 0:
            log.owners[producer_id] = transactional_id
