"""A partition read beside its writer, a broker or a `PartitionLog` of another process. Nothing is ever written.

    reader = PartitionReader("/var/lib/kafka/data/orders-0")
    for chunk in reader.records(isolation=FetchIsolation.READ_COMMITTED).chunks(): …
    reader.refresh()                                       reads what was written since

No lock is taken and no index is needed. The log ends behind the last whole batch with a valid checksum, so a batch that
is being written is not seen before it is complete. Producers are followed from a snapshot on, as in a load, so the last
stable offset and the aborted transactions are those of the log at that moment, whatever the side files say.

The files of a partition do not hold the high watermark. Here it is the log's end: right for a partition with one
replica, and ahead of what a broker gives its consumers if other replicas lag.

What was read is a copy and stays valid whatever happens to the files. What was not read yet stays readable when
segments roll, are cleaned or deleted after a `refresh`, as their files stay open. When a file is cut, by a broker that
recovers or follows another leader, reading behind the cut raises DataDirectoryError, and the next `refresh` sees the
new log. A cut during a copy may mix bytes from before and after it: checksums are computed on the copies, so with
`check_crc` no such batch is returned.
"""

from __future__ import annotations

from contextlib import suppress

from ..disk.directory import partition_name
from ..disk.names import absolute_path, parent
from ..disk.side_files import leader_epochs_of, log_start_offsets_of, recovery_points_of, topic_id_of
from ..errors import CheckpointFormatError, DataDirectoryError, InconsistentTopicIdError, LogstoreError
from ..folds.leader_epochs import LeaderEpochs
from ..folds.producer_state import ProducerState
from .folder import PartitionFolder
from .follower import LogFollower
from .live_segment import DirectoryChangedError
from .log_view import LogView, ReadableLog
from .read import ReadBounds
from .segment import Segment
from .segments import Segments

_TRY_COUNT_MAX = 1000
_READ_SIZE_MAX = 16 * 1024 * 1024  # bytes that one read copies, unless a single batch is larger


class PartitionReader(ReadableLog):
    """One partition as it was at the last `refresh`.

    `refresh` must run in one thread at a time; all else may be used by other threads meanwhile.

    Attributes:
        path: absolute.
        topic_id: by the file in the directory; None without the file, or if it is damaged.
    """

    topic_id: str | None = None

    def __init__(self, path: str, *, holds_files: bool = True, log_start_offset: int | None = None) -> None:
        """Read the directory for the first time, with what is not below the recovery point; see `follower`.

        Args:
            holds_files: keep segments open, so that deleted ones can be read until the next `refresh`; False for a
                caller that has very many readers and reads little.
            log_start_offset: from the data directory's checkpoint, for a caller that read it for all its partitions.

        Raises:
            InvalidNameError: the directory's name is no partition's.
            DataDirectoryError: there is no such directory, or a file in it cannot be read.
            LogstoreError: the last segment cannot be followed.
        """
        self.path = absolute_path(path)
        name = partition_name(self.path)
        self._name = name.topic, name.partition
        self._topic_partition = f"{name.topic}-{name.partition}"
        self._directory = PartitionFolder(self.path)
        self._follower = LogFollower(self._directory, self._topic_partition, holds_files=holds_files)
        self.refresh(log_start_offset)

    @property
    def bounds(self) -> ReadBounds:
        """Offsets where the log starts and ends, and how far consumers read."""
        return self._view.bounds

    @property
    def log_start_offset(self) -> int:
        """The earliest offset that can be read."""
        return self._view.bounds.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset behind the last batch."""
        return self._view.bounds.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The log's end, see the module."""
        return self._view.bounds.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The first offset of an open transaction; without one the log's end."""
        return self._view.bounds.last_stable_offset

    @property
    def producers(self) -> ProducerState | None:
        """The producers at the log's end; None without segments. Valid until the next `refresh`."""
        return self._follower.producers

    @property
    def problem(self) -> LogstoreError | None:
        """Why the log ends before its file does; None if it does not, or only before an incomplete batch."""
        return self._follower.problem

    def refresh(self, log_start_offset: int | None = None) -> None:
        """See what was written, rolled, cleaned and deleted since.

        Args:
            log_start_offset: as for a new reader.

        Raises:
            InconsistentTopicIdError: the topic was deleted, and another one has its name now; the last view stays.
            LogstoreError: as for a new reader; the last view stays.
        """
        for _ in range(_TRY_COUNT_MAX):
            try:
                start = log_start_offset
                if start is None:
                    start = log_start_offsets_of(parent(self.path)).get(self._name, 0)
                self._follower.update(start, self._recovery_point())
                self._require_same_topic()
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

    def watch(self, _: object) -> bool:
        """Refresh, and return False: a writer in another process calls no watcher, so the caller has to look again."""
        self.refresh()
        return False

    def unwatch(self, _: object) -> None:
        """Do nothing, as there is no watcher."""

    def _require_same_topic(self) -> None:
        """Raise InconsistentTopicIdError if the directory is another topic's now; a damaged file proves nothing."""
        with suppress(CheckpointFormatError):
            found = topic_id_of(self.path)
            if self.topic_id not in (None, found):
                raise InconsistentTopicIdError(
                    "The topic was deleted, and another one has its name",
                    path=self.path,
                    expected=f"topic id {self.topic_id}",
                    found=found or "none",
                    advice="read the new one with a new reader",
                )
            self.topic_id = found

    def _look(self, log_start_offset: int) -> LogView:
        """Return a view of what the follower knows."""
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
        return LogView(segments, bounds, LeaderEpochs(leader_epochs_of(self.path)), read_size_max=_READ_SIZE_MAX)

    def _recovery_point(self) -> int | None:
        """Return where files beside closed segments begin to be doubtful, see `recovery_points_of`; asked for once."""
        points = None if self._follower.producers is not None else recovery_points_of(parent(self.path))
        return None if points is None else points.get(self._name, 0)
