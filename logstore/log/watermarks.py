"""High watermark, log start offset, and where readers of committed data stop, as they move (`UnifiedLog`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OffsetOutOfRangeError, UsageError
from .flush import raise_recovery_point

if TYPE_CHECKING:
    from .log_state import LogState


def update_high_watermark(log: LogState, offset: int) -> int:
    """All replicas have what is below `offset`; returns the new high watermark, which is one of the log."""
    log.high_watermark = max(min(offset, log.log_end_offset), log.log_start_offset)
    transactions = log.producers.state.transactions
    if transactions.has_unreplicated:
        transactions.drop_replicated(log.high_watermark)
    refresh_first_unstable_offset(log)
    return log.high_watermark


def increment_high_watermark(log: LogState, offset: int) -> bool:
    """As `update_high_watermark`, if that is above; whether it is.

    Raises:
        UsageError: an offset behind the log's end.
    """
    if offset > log.log_end_offset:
        raise UsageError(
            f"High watermark {offset} update exceeds current log end offset {log.log_end_offset}",
            java_class="java.lang.IllegalArgumentException",
        )
    if offset <= log.high_watermark:
        return False
    update_high_watermark(log, offset)
    return True


def increment_log_start_offset(log: LogState, offset: int) -> bool:
    """Let the log start at `offset`; False if it starts there or behind already (`maybeIncrementLogStartOffset`).

    Raises:
        OffsetOutOfRangeError: an offset above the high watermark.
        DataDirectoryError: a file cannot be written.
    """
    if offset > log.high_watermark:
        raise OffsetOutOfRangeError(
            f"Cannot increment the log start offset to {offset} of partition {log.topic_partition} since it is larger "
            f"than the high watermark {log.high_watermark}"
        )
    if offset <= log.log_start_offset:
        return False
    log.log_start_offset = offset
    raise_recovery_point(log, offset)
    if log.epochs.truncate_from_start(offset):
        log.write_epochs()
    log.producers.raise_log_start_offset(offset)
    refresh_first_unstable_offset(log)
    return True


def refresh_first_unstable_offset(log: LogState) -> None:
    """Find it anew: transactions, high watermark or log start have moved (`maybeIncrementFirstUnstableOffset`).

    It is the base offset of a batch: of a transaction that begins below the log's start, or of which a load knows only
    the offset, that of the batch which is there now.
    """
    offset = log.producers.state.transactions.first_unstable_offset
    if offset is not None and (offset < log.loaded_end_offset or offset < log.log_start_offset):
        offset = _batch_base_offset(log, max(offset, log.log_start_offset))
    log.first_unstable_offset = offset


def _batch_base_offset(log: LogState, offset: int) -> int:
    """Base offset of the batch that is there now; looked for once, until segments change."""
    asked, found = (offset, log.segments.change_count), log.batch_found
    if found is None or found[0] != asked:
        base_offset = log.segments.batch_base_offset(offset, log.log_end_offset)
        if base_offset >= log.log_end_offset:  # nothing is there yet
            return base_offset
        found = log.batch_found = asked, base_offset
    return found[1]
