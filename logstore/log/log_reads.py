"""The ways to read a running log: bytes as a fetch gets them, offsets by time, records as a consumer gets them.

A reader takes the lock only to see what there is at that moment: the bounds, the segments, and of the one that is
written its size and indexes. All else it does beside the writer, who never changes a byte that was there.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..folds.leader_epochs import LeaderEpochs
from ..model import FetchIsolation
from .offset_for_timestamp import TimestampAndOffset, fetchable_offset_for_timestamp
from .offsets import Offsets
from .read import INT_MAX, Fetched, ReadBounds, read
from .records import RecordReader
from .segments import Segments


class LogReads:
    """The verbs of `PartitionLog` that read, in any thread; the parts that they use are its."""

    lock: AbstractContextManager[bool]
    topic_partition: str
    segments: Segments
    epochs: LeaderEpochs
    offsets: Offsets

    def read(
        self,
        start_offset: int,
        max_size: int,
        isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED,
        *,
        min_one_message: bool = True,
    ) -> Fetched:
        """Data from an offset on, mapped, not copied; arguments, what comes and what is raised as in `read.read`."""
        segments, bounds = self.readable()
        return read(segments, bounds, start_offset, max_size, isolation, min_one_message=min_one_message)

    def offset_for_timestamp(
        self, timestamp: int, isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED
    ) -> TimestampAndOffset | None:
        """The first record at or after a time, or one of the special offsets, see `offset_for_timestamp`."""
        with self.lock:
            segments, bounds = self.readable()
            epochs = LeaderEpochs(self.epochs.entries)
        return fetchable_offset_for_timestamp(segments, bounds, epochs, timestamp, isolation)

    def records(
        self,
        start_offset: int | None = None,
        *,
        end_offset: int | None = None,
        isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED,
        check_crc: bool = True,
        fetch_size: int = INT_MAX,
    ) -> RecordReader:
        """A reader of the records there are now, by default from the log's start; see `RecordReader`."""
        segments, bounds = self.readable()
        start_offset = bounds.log_start_offset if start_offset is None else start_offset
        return RecordReader(
            segments, bounds, start_offset, isolation, end_offset=end_offset, check_crc=check_crc, fetch_size=fetch_size
        )

    def readable(self) -> tuple[Segments, ReadBounds]:
        """The segments and bounds at this moment; they stay as they are while the log goes on."""
        with self.lock:
            bounds = ReadBounds(
                self.topic_partition,
                self.offsets.struct.log_start_offset,
                self.offsets.struct.log_end_offset,
                self.offsets.struct.high_watermark,
                self.offsets.last_stable_offset,
            )
            return self.segments.view(), bounds
