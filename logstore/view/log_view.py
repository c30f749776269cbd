"""A log at one moment, and what is read of it: bytes as a fetch gets them, offsets by time, records as a consumer.

A `PartitionLog` takes its lock only to make a view, a `PartitionReader` makes one when it is refreshed. All else is
done beside the writer, who never changes a byte that was there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..folds.leader_epochs import LeaderEpochs
from ..model import FetchIsolation
from .offset_for_timestamp import TimestampAndOffset, fetchable_offset_for_timestamp
from .read import INT_MAX, Fetched, ReadBounds, read
from .records import RecordReader
from .segments import Segments


class ReadableLog(ABC):
    """What has a view: a log, a reader of one that another process writes, and a view itself."""

    @abstractmethod
    def view(self) -> LogView:
        """Return the log as it is now, or was when it was looked at last; it stays so while the log goes on."""

    def read(
        self,
        start_offset: int,
        max_size: int,
        isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED,
        *,
        min_one_message: bool = True,
    ) -> Fetched:
        """Return data from an offset on; arguments, what comes and what is raised as in `read.read`.

        It is mapped, not copied. Of a log that another process writes it is copied, 16 MiB or one batch at most.
        """
        view = self.view()
        size = min(max_size, view.read_size_max)
        return read(view.segments, view.bounds, start_offset, size, isolation, min_one_message=min_one_message)

    def offset_for_timestamp(
        self, timestamp: int, isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED
    ) -> TimestampAndOffset | None:
        """Return the first record at or after a time, or one of the special offsets, see `offset_for_timestamp`."""
        view = self.view()
        return fetchable_offset_for_timestamp(view.segments, view.bounds, view.epochs, timestamp, isolation)

    def records(
        self,
        start_offset: int | None = None,
        *,
        end_offset: int | None = None,
        isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED,
        check_crc: bool = True,
        fetch_size: int = INT_MAX,
    ) -> RecordReader:
        """Return a reader of the records of the view, by default from the log's start; see `RecordReader`."""
        view = self.view()
        return RecordReader(
            view.segments,
            view.bounds,
            view.bounds.log_start_offset if start_offset is None else start_offset,
            isolation,
            end_offset=end_offset,
            check_crc=check_crc,
            fetch_size=min(fetch_size, view.read_size_max),
        )


class LogView(ReadableLog):
    """A log at one moment; for any thread.

    Attributes:
        segments, bounds: what there is, and how far reads go.
        epochs: of the leaders.
        read_size_max: bytes that one read takes, but for a batch that is larger.
    """

    __slots__ = ("bounds", "epochs", "read_size_max", "segments")

    def __init__(
        self, segments: Segments[Any], bounds: ReadBounds, epochs: LeaderEpochs, *, read_size_max: int = INT_MAX
    ) -> None:
        self.segments = segments
        self.bounds = bounds
        self.epochs = epochs
        self.read_size_max = read_size_max

    def view(self) -> LogView:
        """Return this."""
        return self
