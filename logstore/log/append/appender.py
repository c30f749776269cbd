"""The entry point of all appends to a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import ref

from .fast import FastPath
from .request import AppendInfo, AppendRequest
from .slow import SlowPath

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


class Appender:
    """Appends to one log: by the fast path if it takes the request, else by the slow path.

    Attributes:
        fast, slow: the two paths, which write the same bytes.
        watchers: called once after the next append, under the log's lock; they must not block. The log does not keep
            them alive: on an idle log those of dropped consumers would pile up.
    """

    __slots__ = ("fast", "slow", "watchers")

    def __init__(self, log: PartitionLog) -> None:
        self.fast = FastPath(log)
        self.slow = SlowPath(log)
        self.watchers: tuple[ref[Callable[[], object]], ...] = ()

    def append(self, request: AppendRequest) -> AppendInfo:
        """Append a request; the caller holds the log's lock.

        An interrupt loses the answer, never the state: the log is as before, as after, or takes no more appends.

        Raises:
            KafkaStorageError: the log cannot be written.
            LogstoreError: the request is refused.
        """
        info = self.fast.try_append(request)
        if info is None:
            info = self.slow.append(request)
        if self.watchers:
            # dropped before they are called: a watcher may register itself again
            watchers, self.watchers = self.watchers, ()
            for known in watchers:
                if (watcher := known()) is not None:
                    watcher()
        return info
