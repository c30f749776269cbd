"""State of a directory that another process writes, brought up to date by reading what is new (see `partition_reader`).

From the newest producer snapshot at or below the last segment on, all batches are read once: checksums are computed,
producers and indexes stepped. In a data directory that was not closed in order the segment of the recovery point takes
the place of the last one: from there on a power failure may have left any file beside a `.log` short. Earlier segments
are taken as they are. Bytes are copied before they are checked, so nothing can change after its check.

A `.swap` file is complete and replaces the files that it was made from, see `load.interrupted_swaps`. So it counts as
the segment, and nothing is missed while old files go and new ones take their names. `.cleaned` files are not complete
yet, `.deleted` ones belong to no log any more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..columns.batch_table import ByteArray, scan_chunk
from ..columns.legacy import valid_row_count
from ..disk.directory import PartitionFiles, SegmentFiles
from ..disk.file_range import FileRange, file_identity
from ..disk.names import child, file_name
from ..disk.side_files import read_producer_snapshot
from ..errors import CorruptRecordError, CorruptSnapshotError, InvalidNameError, LogstoreError
from ..folds import aborted_transactions, producer_update
from ..folds.producer_state import ProducerState
from ..layout.file_names import (
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    base_offset_of,
)
from .batch_search import first_batch_size
from .folder import PartitionFolder
from .live_segment import DirectoryChangedError, LiveSegment, changed_if_missing
from .segments import Segments

_LISTING_COUNT_MAX = 100
_READ_SIZE = 8 * 1024 * 1024


class LogFollower:
    """The segments of the last listing, and the producers at the last whole batch.

    Attributes:
        segments: `LiveSegment`s.
        producers: None before the first `update`.
        end_offset: behind the last whole batch.
        problem: why the log ends before its file does; None at a proper end, and before a batch that is not complete
            yet.
    """

    def __init__(self, directory: PartitionFolder, topic_partition: str, *, holds_files: bool = True) -> None:
        """Keep the arguments; nothing is read yet. The `.log` files stay open if `holds_files`."""
        self._holds_files = holds_files
        self._directory = directory
        self._topic_partition = topic_partition
        self._forget()

    def _forget(self) -> None:
        self.segments = Segments[LiveSegment]()
        self.producers: ProducerState | None = None
        self.end_offset = 0
        self.problem: LogstoreError | None = None
        self._names: Mapping[int, Mapping[str, str]] = {}

    def update(self, log_start_offset: int, recovery_point: int | None) -> None:
        """List the directory, and read what is new.

        Args:
            recovery_point: the offset up to which the files beside closed segments are relied on; None for all.

        Raises:
            DirectoryChangedError: it changed meanwhile; call again.
            LogstoreError: something cannot be read or followed; the next call starts from nothing.
        """
        try:
            names = settled_names(self._directory)
            self._take_segments(segment_names(names))
            if len(self.segments):
                self._read_new(snapshot_names(names), log_start_offset, recovery_point)
        except LogstoreError:
            self._forget()
            raise

    def _read_new(self, snapshots: Mapping[int, str], log_start_offset: int, recovery_point: int | None) -> None:
        if self.producers is None:
            start_offset = max(log_start_offset, self._start_offset())
            self.producers = self._first_producers(snapshots, start_offset, recovery_point)
            self.end_offset = self.producers.map_end_offset
        self.end_offset = max(self.end_offset, self._start_offset())
        last = self.segments.last
        for segment in self.segments.between(self.end_offset):
            self._read_on(segment, is_last=segment is last)

    def _start_offset(self) -> int:
        first = self.segments.first
        return 0 if first is None else first.base_offset

    def _take_segments(self, names: Mapping[int, Mapping[str, str]]) -> None:
        """Take the segments of a listing; one that is known stays if its file is the same."""
        if names == self._names:
            return
        known = {segment.base_offset: segment for segment in self.segments}
        reading = self.segments.floor(self.end_offset)  # must be among the new ones, else the log was cut
        segments = Segments[LiveSegment]()
        for base_offset, files in names.items():
            segment = known.get(base_offset)
            if segment is not None and self._is_same(segment, files[LOG_SUFFIX]):
                segment.rename(files)
                segments.add(segment)
                reading = None if segment is reading else reading
            else:
                segments.add(LiveSegment(self._directory, base_offset, files, holds_file=self._holds_files))
        if reading is not None:
            self._forget()  # the log was cut, or the segment being read was replaced by another file
            raise DirectoryChangedError
        self.segments, self._names = segments, names

    def _is_same(self, segment: LiveSegment, name: str) -> bool:
        identity = file_identity(self._directory.file(name))
        if identity is None:
            raise DirectoryChangedError
        return identity == segment.identity

    def _first_producers(
        self, snapshots: Mapping[int, str], log_start_offset: int, recovery_point: int | None
    ) -> ProducerState:
        """Load the newest snapshot that lets the first segment to be followed be read from its start."""
        state = ProducerState(self._topic_partition)
        state.start_at(log_start_offset)
        last = self.segments.last if recovery_point is None else self.segments.floor(recovery_point)
        limit = 0 if last is None else last.base_offset
        for offset in sorted(snapshots, reverse=True):
            if log_start_offset < offset <= limit:
                try:
                    with changed_if_missing():
                        snapshot = read_producer_snapshot(self._directory.file(snapshots[offset]))
                except CorruptSnapshotError:
                    continue  # as in Kafka: an older one, and more of the log, give the same state
                state.load(snapshot, offset, None)  # None: expired producers have no open transaction and do no harm
                break
        return state

    def _read_on(self, segment: LiveSegment, *, is_last: bool) -> None:
        """Read the batches of a segment behind the known ones."""
        with self._opened(segment) as file:
            if segment.indexes is None:
                segment.follow(self.end_offset)
            elif not segment.is_still_in(file):
                self._forget()  # the log was cut, and may be written anew
                raise DirectoryChangedError
            self.problem = None
            while segment.size < file.size and self.problem is None:
                chunk = file.read(segment.size, _READ_SIZE)
                needed_size = first_batch_size(chunk)
                if chunk.size < needed_size <= file.size - segment.size:
                    chunk = file.read(segment.size, needed_size)
                if not self._step(segment, chunk):
                    break
            if self.problem is None and segment.size < file.size and not is_last:
                self.problem = _unreadable(segment, "the rest of the segment is no batch")

    def _opened(self, segment: LiveSegment) -> FileRange:
        with changed_if_missing():
            file = FileRange(segment.path(LOG_SUFFIX))
        if file.identity != segment.identity:
            file.close()
            self._names = {}
            raise DirectoryChangedError
        return file

    def _step(self, segment: LiveSegment, chunk: ByteArray) -> bool:
        """Take the whole and valid batches at the front of `chunk`; return whether there were any."""
        table = scan_chunk(chunk, 0, chunk.size, check_crc=True)
        row_end = valid_row_count(chunk, table)
        if row_end < len(table):
            self.problem = _unreadable(segment, f"the checksum at byte {segment.size + int(table.position[row_end])}")
        if row_end == 0:
            return False
        assert self.producers is not None
        # batches below the snapshot's offset are in the producers already
        first_row = int(np.argmax(np.append(table.last_offset[:row_end] >= self.producers.map_end_offset, True)))
        try:
            completed = producer_update.step(self.producers, chunk, table, first_row, row_end)
            aborted_transactions.step(segment.aborted, completed)
        except LogstoreError as error:
            error.path = segment.path(LOG_SUFFIX)
            if error.position is not None:
                error.position += segment.size  # it was told of the chunk
            raise
        next_offset = int(table.last_offset[row_end - 1]) + 1
        segment.add(chunk, table, row_end)
        self.end_offset = max(self.end_offset, next_offset)
        self.producers.map_end_offset = self.end_offset
        return True


def _unreadable(segment: LiveSegment, what: str) -> CorruptRecordError:
    return CorruptRecordError(
        "A segment cannot be read to its end, and is taken to end before",
        path=segment.path(LOG_SUFFIX),
        position=segment.size,
        found=what,
        advice="if it stays, it is damage and no write on its way: look with `logstore verify`",
    )


def settled_names(directory: PartitionFolder) -> list[str]:
    """List all file names, sorted, until two listings agree: one may miss a file that is renamed meanwhile.

    Raises DirectoryChangedError if no two listings agree.
    """
    names = directory.names()
    for _ in range(_LISTING_COUNT_MAX):
        again = directory.names()
        if again == names:
            return names
        names = again
    raise DirectoryChangedError


def segment_names(names: list[str]) -> dict[int, dict[str, str]]:
    """Return the file names of each segment by suffix, by ascending base offset; segments without `.log` are left out.

    >>> names = ["00.index", "00.log", "05.log", "05.log.swap", "07.index", "09.log.deleted"]
    >>> segment_names(names)
    {0: {'.index': '00.index', '.log': '00.log'}, 5: {'.log': '05.log.swap'}}
    """
    found: dict[int, dict[str, str]] = {}
    for name in sorted(names, key=lambda name: name.endswith(SWAP_SUFFIX)):
        kind = next((kind for kind in SEGMENT_SUFFIXES if name.removesuffix(SWAP_SUFFIX).endswith(kind)), None)
        offset = offset_of(name)
        if kind is not None and offset is not None:
            found.setdefault(offset, {})[kind] = name
    return {offset: found[offset] for offset in sorted(found) if LOG_SUFFIX in found[offset]}


def with_swaps(files: PartitionFiles) -> PartitionFiles:
    """Return the files of a partition with the `.swap` files of segments that have no `.log`.

    They are complete: the cleaner is about to give them their names, or was killed before it did.
    """
    names = [file_name(path) for path in files.left_overs if path.endswith(SWAP_SUFFIX)]
    known = {segment.base_offset for segment in files.segments} if names else set()
    swaps = []
    for base_offset, found in segment_names(names).items():
        if base_offset not in known:
            paths = {kind: child(files.path, name) for kind, name in found.items()}
            swaps.append(SegmentFiles(base_offset, paths[LOG_SUFFIX], *map(paths.get, SEGMENT_SUFFIXES[1:])))
    return files._replace(segments=tuple(sorted([*files.segments, *swaps]))) if swaps else files


def snapshot_names(names: list[str]) -> dict[int, str]:
    """Return the names of the producer snapshots by offset."""
    found = {offset_of(name): name for name in names if name.endswith(PRODUCER_SNAPSHOT_SUFFIX)}
    return {offset: name for offset, name in found.items() if offset is not None}


def offset_of(name: str) -> int | None:
    """Return the offset in a file's name; None for a file that no broker makes."""
    try:
        return base_offset_of(name)
    except InvalidNameError:
        return None
