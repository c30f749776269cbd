"""What the logs of a topic tell whoever goes on with them: the highest epochs and producer ids in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray
from ..columns.window_scan import scan_windows
from ..disk.directory import list_partition_directory
from ..disk.mapped import MappedFile
from ..disk.side_files import read_producer_snapshot
from ..errors import CorruptSnapshotError, LogstoreError
from ..folds.transaction_marker import read_marker
from ..kernels import scan as fields
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, NO_PRODUCER_ID
from ..layout.marker import COORDINATOR_EPOCH, MARKER_SIZE
from ..topics import transaction_state
from .metadata_reading import entries

NO_COORDINATOR_EPOCH = -1
_EPOCH_SIZE = 4  # bytes


@dataclass(slots=True)
class FoundInLogs:
    """The highest that there is in the logs and producer snapshots of a topic.

    Attributes:
        leader_epochs: by partition.
        coordinator_epoch: of the markers; -1 without any.
        producer_id: -1 without any.
    """

    leader_epochs: dict[int, int]
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    producer_id: int = NO_PRODUCER_ID

    @classmethod
    def of(cls, topic: str, partition_count: int, paths: Mapping[int, str]) -> FoundInLogs:
        """Read the partitions at these paths, by number; the others have the epoch 0.

        Raises:
            LogstoreError: a log that cannot be read.
        """
        found = cls(dict.fromkeys(range(partition_count), 0))
        for number, path in paths.items():
            files = list_partition_directory(path)
            for segment in files.segments:
                with MappedFile(segment.log) as log:
                    found._take_batches(number, log.data, segment.log)
                    if topic == transaction_state.TOPIC:
                        found._take_transactional_ids(log.data, segment.log)
            for snapshot in files.producer_snapshots.values():
                found._take_snapshot(snapshot)
        return found

    def raise_epochs(self, epoch: int) -> None:
        """Let no partition have an epoch before this one."""
        self.leader_epochs = {number: max(epoch, one) for number, one in self.leader_epochs.items()}

    def _take_batches(self, number: int, data: ByteArray, path: str) -> None:
        for table in scan_windows(data, 0, data.size):
            if len(table):
                epoch = int(table.column(fields.PARTITION_LEADER_EPOCH).max())
                self.leader_epochs[number] = max(self.leader_epochs[number], epoch)
                self.producer_id = max(self.producer_id, int(table.producer_id.max()))
                self.coordinator_epoch = max(self.coordinator_epoch, _coordinator_epoch(data, table, path))

    def _take_transactional_ids(self, data: ByteArray, path: str) -> None:
        for entry in entries(data, path):
            if entry.is_control or entry.key is None or transaction_state.unknown_version(entry.key, entry.value):
                continue
            value = transaction_state.decode_value(entry.value, offset=entry.offset)
            if value is not None:
                self.producer_id = max(self.producer_id, value.producer_id, value.next_producer_id)

    def _take_snapshot(self, path: str) -> None:
        """A producer is remembered longer than its batches are kept."""
        try:
            snapshot = read_producer_snapshot(path)
        except CorruptSnapshotError:
            return  # a load removes it
        if snapshot.entry_count:
            self.producer_id = max(self.producer_id, int(snapshot.producer_ids.max()))
            self.coordinator_epoch = max(self.coordinator_epoch, int(snapshot.coordinator_epochs.max()))


def _coordinator_epoch(data: ByteArray, table: BatchTable, path: str) -> int:
    """The highest of the markers in a table: those of the usual form at once, the others one by one."""
    is_marker = (table.attributes & CONTROL_FLAG != 0) & (table.record_count > 0) & (table.magic >= 2)
    is_usual = is_marker & (table.size == MARKER_SIZE) & (table.attributes & CODEC_MASK == 0)
    starts = table.position[is_usual] + COORDINATOR_EPOCH
    epochs = data[starts[:, None] + np.arange(_EPOCH_SIZE)].view(">i4")
    highest = int(epochs.max(initial=NO_COORDINATOR_EPOCH))
    for row in np.flatnonzero(is_marker & ~is_usual).tolist():
        try:
            highest = max(highest, read_marker(data, table, row).coordinator_epoch)
        except LogstoreError as error:
            error.path = path
            raise
    return highest
