"""The one door of all appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fast import FastPath
from .request import AppendInfo, AppendRequest
from .slow import SlowPath

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


class Appender:
    """Appends to one log, by the fast path where that takes the request.

    Attributes:
        fast, slow: the two ways, which leave the same bytes.
    """

    __slots__ = ("fast", "slow")

    def __init__(self, log: PartitionLog) -> None:
        self.fast = FastPath(log)
        self.slow = SlowPath(log)

    def append(self, request: AppendRequest) -> AppendInfo:
        """Append; the caller holds the log's lock.

        An interrupt loses the answer, never the state: the log is as before, as after, or not written any more.

        Raises:
            KafkaStorageError: the log cannot be written.
            LogstoreError: what the request is refused for.
        """
        info = self.fast.try_append(request)
        return self.slow.append(request) if info is None else info
