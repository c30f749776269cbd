"""Table `transactions`: the part of every transaction that is in a partition, decided or open.

Of what transactional id a producer is, table `transaction_state` tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.audit.evidence import Evidence
from logstore.audit.log_pass import run_checks
from logstore.audit.partition import open_partition
from logstore.audit.partition_transactions import PartitionTransaction, PartitionTransactions
from logstore.disk.directory import SegmentFiles
from logstore.errors import CorruptRecordError, LogstoreError
from logstore.view.walk import Damage, Tail

from .directories import ListedPartition
from .options import Options
from .schemas import columns_of
from .tables import Row, microseconds, partition_table

COLUMNS = columns_of(
    "topic string, partition int, producer_id long, producer_epoch int, state string, first_offset long, "
    "last_offset long, record_count long, first_timestamp timestamp, last_timestamp timestamp, marker_offset long, "
    "marker_timestamp timestamp, marker_epoch int, coordinator_epoch int"
)
OPEN = "open"  # beside `Marker.outcome`


class _History(PartitionTransactions):
    """Keeps what is passed over."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        self.damage: list[LogstoreError] = []
        self._path = ""

    def begin(self, segment: SegmentFiles) -> None:
        super().begin(segment)
        self._path = segment.log

    def skip(self, piece: Damage | Tail) -> None:
        if isinstance(piece, Damage):
            self.damage.append(
                CorruptRecordError(
                    "bytes that are no batch",
                    path=self._path,
                    position=piece.start,
                    offset=piece.offset,
                    expected=piece.expected,
                    found=piece.found,
                )
            )


def _rows(partition: ListedPartition, options: Options) -> Iterator[Row | LogstoreError]:
    history = _History(Evidence(open_partition(partition.files.path)))
    run_checks(history.evidence, [history])
    yield from map(_row, history.transactions)
    yield from history.damage


def _row(transaction: PartitionTransaction) -> Row:
    marker = transaction.marker
    row = {
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "state": OPEN if marker is None else marker.outcome,
        "first_offset": transaction.first_offset,
        "last_offset": transaction.last_offset,
        "record_count": transaction.record_count,
        "first_timestamp": microseconds(transaction.first_timestamp),
        "last_timestamp": microseconds(transaction.last_timestamp),
    }
    if marker is not None:
        row["marker_offset"] = marker.offset
        row["marker_timestamp"] = microseconds(marker.timestamp)
        row["marker_epoch"] = marker.producer_epoch
        row["coordinator_epoch"] = marker.coordinator_epoch
    return row


TABLE = partition_table(COLUMNS, _rows)
