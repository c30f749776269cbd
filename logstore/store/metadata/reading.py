"""Reading of `__cluster_metadata-0`: the newest snapshot, then the log behind it (KIP-630).

    metadata = MetadataState()
    metadata.read_snapshots(files), metadata.read_log(log)

Control records of KRaft are read beside the image: `kraft.version`, the voters, the last leader's epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...columns.batch_table import ByteArray, scan
from ...columns.record_windows import BadBatch, record_windows
from ...disk.directory import PartitionFiles, list_partition_directory
from ...disk.file_range import is_missing
from ...disk.mapped import MappedFile
from ...disk.names import child
from ...disk.side_files import read_partition_metadata
from ...errors import CorruptRecordError, DataDirectoryError
from ...kernels.scan import batches as fields
from ...layout import partition_metadata
from ...messages.schema import Value
from ...model import ControlRecordType, FetchIsolation
from ...topics.control_records import read_kraft_record, read_type
from ...view.log_view import LogView
from ...view.partition_reader import PartitionReader
from .image import MetadataImage

READ_SIZE = 1 << 24
NO_OFFSET = -1


class Entry(NamedTuple):
    """One record, with the leader's epoch of its batch."""

    offset: int
    is_control: bool
    leader_epoch: int
    key: bytes | None
    value: bytes | None


class MetadataState:
    """The image, and the state of KRaft.

    Attributes:
        next_offset: behind the last record that was read.
        leader_epoch: of the last batch.
        kraft_version: 0 with voters that a configuration names, 1 with voters in the log.
        voters: of the last VotersRecord, as its fields.
        voters_offset: where that is in the log; -1 without one, or in a snapshot that stands for an empty log.
    """

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.next_offset = 0
        self.leader_epoch = 0
        self.kraft_version = 0
        self.voters: list[Value] = []
        self.voters_offset = NO_OFFSET

    def read_snapshots(self, files: PartitionFiles) -> None:
        """Begin with the newest complete snapshot of the directory, if there is one.

        Raises:
            LogstoreError: it cannot be read.
        """
        if not files.kraft_snapshots:
            return
        end_offset, epoch = max(files.kraft_snapshots)
        path = files.kraft_snapshots[end_offset, epoch]
        with MappedFile(path) as snapshot:
            for entry in entries(snapshot.data, path):
                # offsets in a snapshot count its own records: what they tell stands before its end offset
                self._take(entry, end_offset - 1)
        self.next_offset, self.leader_epoch = end_offset, max(epoch, self.leader_epoch)

    def read_log(self, log: LogView) -> None:
        """Read the log from `next_offset` on.

        Raises:
            LogstoreError: a batch that cannot be read, a record that makes no sense; OffsetOutOfRangeError if the log
                begins behind `next_offset`.
        """
        while self.next_offset < log.bounds.log_end_offset:
            fetched = log.read(self.next_offset, READ_SIZE, FetchIsolation.LOG_END)
            start = self.next_offset
            for entry in entries(fetched.data, fetched.path or ""):
                if entry.offset >= self.next_offset:
                    self._take(entry, entry.offset)
                    self.next_offset, self.leader_epoch = entry.offset + 1, entry.leader_epoch
            if self.next_offset == start:
                raise CorruptRecordError(
                    "A metadata log ends before its end offset",
                    path=fetched.path,
                    offset=start,
                    expected=f"records up to offset {log.bounds.log_end_offset}",
                    found="none",
                )

    def _take(self, entry: Entry, offset: int) -> None:
        if not entry.is_control:
            self.image.replay(entry.value, offset)
            return
        kind = read_type(entry.key or b"")
        if kind is ControlRecordType.KRAFT_VERSION:
            self.kraft_version = self._fields(kind, entry)["kRaftVersion"]
        elif kind is ControlRecordType.KRAFT_VOTERS:
            self.voters = self._fields(kind, entry)["voters"]
            self.voters_offset = offset

    def _fields(self, kind: ControlRecordType, entry: Entry) -> dict[str, Any]:
        _, values = read_kraft_record(kind, entry.value or b"")
        return values


def entries(data: ByteArray, path: str) -> Iterator[Entry]:
    """Iterate over the records of whole batches, control records too; raises LogstoreError with path and offset."""
    batches = scan(data)
    if not len(batches):
        return
    is_control = batches.is_control
    epochs = batches.column(fields.PARTITION_LEADER_EPOCH)
    for window in record_windows(data, batches, np.arange(len(batches))):
        if isinstance(window, BadBatch):
            window.error.path, window.error.offset = path, int(batches.base_offset[window.row])
            raise window.error
        records, rows = window.records, window.rows.tolist()
        for index, offset in enumerate(records.offset.tolist()):
            row = rows[index]
            yield Entry(offset, bool(is_control[row]), int(epochs[row]), records.key(index), records.value(index))


def read_metadata(directory: str) -> MetadataState:
    """Read the metadata log in a directory, maybe beside its writer; raises LogstoreError if it cannot be read."""
    state = MetadataState()
    state.read_snapshots(list_partition_directory(directory))
    reader = PartitionReader(directory)
    state.read_log(reader.view())
    return state


def topic_id_of(path: str) -> str | None:
    """Return the id in the `partition.metadata` of a partition's directory; None without the file."""
    try:
        return read_partition_metadata(child(path, partition_metadata.FILE_NAME)).topic_id
    except DataDirectoryError as error:
        if is_missing(error):
            return None
        raise
