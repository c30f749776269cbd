"""A partition read beside whoever writes it, a broker or a `PartitionLog` in another process. Nothing is ever written.

    reader = PartitionReader("/var/lib/kafka/data/orders-0")
    for chunk in reader.records(isolation=FetchIsolation.READ_COMMITTED).chunks(): …
    reader.refresh()                                       what was written since; reads only that

No lock is taken, no index is needed. The log ends behind the last whole batch with the right checksum: one that is
being written is not seen before it is there. Producers are followed from a snapshot on, as a load does, so the last
stable offset and the aborted transactions are those of the log at that moment, whatever is in the files beside it.

The high watermark is not in the files of a partition. Here it is the log's end: right for a partition with one replica,
and ahead of what a broker gives its consumers where other replicas are behind.

What was read is a copy and stays good, whatever becomes of the files. What was not read yet can still be read when
segments roll, are cleaned or deleted after a `refresh`, for their files stay open. When one is cut, which a broker does
that starts after a crash, or follows another leader, a read of what is gone raises DataDirectoryError, and the next
`refresh` sees the log as it is then. A cut that comes while bytes are copied may leave some of them from before it and
some from after: checksums are computed on the copies, so with `check_crc` no such batch is given.
"""

from __future__ import annotations

from ..disk.file_range import is_missing
from ..disk.files import read_file
from ..disk.names import absolute_path, child, file_name, parent
from ..errors import DataDirectoryError, InvalidNameError, LogstoreError
from ..folds.leader_epochs import LeaderEpochs
from ..folds.producer_state import ProducerState
from ..layout.file_names import foreign_directory_text, parse_partition_directory
from ..layout.leader_epoch_checkpoint import FILE_NAME as LEADER_EPOCHS_FILE_NAME
from ..layout.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from ..layout.offset_checkpoint import LOG_START_OFFSET_FILE_NAME, parse_offset_checkpoint
from .folder import PartitionFolder
from .follower import LogFollower
from .live_segment import DirectoryChangedError
from .log_view import LogView, ReadableLog
from .read import ReadBounds
from .segment import Segment
from .segments import Segments

_TRY_COUNT_MAX = 1000
_READ_SIZE_MAX = 16 * 1024 * 1024  # bytes that one read copies, but for a batch that is larger


class PartitionReader(ReadableLog):
    """One partition as it was at the last `refresh`.

    `refresh` is for one thread at a time; everything else may be asked by others meanwhile.

    Attributes:
        path: absolute.
    """

    def __init__(self, path: str, *, holds_files: bool = True, log_start_offset: int | None = None) -> None:
        """Look at the directory for the first time; reads the last segment, see `follower`.

        Args:
            holds_files: segments stay open, so that what is deleted can be read until the next `refresh`; False for
                whoever has very many of these and reads little.
            log_start_offset: by the data directory's checkpoint, for who reads that once for all its partitions.

        Raises:
            InvalidNameError: the directory's name is no partition's.
            DataDirectoryError: there is no such directory, or a file of it cannot be read.
            LogstoreError: the last segment cannot be followed.
        """
        self.path = absolute_path(path)
        name = parse_partition_directory(file_name(self.path))
        if name is None:
            raise InvalidNameError(
                foreign_directory_text(file_name(self.path), self.path),
                path=self.path,
                java_class="org.apache.kafka.common.KafkaException",
            )
        self._name = name.topic, name.partition
        self._topic_partition = f"{name.topic}-{name.partition}"
        self._directory = PartitionFolder(self.path)
        self._follower = LogFollower(self._directory, self._topic_partition, holds_files=holds_files)
        self.refresh(log_start_offset)

    @property
    def bounds(self) -> ReadBounds:
        """Offsets where the log starts and ends, and to where consumers read."""
        return self._view.bounds

    @property
    def producers(self) -> ProducerState | None:
        """The producers as of the log's end; None if there is no segment. Not to be kept until the next `refresh`."""
        return self._follower.producers

    @property
    def problem(self) -> LogstoreError | None:
        """Why the log is taken to end though its file goes on; None if it does not, or only with part of a batch."""
        return self._follower.problem

    def refresh(self, log_start_offset: int | None = None) -> None:
        """See what was written, rolled, cleaned and deleted since.

        Args:
            log_start_offset: as when the reader was made.

        Raises:
            LogstoreError: as when the reader was made; what was seen before stays.
        """
        for _ in range(_TRY_COUNT_MAX):
            try:
                start = self._log_start_offset() if log_start_offset is None else log_start_offset
                self._follower.update(start)
                self._view = self._look(start)
                return
            except DirectoryChangedError:
                continue
        raise DataDirectoryError(
            "The directory changes all the time",
            path=self.path,
            expected="that its files keep their names while they are listed",
            advice="see whether two processes write to it; else try again",
        )

    def view(self) -> LogView:
        """Return the log as it was at the last `refresh`."""
        return self._view

    def _look(self, log_start_offset: int) -> LogView:
        """Return what the follower knows."""
        follower = self._follower
        segments = follower.segments.view()
        first = segments.first
        if first is None or follower.producers is None:
            return self._new_view(segments, 0, 0, 0)
        start = max(log_start_offset, first.base_offset)
        end = max(follower.end_offset, start)
        return self._new_view(segments, start, end, follower.producers.transactions.last_stable_offset(end, start))

    def _new_view(self, segments: Segments[Segment], start: int, end: int, stable: int) -> LogView:
        bounds = ReadBounds(self._topic_partition, start, end, end, stable)
        return LogView(segments, bounds, self._leader_epochs(), read_size_max=_READ_SIZE_MAX)

    def _log_start_offset(self) -> int:
        """Of the checkpoint in the data directory; 0 where there is none."""
        path = child(parent(self.path), LOG_START_OFFSET_FILE_NAME)
        content = _content(path)
        return 0 if content is None else parse_offset_checkpoint(content, path=path).get(self._name, 0)

    def _leader_epochs(self) -> LeaderEpochs:
        path = child(self.path, LEADER_EPOCHS_FILE_NAME)
        content = _content(path)
        return LeaderEpochs() if content is None else LeaderEpochs(parse_leader_epoch_checkpoint(content, path=path))


def _content(path: str) -> bytes | None:
    try:
        return read_file(path)
    except DataDirectoryError as error:
        if is_missing(error):
            return None
        raise
