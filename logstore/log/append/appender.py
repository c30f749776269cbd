"""The one door of all appends."""

from __future__ import annotations

from collections.abc import Callable
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
        watchers: called after the next append, and then dropped; under the log's lock, so they must not wait.
    """

    __slots__ = ("fast", "slow", "watchers")

    def __init__(self, log: PartitionLog) -> None:
        self.fast = FastPath(log)
        self.slow = SlowPath(log)
        self.watchers: tuple[Callable[[], object], ...] = ()

    def append(self, request: AppendRequest) -> AppendInfo:
        """Append; the caller holds the log's lock.

        An interrupt loses the answer, never the state: the log is as before, as after, or not written any more.

        Raises:
            KafkaStorageError: the log cannot be written.
            LogstoreError: what the request is refused for.
        """
        info = self.fast.try_append(request)
        if info is None:
            info = self.slow.append(request)
        if self.watchers:
            watchers, self.watchers = self.watchers, ()
            for watcher in watchers:
                watcher()
        return info
