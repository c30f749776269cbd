"""The offsets of a running log, and each way that one of them moves (`UnifiedLog`, `LocalLog`).

They live in one struct, `LogStruct`, which the kernel of an append moves as well; nothing else remembers them.
"""

from __future__ import annotations

from ..errors import OffsetOutOfRangeError
from ..folds.open_transactions import OpenTransactions
from ..kernels.append.structs import NO_OFFSET, LogStruct
from ..view.segments import Segments
from .segment.log_segment import LogSegment


class Offsets:
    """Start, end, high watermark, recovery point and first unstable offset of one log.

    Whoever calls a method holds the log's lock; a single offset may be read without.

    Attributes:
        struct: where they are; the size of the active segment is there as well.
    """

    def __init__(
        self, struct: LogStruct, segments: Segments[LogSegment], transactions: OpenTransactions, name: str
    ) -> None:
        """Take over a loaded log; `begin` says where it starts and ends.

        Args:
            segments, transactions: of the log.
            name: of the partition, for messages.
        """
        self.struct = struct
        self._segments = segments
        self._transactions = transactions
        self._name = name
        self._batch_found: tuple[tuple[int, int], int] | None = None

    def begin(self, *, start: int, end: int, recovery_point: int, checkpointed_recovery_point: int) -> None:
        """Let the log be as it was loaded.

        Args:
            checkpointed_recovery_point: as the checkpoint has it; it may be above the log's end.
        """
        struct = self.struct
        struct.log_start_offset, struct.log_end_offset, struct.loaded_end_offset = start, end, end
        struct.recovery_point, struct.high_watermark = recovery_point, start
        struct.checkpointed_recovery_point = checkpointed_recovery_point
        self.follow_end()

    @property
    def first_unstable_offset(self) -> int | None:
        """Where readers of committed data stop; None if nothing is open."""
        offset: int = self.struct.first_unstable_offset
        return None if offset == NO_OFFSET else offset

    @property
    def last_stable_offset(self) -> int:
        """What readers of committed data read up to; exclusive (`UnifiedLog.lastStableOffset`)."""
        offset, high_watermark = self.struct.first_unstable_offset, self.struct.high_watermark
        return int(high_watermark if offset == NO_OFFSET or offset >= high_watermark else offset)

    def written(self, end_offset: int) -> None:
        """The log ends behind a batch that is in its file."""
        self.struct.log_end_offset = end_offset

    @property
    def promised_recovery_point(self) -> int:
        """The highest recovery point that a load may go by: that of the log, or of the checkpoint."""
        return int(max(self.struct.recovery_point, self.struct.checkpointed_recovery_point))

    def appended(self) -> None:
        """The batch that was written counts, and its producer and transaction do."""
        self.follow_end()
        self.struct.unfinished_size = 0

    def follow_end(self) -> None:
        """Let the high watermark be the log's end (`Partition.maybeIncrementLeaderHW` of an only replica)."""
        struct = self.struct
        # before the high watermark: readers without the lock see no open transaction
        self.refresh_first_unstable_offset()
        struct.high_watermark = struct.log_end_offset

    def may_start_at(self, offset: int) -> bool:
        """Whether the log starts before `offset`.

        Raises:
            OffsetOutOfRangeError: an offset above the high watermark.
        """
        if offset > self.struct.high_watermark:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} of partition {self._name} since it is larger than "
                f"the high watermark {self.struct.high_watermark}"
            )
        return bool(offset > self.struct.log_start_offset)

    def raise_log_start(self, offset: int) -> None:
        """The log starts at `offset`, see `may_start_at`; `refresh_first_unstable_offset` once all follows."""
        self.struct.log_start_offset = offset

    def synced(self, offset: int) -> None:
        """What is below `offset` need not be looked at after a crash."""
        self.struct.recovery_point = max(offset, self.struct.recovery_point)

    def restart_at(self, offset: int) -> None:
        """Let the log, which is empty now, start and end at `offset`; `follow_end` once its producers are known."""
        struct = self.struct
        struct.log_start_offset = struct.log_end_offset = offset
        struct.checkpointed_recovery_point = max(struct.checkpointed_recovery_point, struct.recovery_point)
        struct.recovery_point = min(struct.recovery_point, offset)

    def producers_loaded(self) -> None:
        """Of transactions that began before the log's end only the offset is known from now on."""
        self.struct.loaded_end_offset = self.struct.log_end_offset

    def refresh_first_unstable_offset(self) -> None:
        """Find it anew: transactions, high watermark or log start have moved (`maybeIncrementFirstUnstableOffset`).

        It is the base offset of a batch: of a transaction that begins below the log's start, or of which a load knows
        only the offset, that of the batch which is there now.
        """
        offset, struct = self._transactions.first_unstable_offset, self.struct
        if offset is not None and (offset < struct.loaded_end_offset or offset < struct.log_start_offset):
            offset = self._batch_base_offset(max(offset, struct.log_start_offset))
        struct.first_unstable_offset = NO_OFFSET if offset is None else offset

    def _batch_base_offset(self, offset: int) -> int:
        """Base offset of the batch that is there now; looked for once, until segments change."""
        asked, found = (offset, self._segments.change_count), self._batch_found
        if found is None or found[0] != asked:
            end_offset = self.struct.log_end_offset
            base_offset = self._segments.batch_base_offset(offset, end_offset)
            if base_offset >= end_offset:  # nothing is there yet
                return base_offset
            found = self._batch_found = asked, base_offset
        return found[1]
