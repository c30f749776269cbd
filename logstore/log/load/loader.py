"""Segments, epochs and producers of a partition, loaded from its files and repaired (`LogLoader`).

A load plans its changes while it reads, and makes them when all is known: an error, or batches that may not go, leave
everything as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ...config.topic import KAFKA_VERSION, PRODUCER_ID_EXPIRATION_MS, LogConfig, is_tiered
from ...disk.directory import offset_in_name
from ...disk.open_files import OPEN_FILES, OpenFiles
from ...disk.side_files import leader_epochs_of
from ...errors import InvalidOffsetError, OffsetOverflowError
from ...errors.error import naming_path
from ...folds.leader_epochs import LeaderEpochs
from ...kernels.append.structs import NO_OFFSET
from ...layout import leader_epoch_checkpoint
from ...layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from ..segment.log_segment import LogSegment
from ..segment.writable_folder import WritableFolder
from ..state import LogState
from .interrupted_swaps import finish_left_overs
from .producers import PartitionProducers
from .removals import RecoveryPlan, Removal, hidden_removal, planned_removals, require_accepted
from .segment_recovery import cut, empty_segment, has_sane_indexes, recover_segment, require_index_room, trim_indexes
from .split import split_overflowed_segment

T = TypeVar("T")

KEPT_PRODUCER_COUNT_MAX = 1000  # with more producers, a segment's recovery is repeated instead of kept in memory
_EPOCHS_REASON = "epochs as of the recovered log"
_INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """What a load needs to know beside the directory.

    Attributes:
        was_clean: the broker that wrote the directory was stopped cleanly; then little is checked.
        recovery_point: the first offset that may not be durable, of `recovery-point-offset-checkpoint`.
        log_start_offset: of `log-start-offset-checkpoint`; 0 without an entry.
        now_ms: the time, for producers that expire.
        config: of `config.parse_config`.
        accepts_loss: readable batches may go, as in a broker; else such a load is refused, and nothing changes.
        open_files: the budget of the running log.
        was_cleaned: the log was compacted once, by `cleaner-offset-checkpoint`, whatever its policy is now, so that a
            swap of cleaned segments may be left.
    """

    was_clean: bool
    recovery_point: int
    log_start_offset: int
    now_ms: int
    config: LogConfig
    accepts_loss: bool = True
    open_files: OpenFiles = OPEN_FILES
    was_cleaned: bool = False


class _OverflowedError(Exception):
    """A segment holds offsets too far above its base; it is split, and the step repeated."""

    def __init__(self, segment: LogSegment) -> None:
        super().__init__()
        self.segment = segment


class _Recovered(NamedTuple):
    """A finished recovery of a segment: starting from the same producers, another one would end the same.

    Attributes:
        before: digest of the producers up to the segment.
        end_offset: behind the batches that were followed.
        snapshot: the producers there.
    """

    before: bytes
    end_offset: int
    snapshot: bytes


class LogLoader:
    """One load; `load` is called once, or `plan` and then `apply`.

    Attributes:
        state: what was loaded; `state.active` is not set, as nothing is open for appends yet.
        has_made_segment: the directory had no segment, so an empty one was made.
        removals: bytes of logs that the plan removes.
    """

    def __init__(
        self,
        directory: WritableFolder,
        topic_partition: str,
        settings: LoadSettings,
        *,
        opens_for_appends: bool = False,
    ) -> None:
        """Read the epochs and list the snapshots.

        Args:
            opens_for_appends: recover the last segment even after a clean start if its index leads to no batch: Kafka
                ends such a log at the segment's base offset, and writes its offsets again. And cut what is behind its
                last whole batch, which a clean start leaves; a broker would append behind it.
        """
        self._directory, self._settings, self._opens_for_appends = directory, settings, opens_for_appends
        self._topic_partition = topic_partition
        directory.plan()
        epochs = LeaderEpochs(leader_epochs_of(directory.path))
        with naming_path(self._directory.path):
            producers = self._new_producers()
        self.state = LogState(directory, topic_partition, settings.config, epochs, producers)
        self.has_made_segment = False
        self.removals: list[Removal] = []
        self._end_position = self._highest_end_offset = 0
        self._recovered: dict[LogSegment, _Recovered] = {}

    def load(self) -> None:
        """Repair and load; raises as `recover.recover_partition`."""
        self.plan()
        self.require_accepted()
        self.apply()

    @property
    def summary(self) -> RecoveryPlan:
        """What the load would do, or did, once it is planned."""
        end_offset = int(self.state.struct.log_end_offset)
        return RecoveryPlan(self._directory.path, tuple(self.removals), tuple(self._directory.repairs), end_offset)

    def require_accepted(self) -> None:
        """Raise RecoveryLossError if readable batches would go, and the settings do not accept that."""
        if not self._settings.accepts_loss:
            require_accepted({self._directory.path: self.removals})

    def apply(self) -> None:
        """Make the planned changes; raises DataDirectoryError."""
        self._directory.apply()

    def plan(self) -> None:
        """Load, and plan the repairs; raises as `recover.recover_partition`, and nothing has changed then."""
        with naming_path(self._directory.path):
            self._load()
            if self._opens_for_appends:
                self._cut_torn_tail()
            is_compacted = self._settings.was_cleaned or "compact" in self._settings.config["cleanup.policy"]
            self.removals = planned_removals(self._directory, is_compacted=is_compacted)
            if self._opens_for_appends and (hidden := self._hidden()) is not None:
                self.removals.append(hidden)

    def _load(self) -> None:
        finish_left_overs(self._directory)
        state, settings, struct = self.state, self._settings, self.state.struct
        struct.recovery_point = struct.checkpointed_recovery_point = settings.recovery_point
        self._split_overflowed(self._load_segments)
        struct.log_end_offset = self._split_overflowed(self._recover_log)
        first, active = state.segments.first, state.segments.last
        assert first is not None
        assert active is not None  # `_recover_log` has made one if there was none
        require_index_room(active, settings.config)
        state.epochs.truncate_from_end(struct.log_end_offset)
        state.epochs.truncate_from_start(settings.log_start_offset)
        self._write_changed_epochs()
        if not self._directory.exists(leader_epoch_checkpoint.FILE_NAME):
            self._directory.replace(leader_epoch_checkpoint.FILE_NAME, b"", "was missing")
        # the checkpoint is older than the last deletion if the first segment begins above it
        struct.log_start_offset = max(settings.log_start_offset, first.base_offset)
        if is_tiered(settings.config) and settings.log_start_offset < first.base_offset:
            state.remote_start_offset = settings.log_start_offset
        state.raise_recovery_point(struct.log_start_offset)
        state.producers.remove_stray_snapshots(state.segments.base_offsets)
        state.producers.rebuild(
            state.segments,
            log_start_offset=struct.log_start_offset,
            end_offset=struct.log_end_offset,
            is_after_clean_shutdown=settings.was_clean,
        )
        self._set_first_unstable_offset()
        struct.high_watermark = struct.log_end_offset
        trims_all = settings.config[KAFKA_VERSION].trims_all_indexes
        for segment in state.segments if trims_all else [active]:
            trim_indexes(segment)
        self._directory.sync()

    def _new_producers(self) -> PartitionProducers:
        return PartitionProducers(
            self._directory,
            self._topic_partition,
            now_ms=self._settings.now_ms,
            expiration_ms=self._settings.config[PRODUCER_ID_EXPIRATION_MS],
        )

    def _write_changed_epochs(self) -> None:
        if self.state.epochs.is_changed:
            self.state.write_epochs(_EPOCHS_REASON)

    def _split_overflowed(self, step: Callable[[], T]) -> T:
        """Run `step`, again after each segment that has to be split for it (`retryOnOffsetOverflow`)."""
        while True:
            try:
                return step()
            except _OverflowedError as overflowed:
                if not split_overflowed_segment(self.state.segments, overflowed.segment, self._settings.config):
                    self.state.producers.remove_snapshots_of([overflowed.segment])

    def _load_segments(self) -> None:
        self.state.segments.clear()
        for name in self._directory.names():
            if name.endswith(_INDEX_SUFFIXES):
                base_offset = offset_in_name(self._directory.file(name))
                if not self._directory.exists(segment_file_name(base_offset, LOG_SUFFIX)):
                    self._directory.delete(name, "is an index without a log")
            elif name.endswith(LOG_SUFFIX):
                segment = LogSegment.open(self._directory, offset_in_name(self._directory.file(name)))
                if not has_sane_indexes(segment):
                    self._make_indexes(segment)
                self.state.segments.add(segment)

    def _make_indexes(self, segment: LogSegment) -> None:
        try:
            self._recover_segment(segment)
        except InvalidOffsetError as error:
            error.advice = (
                "a broker fails here and leaves an index; when it is started again, it would remove all batches of the "
                "segment and behind it, those that can be read too: copy them with `logstore salvage`"
            )
            raise
        cut(segment)

    def _recover_segment(self, segment: LogSegment) -> int:
        """Recover a segment with a producer state that leads up to it; return the bytes to be cut.

        As in Kafka a segment without indexes that was not flushed is recovered twice; here its batches are read once.
        """
        producers = self._new_producers()
        producers.rebuild(
            self.state.segments,
            log_start_offset=self._settings.log_start_offset,
            end_offset=segment.base_offset,
            is_after_clean_shutdown=False,
        )
        known = self._recovered.pop(segment, None)
        before = producers.digest() if len(producers.state) <= KEPT_PRODUCER_COUNT_MAX else None
        # the same producers led up to it before, and it was cut since: the result stands
        if known is not None and known.before == before:
            producers.put_snapshot(known.end_offset, known.snapshot)
            segment.problem = None
            return 0
        try:
            with naming_path(segment.path(LOG_SUFFIX)):
                truncated_size = recover_segment(
                    segment, producers.state, self.state.epochs, self._settings.config, self._write_changed_epochs
                )
        except OffsetOverflowError:
            raise _OverflowedError(segment) from None
        producers.take_snapshot()
        if before is not None and len(producers.state) <= KEPT_PRODUCER_COUNT_MAX:
            snapshot = producers.state.to_snapshot_bytes()
            self._recovered[segment] = _Recovered(before, producers.state.map_end_offset, snapshot)
        return truncated_size

    def _recover_log(self) -> int:
        """Recover what was not flushed; return the log end offset."""
        if not self._settings.was_clean:
            self._recover_unflushed()
        end_offset = self._end_offset()
        if end_offset is None:
            self._add_empty_segment(self._settings.log_start_offset)
            self._end_position, end_offset = 0, self._settings.log_start_offset
        elif self._settings.was_clean:
            self.state.struct.recovery_point = end_offset
        self.state.struct.recovery_point = min(self.state.struct.recovery_point, end_offset)
        return end_offset

    def _recover_unflushed(self) -> None:
        unflushed = self.state.segments.between(self.state.recovery_point)
        for number, segment in enumerate(unflushed):
            try:
                truncated_size = self._recover_segment(segment)
            except InvalidOffsetError as error:
                truncated_size = empty_segment(segment)
                segment.problem = error
            if truncated_size:
                # what lies behind the cut first: a crash in between must find the cut undone and decide the same
                self._remove(unflushed[number + 1 :], f"lies behind the cut in segment {segment.base_offset}")
                cut(segment)
                return
            cut(segment)

    def _end_offset(self) -> int | None:
        """Return the offset behind the last batch; None, with all segments removed, if the log starts behind it."""
        last = self.state.segments.last
        if last is None:
            return None
        end_offset, self._end_position, self._highest_end_offset = last.highest_end()
        if self._opens_for_appends and last.size and end_offset == last.base_offset:
            self._recover_segment(last)
            cut(last)
            end_offset, self._end_position, self._highest_end_offset = last.highest_end()
        if end_offset < 0:
            raise OffsetOverflowError(
                f"No offset can follow on the last batch of segment {last.base_offset}",
                path=last.path(LOG_SUFFIX),
                expected=f"offsets from {last.base_offset} on",
                found=end_offset - 1 + 2**64,
                advice="its offset is damaged, which no checksum covers; a broker would delete the whole log",
            )
        if end_offset >= self._settings.log_start_offset:
            return end_offset
        reason = f"the log ends at offset {end_offset} and starts at {self._settings.log_start_offset}"
        # the segments last: while one is left, a load after a crash takes this branch again
        self.state.epochs.clear()
        self.state.write_epochs(_EPOCHS_REASON)
        self.state.producers.start_at(self._settings.log_start_offset)
        self._remove(list(self.state.segments), reason)
        return None

    def _cut_torn_tail(self) -> None:
        segment, size = self.state.segments.last, self._end_position
        assert segment is not None
        if size < segment.size:
            name = segment.file_name(LOG_SUFFIX)
            self._directory.truncate(name, size, f"cut {segment.size - size} bytes behind the last whole batch")
            segment.size = size

    def _hidden(self) -> Removal | None:
        """Return the batches of the last segment at or above the end of the log: its last batch goes back."""
        last, settings = self.state.segments.last, self._settings
        if last is None or self._highest_end_offset <= self.state.log_end_offset:
            return None
        if settings.was_clean and settings.recovery_point == self.state.log_end_offset:
            return None  # it was closed with this end, so a load before has accepted it
        with last.map_log() as log:
            return hidden_removal(log, last.file_name(LOG_SUFFIX), self.state.log_end_offset)

    def _remove(self, segments: Sequence[LogSegment], reason: str) -> None:
        """Remove segments and their snapshots, the last first, so that no crash leaves a gap."""
        for segment in reversed(segments):
            for kind in SEGMENT_SUFFIXES:
                self._directory.delete(segment.file_name(kind), reason)
            self.state.segments.remove(segment.base_offset)
        self.state.producers.remove_snapshots_of(segments)
        self._directory.sync()

    def _add_empty_segment(self, base_offset: int) -> None:
        for kind in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._directory.replace(segment_file_name(base_offset, kind), b"", "there was no segment")
        self.has_made_segment = True
        self.state.segments.add(LogSegment.open(self._directory, base_offset))

    def _set_first_unstable_offset(self) -> None:
        """Set it to the base offset of its batch; raise CorruptRecordError if a clean start finds none."""
        state, offset = self.state, self.state.producers.state.transactions.first_unstable_offset
        if offset is not None:
            offset = state.segments.batch_base_offset(max(offset, state.log_start_offset), state.log_end_offset)
        state.struct.first_unstable_offset = NO_OFFSET if offset is None else offset
