"""A log at one moment: bytes as a fetch gets them, offsets by time, records as a consumer gets them.

A `PartitionLog` holds its lock only to make a view; a `PartitionReader` makes one when it is refreshed. Reading runs
beside the writer, which never changes a byte that a view covers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..columns.decoded_records import Records, TailRecords
from ..folds.leader_epochs import LeaderEpochs
from ..model import FetchIsolation, OfOneProcess, whole_number
from .offset_for_timestamp import TimestampAndOffset, fetchable_offset_for_timestamp
from .read import INT_MAX, Fetched, ReadBounds, read
from .record_reader import RecordReader
from .segments import Segments


class ReadableLog(OfOneProcess, ABC):
    """What has a view: a log, a reader of another process's log, and a view itself."""

    @property
    def record_size_max(self) -> int:
        """Bytes of the largest record of a compressed batch in which a time is looked for; 0 is any size."""
        return 0

    @abstractmethod
    def view(self) -> LogView:
        """Return the log as it is now, or was at the last refresh; the view stays the same while the log goes on."""

    def __repr__(self) -> str:
        bounds = self.view().bounds
        place = f"offsets {bounds.log_start_offset} to {bounds.log_end_offset}"
        return f"<{type(self).__name__} {bounds.topic_partition}: {place}>"

    def read(
        self,
        start_offset: int,
        max_size: int,
        isolation: FetchIsolation | str = FetchIsolation.READ_UNCOMMITTED,
        *,
        min_one_message: bool = True,
    ) -> Fetched:
        """Return data from an offset on; arguments, result and errors as in `read.read`.

        The data is mapped, not copied; of another process's log it is copied, 16 MiB or one batch at most.
        """
        view = self.view()
        size = min(whole_number("size", max_size), view.read_size_max)
        return read(
            view.segments,
            view.bounds,
            whole_number("offset", start_offset),
            size,
            FetchIsolation.of(isolation),
            min_one_message=min_one_message,
        )

    def tail(
        self, start_offset: int, isolation: FetchIsolation, *, check_crc: bool, size_max: int
    ) -> TailRecords | Records | None:
        """Return all records from an offset on if that is less work than `records`; else None."""
        return None

    def end_offset_of_epoch(self, epoch: int) -> int | None:
        """Return where what leaders up to `epoch` wrote ends; None for an epoch after the log's own (KIP-320)."""
        view = self.view()
        is_known = epoch <= (view.epochs.latest_epoch or 0)
        return view.epochs.end_offset(epoch, view.bounds.log_end_offset) if is_known else None

    def offset_for_timestamp(
        self, timestamp: int, isolation: FetchIsolation | str = FetchIsolation.READ_UNCOMMITTED
    ) -> TimestampAndOffset | None:
        """Return the first record at or after a time, or a special offset, see `offset_for_timestamp`."""
        view = self.view()
        return fetchable_offset_for_timestamp(
            view.segments,
            view.bounds,
            view.epochs,
            whole_number("time", timestamp),
            FetchIsolation.of(isolation),
            record_size_max=self.record_size_max,
        )

    def records(
        self,
        start_offset: int | None = None,
        *,
        end_offset: int | None = None,
        isolation: FetchIsolation | str = FetchIsolation.READ_UNCOMMITTED,
        check_crc: bool = True,
        fetch_size: int = INT_MAX,
    ) -> RecordReader:
        """Return a reader of the view's records, by default from the log's start; see `RecordReader`.

        Args:
            isolation: a `FetchIsolation` or Kafka's name, such as "read_committed".
        """
        view = self.view()
        return RecordReader(
            view.segments,
            view.bounds,
            view.bounds.log_start_offset if start_offset is None else whole_number("offset", start_offset),
            FetchIsolation.of(isolation),
            end_offset=None if end_offset is None else whole_number("offset", end_offset),
            check_crc=check_crc,
            fetch_size=min(whole_number("size", fetch_size), view.read_size_max),
        )


class LogView(ReadableLog):
    """A log at one moment; usable from any thread.

    Attributes:
        segments, bounds: what can be read, and how far.
        epochs: leader epochs.
        read_size_max: bytes that one read returns, unless a single batch is larger.
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
        """Return itself."""
        return self
