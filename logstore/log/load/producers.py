"""Producer state of a partition, with its snapshots (`ProducerStateManager`, `UnifiedLog.rebuildProducerState`).

A load takes the newest readable snapshot, and steps it by the batches above its offset. Snapshots above the log's end,
or at or below its start, describe another log, and are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from ...disk.directory import offset_in_name
from ...disk.side_files import checked_producer_snapshot
from ...errors import CorruptSnapshotError
from ...errors.error import naming_path
from ...folds.producer_state import ProducerState
from ...folds.producer_update import AppendOrigin, ProducerUpdate
from ...layout.file_names import LOG_SUFFIX, PRODUCER_SNAPSHOT_SUFFIX, segment_file_name
from ...view.segments import Segments
from ..segment.log_segment import LogSegment
from ..segment.unsynced_files import UnsyncedFiles
from ..segment.writable_folder import WritableFolder


class PartitionProducers:
    """The producers of one partition, and its snapshots on disk.

    Attributes:
        state: the producers at `state.map_end_offset`.
        snapshots: offset to file name; listed on creation and by `remove_stray_snapshots`.
        now_ms: the time, for producers that expire while a snapshot is loaded.
    """

    def __init__(self, directory: WritableFolder, topic_partition: str, *, now_ms: int, expiration_ms: int) -> None:
        """List the snapshots; `rebuild` fills the state. Raises InvalidNameError for one without an offset."""
        self.state = ProducerState(topic_partition, expiration_ms=expiration_ms)
        self.snapshots: dict[int, str] = {}
        self._directory = directory
        self.now_ms = now_ms
        self._last_snapshot_offset = 0
        self._list_snapshots()

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Remove snapshots that are at no segment's base offset, but the newest if it is at or above the last segment.

        That one is the snapshot of the log's end, taken on shutdown; the others belong to segments that are gone.
        """
        self._list_snapshots()
        bases = set(base_offsets)
        strays = sorted(self.snapshots.keys() - bases)
        if strays and (not bases or strays[-1] >= max(bases)):
            strays.pop()
        for offset in strays:
            self._remove_snapshot(offset, "is a snapshot of no segment's base offset")

    def rebuild(
        self, segments: Segments[LogSegment], *, log_start_offset: int, end_offset: int, is_after_clean_shutdown: bool
    ) -> None:
        """Bring the state to `end_offset`, and take the snapshots that a load takes."""
        kept_offsets = [*segments.base_offsets[-2:], end_offset]
        # as in Kafka: without any snapshot it is a log from before producers had a state, and no batch is read
        if is_after_clean_shutdown and not self.snapshots:
            for offset in kept_offsets:
                self.state.map_end_offset = offset
                self.take_snapshot()
            return
        # as in Kafka, an empty state that has reached its end is not filled, even if snapshots say more
        is_at_end = not len(self.state) and self.state.map_end_offset >= end_offset
        self._truncate_and_reload(log_start_offset, end_offset)
        if end_offset > self.state.map_end_offset and not is_at_end:
            for segment in segments.between(self.state.map_end_offset, end_offset):
                start_offset = max(segment.base_offset, self.state.map_end_offset, log_start_offset)
                self.state.map_end_offset = start_offset
                if segment.base_offset in kept_offsets:
                    self.take_snapshot()
                is_last = segment is segments.floor(end_offset)
                self._step_segment(segment, start_offset, end_offset if is_last else None)
        self.state.map_end_offset = end_offset
        self.take_snapshot()

    def take_snapshot(self, unsynced: UnsyncedFiles | None = None) -> None:
        """Write a snapshot, if the state has moved on since the last one.

        Args:
            unsynced: gets the file, to be synced later; None syncs it now. A load takes an older snapshot for one that
                a crash has torn.
        """
        offset = self.state.map_end_offset
        if offset > self._last_snapshot_offset:
            self.put_snapshot(offset, self.state.to_snapshot_bytes(), unsynced)

    def put_snapshot(self, offset: int, content: bytes, unsynced: UnsyncedFiles | None = None) -> None:
        """Write a snapshot for `offset`, unless there is one as late as that; see `take_snapshot`."""
        if offset <= self._last_snapshot_offset:
            return
        name = segment_file_name(offset, PRODUCER_SNAPSHOT_SUFFIX)
        if unsynced is None:
            self._directory.replace(name, content, f"producers as of offset {offset}")
        else:
            unsynced.add(PRODUCER_SNAPSHOT_SUFFIX, self._directory.replace_unsynced(name, content))
        self.snapshots[offset] = name
        self._last_snapshot_offset = offset

    def digest(self) -> bytes:
        """Return a digest that is equal for equal states that were reached in the same way."""
        state = self.state
        parts = state.buffers.entries, state.transactions.ongoing_entries()
        numbers = state.map_end_offset, self._last_snapshot_offset
        hashed = blake2b(repr(numbers).encode())
        for part in parts:
            hashed.update(part.tobytes())
        return hashed.digest()

    def start_at(self, offset: int) -> None:
        """Forget all producers and remove all snapshots: the log restarts at `offset` (`truncateFullyAndStartAt`)."""
        self.state.start_at(offset)
        for snapshot_offset in sorted(self.snapshots):
            self._remove_snapshot(snapshot_offset, f"the log starts anew at offset {offset}")
        self._last_snapshot_offset = 0

    def raise_log_start_offset(self, offset: int) -> None:
        """Note the later log start; producers and snapshots stay (`onLogStartOffsetIncremented`)."""
        self.state.raise_log_start_offset(offset)
        self._last_snapshot_offset = max(self.snapshots, default=offset)

    def remove_snapshots_of(self, segments: Iterable[LogSegment]) -> None:
        """Remove the snapshots at the base offsets of removed segments (`deleteProducerSnapshots`)."""
        for segment in segments:
            self._remove_snapshot(segment.base_offset, "belongs to a segment that was removed")

    def _list_snapshots(self) -> None:
        names = [name for name in self._directory.names() if name.endswith(PRODUCER_SNAPSHOT_SUFFIX)]
        self.snapshots = {offset_in_name(self._directory.file(name)): name for name in names}

    def _remove_snapshot(self, offset: int, reason: str) -> None:
        name = self.snapshots.pop(offset, None)
        if name is not None:
            self._directory.delete(name, reason)

    def _truncate_and_reload(self, log_start_offset: int, end_offset: int) -> None:
        for offset in sorted(self.snapshots):
            if offset > end_offset:
                self._remove_snapshot(offset, f"is of more than the log up to offset {end_offset}, which is read anew")
            elif offset <= log_start_offset:
                self._remove_snapshot(offset, f"is not above offset {log_start_offset}, where the log starts")
        if end_offset != self.state.map_end_offset:
            self.state.clear()
            self._load_newest(log_start_offset)
            return
        self.raise_log_start_offset(log_start_offset)

    def _load_newest(self, log_start_offset: int) -> None:
        while self.snapshots:
            offset = max(self.snapshots)
            try:
                snapshot = checked_producer_snapshot(self._directory.read(self.snapshots[offset]))
            except CorruptSnapshotError as error:
                self._remove_snapshot(offset, str(error.message))
                continue
            self.state.load(snapshot, offset, self.now_ms)
            self._last_snapshot_offset = offset
            return
        self.state.map_end_offset = log_start_offset
        self._last_snapshot_offset = log_start_offset

    def _step_segment(self, segment: LogSegment, start_offset: int, end_offset: int | None) -> None:
        """Step the batches of a segment from the one that holds `start_offset` up to that of `end_offset`."""
        end_place = None if end_offset is None else segment.place_of(end_offset)
        size = segment.size if end_place is None else end_place.position
        start = segment.place_of(start_offset)
        if start is None:
            return
        update = ProducerUpdate(self.state, AppendOrigin.REPLICATION)
        with naming_path(segment.path(LOG_SUFFIX)):
            for data, table in segment.mapped_batches(start.position, size):
                update.step(data, table, 0, len(table))
            update.commit()
