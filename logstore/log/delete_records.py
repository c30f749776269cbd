"""Records below an offset deleted on request (`Partition.deleteRecordsOnLeader`).

At once no reader sees them; whole segments below the offset go with the next `retain.delete_old_segments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OffsetOutOfRangeError, PolicyViolationError
from .retain import CLEANUP_POLICY, DELETE

if TYPE_CHECKING:
    from .partition_log import PartitionLog

UP_TO_HIGH_WATERMARK = -1


def delete_records(log: PartitionLog, offset: int) -> int:
    """Let the log start at `offset`, or at the high watermark for -1; where it starts now, its low watermark.

    Raises:
        PolicyViolationError: `cleanup.policy` has compact and not delete; an empty one forbids nothing.
        OffsetOutOfRangeError: the offset is negative, or above the high watermark.
    """
    if log.rules.is_compacted and DELETE not in log.config[CLEANUP_POLICY]:
        raise PolicyViolationError(
            f"Records of partition {log.topic_partition} can not be deleted due to the configured policy",
            expected=f"{CLEANUP_POLICY} with {DELETE}",
            found=",".join(log.config[CLEANUP_POLICY]),
        )
    if offset == UP_TO_HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise OffsetOutOfRangeError(f"The offset {offset} for partition {log.topic_partition} is not valid")
    log.increment_log_start_offset(offset)
    return log.log_start_offset
