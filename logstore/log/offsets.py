"""Offsets of a running log, with one method for each way that one moves (`UnifiedLog`, `LocalLog`).

They live in one struct, `LogStruct`, which the append kernel moves too; no other object keeps a copy.
"""

from __future__ import annotations

from ..errors import OffsetOutOfRangeError
from ..folds.open_transactions import OpenTransactions
from ..kernels.append.structs import NO_OFFSET, LogStruct
from ..view.segments import Segments
from .segment.log_segment import LogSegment


class Offsets:
    """Start, end, high watermark, recovery point and first unstable offset of one log.

    The caller of a method holds the log's lock; a single offset may be read without it.

    Attributes:
        struct: holds the offsets, and the size of the active segment.
    """

    def __init__(
        self, struct: LogStruct, segments: Segments[LogSegment], transactions: OpenTransactions, name: str
    ) -> None:
        """Take over a loaded log; `begin` sets where it starts and ends.

        Args:
            segments, transactions: of the log.
            name: of the partition, for messages.
        """
        self.struct = struct
        self._segments = segments
        self._transactions = transactions
        self._name = name

    def begin(self, *, start: int, end: int, recovery_point: int, checkpointed_recovery_point: int) -> None:
        """Set the offsets of a log that was just loaded.

        Args:
            checkpointed_recovery_point: as in the checkpoint file; may be above the log's end.
        """
        struct = self.struct
        struct.log_start_offset, struct.log_end_offset = start, end
        struct.recovery_point, struct.high_watermark = recovery_point, start
        struct.checkpointed_recovery_point = checkpointed_recovery_point
        self.follow_end()

    @property
    def first_unstable_offset(self) -> int | None:
        """Where `read_committed` ends; None if no transaction is open."""
        offset: int = self.struct.first_unstable_offset
        return None if offset == NO_OFFSET else offset

    @property
    def last_stable_offset(self) -> int:
        """Where `read_committed` ends; exclusive (`UnifiedLog.lastStableOffset`). The caller holds the lock.

        The kernel that moves the two offsets runs without the GIL, and a compiler or a processor may reorder stores.
        """
        # the high watermark first: an append between the two reads must not move the end behind its transaction
        high_watermark, offset = self.struct.high_watermark, self.struct.first_unstable_offset
        return int(high_watermark if offset == NO_OFFSET or offset >= high_watermark else offset)

    def written(self, end_offset: int) -> None:
        """Move the log's end behind a batch that is in its file."""
        self.struct.log_end_offset = end_offset

    @property
    def promised_recovery_point(self) -> int:
        """The highest recovery point that a load may use: the log's own, or the one in the checkpoint file."""
        return int(max(self.struct.recovery_point, self.struct.checkpointed_recovery_point))

    def appended(self) -> None:
        """Count the batch that was written, with its producer and transaction."""
        # the size goes last: an interrupt before it leaves a log that takes no more appends
        self.follow_end()
        self.struct.unfinished_size = 0

    def follow_end(self) -> None:
        """Set the high watermark to the log's end (`Partition.maybeIncrementLeaderHW` with one replica)."""
        struct = self.struct
        self.refresh_first_unstable_offset()  # first: see `last_stable_offset`
        struct.high_watermark = struct.log_end_offset

    def may_start_at(self, offset: int) -> bool:
        """Return whether the log starts before `offset`.

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
        """Set the log start; the caller calls `refresh_first_unstable_offset` once everything else has followed."""
        self.struct.log_start_offset = offset

    def synced(self, offset: int) -> None:
        """Raise the recovery point: recovery need not read what is below `offset`."""
        self.struct.recovery_point = max(offset, self.struct.recovery_point)

    def restart_at(self, offset: int) -> None:
        """Set start and end of the log, which is empty now, to `offset`; `follow_end` once its producers are known."""
        struct = self.struct
        struct.log_start_offset = struct.log_end_offset = offset
        # the checkpoint on the disk still has the higher point: `roll` must sync until the log's end has passed it
        struct.checkpointed_recovery_point = max(struct.checkpointed_recovery_point, struct.recovery_point)
        struct.recovery_point = min(struct.recovery_point, offset)

    def refresh_first_unstable_offset(self) -> None:
        """Compute it anew after transactions, high watermark or log start moved (`maybeIncrementFirstUnstableOffset`).

        It is the base offset of a batch. For a transaction that began below the log start, that is the batch that holds
        the log start.
        """
        offset, struct = self._transactions.first_unstable_offset, self.struct
        if offset is not None and offset < struct.log_start_offset:
            offset = self._segments.batch_base_offset(struct.log_start_offset, struct.log_end_offset)
        struct.first_unstable_offset = NO_OFFSET if offset is None else offset
