"""The times of a log, by whose clock: files and brokers tell when records were written, producers only say so.

A record of a `CreateTime` topic has the time of its producer's clock, which may be hours ahead, in microseconds, or a
month old when history is written again. Three others are clocks of brokers: the modification time of a file, the
timestamp of a marker, and the timestamp of a batch with `LogAppendTime`. What lies before one of these in the log was
written before it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

from ...clock import now_ms
from ...disk import paths
from ...disk.directory import SegmentFiles
from ...layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from ..cluster import NEVER
from ..evidence import AuditedBatches, Follower
from ..finding import Silence
from ..partition import Partition
from ..stable_reading import OLDEST_MS

_STEP_MS = 10_000  # of brokers' stamps that lie closer together the last one is kept
_SECOND_NS = 1_000_000_000
_AHEAD_MS_MAX = 3_600_000  # a broker takes records up to an hour ahead (`message.timestamp.after.max.ms`)


class Clock(Enum):
    """The clock that a time was read from."""

    COORDINATOR = "coordinator"
    BROKER = "broker"
    FILE = "file"
    PRODUCER = "producer"


class SegmentTimes(NamedTuple):
    """The times of a segment, ms.

    Attributes:
        modified_ms: of its `.log`, looked at after it was read: all that was read was written by then.
        largest_timestamp: of its batches, by whatever clock; -1 without one.
        largest_offset: the first offset of that batch.
    """

    base_offset: int
    path: str
    modified_ms: int
    largest_timestamp: int
    largest_offset: int


class Times(Follower):
    """Collects the times of a partition.

    Attributes:
        segments: by base offset.
        begun_ms, ended_ms: when the log was read.
        read_up_to_ms: modification time of the newest `.log`, looked at before it was read: all that was written by
            then was read.
        smallest_timestamp: of all batches, by whatever clock; 2^63 - 1 without batches.
        smallest_stamp, largest_stamp: of brokers' clocks; 2^63 - 1 and -1 without any.
    """

    def __init__(self, partition: Partition) -> None:
        self.segments: list[SegmentTimes] = []
        self.begun_ms = self.ended_ms = now_ms()
        newest = partition.last_segment
        self.read_up_to_ms = -1 if newest is None else _modified_ns(newest, if_gone=-1) // 1_000_000
        self.smallest_timestamp = self.smallest_stamp = NEVER
        self.largest_stamp = -1
        self._largest = -1, -1
        self._segment: SegmentFiles | None = None
        # rows of offset and time; after the pass, of the earliest behind it
        self._stamps = [np.empty((0, 2), np.int64)]

    def begin(self, segment: SegmentFiles) -> None:
        self._segment, self._largest = segment, (-1, -1)

    def step(self, batches: AuditedBatches) -> None:
        timestamps = batches.table.max_timestamp
        self.smallest_timestamp = min(self.smallest_timestamp, int(timestamps.min()))
        row = int(timestamps.argmax())
        if timestamps[row] > self._largest[0]:
            self._largest = int(timestamps[row]), int(batches.base[row])
        flags = batches.table.attributes
        is_brokers = batches.is_producers & (flags & CONTROL_FLAG != 0)
        is_brokers |= (batches.table.magic > 0) & (flags & LOG_APPEND_TIME_FLAG != 0)
        rows = np.flatnonzero(is_brokers & (timestamps > 0))
        if not rows.size:
            return
        stamps = timestamps[rows]
        self.smallest_stamp = min(self.smallest_stamp, int(stamps.min()))
        self.largest_stamp = max(self.largest_stamp, int(stamps.max()))
        is_kept = np.append(np.diff(stamps // _STEP_MS) != 0, True)
        self._stamps.append(np.stack([batches.last[rows], stamps], axis=1)[is_kept])

    def end(self) -> None:
        segment = self._segment
        if segment is not None:
            modified_ns = _modified_ns(segment)
            # a tool that copies whole seconds has cut off what is behind them
            modified_ns += 0 if modified_ns % _SECOND_NS else _SECOND_NS - 1
            modified_ms = modified_ns // 1_000_000
            self.segments.append(SegmentTimes(segment.base_offset, segment.log, modified_ms, *self._largest))

    def finish(self) -> None:
        self.ended_ms = now_ms()
        stamps = np.concatenate(self._stamps)
        stamps = stamps[np.argsort(stamps[:, 0], kind="stable")]
        stamps[:, 1] = np.minimum.accumulate(stamps[::-1, 1])[::-1]
        self._stamps = [stamps]

    def written_by(self, offset: int) -> tuple[int, Clock]:
        """Return a time by which the record at `offset` was written, the earliest that is known, and its clock."""
        files = [one.modified_ms for one in self.segments if one.base_offset <= offset][-1:]
        files += [one.modified_ms for one in self.segments if one.base_offset > offset]
        by_file = min((time for time in files if time >= OLDEST_MS), default=NEVER)
        (stamps,) = self._stamps
        row = int(np.searchsorted(stamps[:, 0], offset))
        by_broker = int(stamps[row, 1]) if row < len(stamps) else NEVER
        return (by_broker, Clock.BROKER) if by_broker <= by_file else (by_file, Clock.FILE)


class Retained(NamedTuple):
    """A partition of which `retention.ms` removes segments, unless `silence` says why it may have another policy.

    `now_ms` is the latest time that a broker's clock or ours tells.
    """

    partition: Partition
    times: Times
    now_ms: int
    silence: Silence | None

    @property
    def ahead(self) -> SegmentTimes | None:
        """The first segment with a timestamp that is ahead of clocks, and of the file that it is in."""
        found = (
            one
            for one in self.times.segments
            if one.largest_timestamp > max(self.now_ms, one.modified_ms) + _AHEAD_MS_MAX
        )
        return next(found, None)


def _modified_ns(segment: SegmentFiles, *, if_gone: int = NEVER) -> int:
    try:
        return paths.stat(segment.log).st_mtime_ns
    except OSError:
        return if_gone
