"""Table `transactions`: each transaction, decided or open, in each of its partitions.

Table `transaction_state` has the transactional ids of producers.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.audit.cluster import Cluster
from logstore.audit.evidence import Evidence
from logstore.audit.facts.transactions import PartitionTransactions
from logstore.errors import LogstoreError
from logstore.rows.schema import row_of
from logstore.rows.transactions import TransactionRow

from .followed import follow_partition
from .listed_partition import ListedPartition
from .schemas import columns_of
from .tables import partition_table

_OF_MARKER = ("marker_offset", "marker_timestamp", "marker_epoch", "coordinator_epoch")


def _rows(partition: ListedPartition, cluster: Cluster) -> Iterator[TransactionRow | LogstoreError]:
    histories: list[PartitionTransactions] = []

    def history(evidence: Evidence) -> PartitionTransactions:
        histories.append(PartitionTransactions(evidence))
        return histories[-1]

    damage = follow_partition(partition, cluster, history)
    for one in histories:
        for transaction in one.transactions:
            unknown = dict.fromkeys(_OF_MARKER) if transaction.is_open else {}
            yield row_of(TransactionRow, partition, transaction, state=transaction.outcome, **unknown)
    yield from damage


TABLE = partition_table(columns_of(TransactionRow), _rows)
