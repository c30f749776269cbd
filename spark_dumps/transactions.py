"""Table `transactions`: each transaction, decided or open, in each of its partitions.

Table `transaction_state` has the transactional ids of producers.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.audit.evidence import Evidence
from logstore.audit.facts.batches import BadBytes
from logstore.audit.facts.transactions import PartitionTransaction, PartitionTransactions
from logstore.audit.log_pass import follow
from logstore.audit.partition import open_partition
from logstore.errors import CorruptRecordError, LogstoreError

from .directories import ListedPartition
from .options import Options
from .schemas import columns_of
from .tables import Row, partition_table, row_of

COLUMNS = columns_of(
    "topic string, partition int, producer_id long, producer_epoch int, state string, first_offset long, "
    "last_offset long, record_count long, first_timestamp timestamp, last_timestamp timestamp, marker_offset long, "
    "marker_timestamp timestamp, marker_epoch int, coordinator_epoch int"
)
_OF_MARKER = ("marker_offset", "marker_timestamp", "marker_epoch", "coordinator_epoch")


def _rows(partition: ListedPartition, options: Options) -> Iterator[Row | LogstoreError]:
    opened = open_partition(partition.files.path)
    evidence, damage = Evidence(opened), list[LogstoreError]()
    history = PartitionTransactions(evidence)

    def keep(facts: object) -> None:
        """Keep damage as errors; a tail is being written."""
        if isinstance(facts, BadBytes) and not facts.piece.is_tail:
            damage.append(
                CorruptRecordError(
                    "bytes that are no batch",
                    path=facts.path,
                    position=facts.piece.start,
                    offset=facts.piece.offset,
                    expected=facts.piece.expected,
                    found=facts.piece.found,
                )
            )

    follow(evidence, [history], keep)
    yield from map(_row, history.transactions)
    yield from damage


def _row(transaction: PartitionTransaction) -> Row:
    unknown = dict.fromkeys(_OF_MARKER) if transaction.is_open else {}
    return row_of(COLUMNS, transaction, state=transaction.outcome, **unknown)


TABLE = partition_table(COLUMNS, _rows)
