"""Highest epochs and producer ids in the logs of a topic, above which a metadata log that is made for them goes on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from logstore.columns.batch_table import BatchTable, ByteArray
from logstore.disk.directory import list_partition_directory
from logstore.disk.mapped import MappedFile
from logstore.disk.side_files import read_producer_snapshot
from logstore.errors import CorruptSnapshotError, LogstoreError, SchemaError
from logstore.errors.error import naming_path
from logstore.folds.transaction_marker import read_marker
from logstore.kernels.scan import batches as fields
from logstore.layout.batch import CODEC_MASK, NO_PRODUCER_ID
from logstore.layout.marker import COORDINATOR_EPOCH, MARKER_SIZE
from logstore.replay.internal_topic import ReplayedRecord, replayed_file
from logstore.topics import consumer_offsets, transaction_state
from logstore.topics.consumer_offsets import CommittedOffset, OffsetKey
from logstore.view.parallel_scan import scan_windows

NO_COORDINATOR_EPOCH = -1
_EPOCH_SIZE = 4  # bytes


@dataclass(slots=True)
class HighestInLogs:
    """The highest epochs and producer id in the logs and producer snapshots of a topic.

    Attributes:
        leader_epochs: by partition.
        coordinator_epoch: of markers; -1 without any.
        producer_id: -1 without any.
        committed_epochs: leader epochs that groups have committed, by topic and partition.
    """

    leader_epochs: dict[int, int]
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    producer_id: int = NO_PRODUCER_ID
    committed_epochs: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, topic: str, partition_count: int, paths: Mapping[int, str]) -> HighestInLogs:
        """Read the partitions at these paths, by number; the others get epoch 0; raise at what does not parse."""
        found = cls(dict.fromkeys(range(partition_count), 0))
        for number, path in paths.items():
            files = list_partition_directory(path)
            for segment in files.segments:
                with MappedFile(segment.log) as log, naming_path(segment.log):
                    found._take_batches(number, log.data)
                    if topic == transaction_state.TOPIC:
                        found._take_transactional_ids(log.data, segment.log)
                    if topic == consumer_offsets.TOPIC:
                        found._take_commits(log.data, segment.log)
            for snapshot in files.producer_snapshots.values():
                found._take_snapshot(snapshot)
        return found

    def raise_epochs(self, epoch: int) -> None:
        """Raise the epoch of every partition to at least `epoch`."""
        self.leader_epochs = {number: max(epoch, known) for number, known in self.leader_epochs.items()}

    def _take_batches(self, number: int, data: ByteArray) -> None:
        for table in scan_windows(data, 0, data.size):
            if len(table):
                epoch = int(table.column(fields.PARTITION_LEADER_EPOCH).max())
                self.leader_epochs[number] = max(self.leader_epochs[number], epoch)
                self.producer_id = max(self.producer_id, int(table.producer_id.max()))
                self.coordinator_epoch = max(self.coordinator_epoch, _coordinator_epoch(data, table))

    def _take_transactional_ids(self, data: ByteArray, path: str) -> None:
        for record in replayed_file(data, path):
            if not isinstance(record, ReplayedRecord) or record.key is None:
                continue
            if transaction_state.unknown_version(record.key, record.value):
                continue
            value = transaction_state.decode_value(record.value, offset=record.offset)
            if value is not None:
                self.producer_id = max(self.producer_id, value.producer_id, value.next_producer_id)

    def _take_commits(self, data: ByteArray, path: str) -> None:
        with suppress(LogstoreError):  # which the opening tells
            for record in replayed_file(data, path):
                if isinstance(record, ReplayedRecord) and record.key is not None:
                    with suppress(SchemaError):  # of a newer Kafka
                        self._take_commit(record.key, record.value)

    def _take_commit(self, record_key: bytes, record_value: bytes | None) -> None:
        key = consumer_offsets.decode_key(record_key)
        value = consumer_offsets.decode_value(key, record_value)
        if isinstance(key, OffsetKey) and isinstance(value, CommittedOffset):
            place = key.topic, key.partition
            self.committed_epochs[place] = max(value.leader_epoch, self.committed_epochs.get(place, 0))

    def _take_snapshot(self, path: str) -> None:
        """Read a snapshot, which remembers a producer longer than its batches are kept."""
        try:
            snapshot = read_producer_snapshot(path)
        except CorruptSnapshotError:
            return  # a load removes it
        if snapshot.entry_count:
            self.producer_id = max(self.producer_id, int(snapshot.producer_ids.max()))
            self.coordinator_epoch = max(self.coordinator_epoch, int(snapshot.coordinator_epochs.max()))


def _coordinator_epoch(data: ByteArray, table: BatchTable) -> int:
    """Return the highest coordinator epoch of the markers in a table: usual markers at once, others one by one."""
    is_marker = table.is_control & (table.record_count > 0)
    is_usual = is_marker & (table.size == MARKER_SIZE) & (table.attributes & CODEC_MASK == 0)
    starts = table.position[is_usual] + COORDINATOR_EPOCH
    epochs = data[starts[:, None] + np.arange(_EPOCH_SIZE)].view(">i4")
    highest = int(epochs.max(initial=NO_COORDINATOR_EPOCH))
    for row in np.flatnonzero(is_marker & ~is_usual).tolist():
        highest = max(highest, read_marker(data, table, row).coordinator_epoch)
    return highest
