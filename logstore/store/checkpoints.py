"""Offset checkpoints in the root of a data directory (`LogManager`), and `.kafka_cleanshutdown` beside them.

A checkpoint that does not parse is refused, as a broker ends at one. One that is missing or empty tells nothing:
without recovery points more is recovered, without log starts deleted records come back. The mark of a clean shutdown
says that the logs need no recovery (`CleanShutdownFileHandler`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from ..calls import CHECKPOINTS, alone
from ..disk.atomic import replace_file
from ..disk.names import child
from ..disk.seam import Seam
from ..disk.side_files import read_offset_checkpoint
from ..errors import CheckpointFormatError
from ..layout import clean_shutdown
from ..layout.checkpoint_writing import clean_shutdown_bytes, offset_checkpoint_bytes
from ..layout.offset_checkpoint import (
    CLEANER_OFFSET_FILE_NAME,
    FILE_NAMES,
    HIGH_WATERMARK_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from ..log.partition_log import PartitionLog
from ..model import TopicPartition

Offsets = dict[TopicPartition, int]
Logs = Mapping[TopicPartition, PartitionLog]

#: the offset of a log for each file; None leaves the log out
_OFFSET_OF: dict[str, Callable[[PartitionLog], int | None]] = {
    RECOVERY_POINT_FILE_NAME: lambda log: log.recovery_point,
    LOG_START_OFFSET_FILE_NAME: PartitionLog.start_inside,  # only of logs that start inside their first segment
    HIGH_WATERMARK_FILE_NAME: lambda log: log.high_watermark,
}


#: what follows if a file is missing
_WITHOUT = {
    RECOVERY_POINT_FILE_NAME: "logs are recovered whole after a crash",
    LOG_START_OFFSET_FILE_NAME: "records that were deleted come back, up to the start of their segment",
    HIGH_WATERMARK_FILE_NAME: "it is written anew",
    CLEANER_OFFSET_FILE_NAME: "logs are cleaned from their start on",
}


class Checkpoints:
    """The four files of one data directory, each written by one thread at a time."""

    def __init__(self, root: str, seam: Seam) -> None:
        """Read the files that exist."""
        self._root, self._seam, self._lock = root, seam, threading.Lock()
        # the cleaner's offsets are kept current, the others stay as at the opening
        self._offsets = {name: self._read(name) for name in FILE_NAMES}

    def get(self, name: str, key: TopicPartition) -> int | None:
        """Return a log's offset in the file of this name as of the opening; in the cleaner's file the present one."""
        return self._offsets[name].get(key)

    def write(self, name: str, partitions: Callable[[], tuple[Logs, Iterable[TopicPartition]]]) -> None:
        """Write one of the files; a log that is not open yet keeps its entry.

        `partitions` returns the open logs, and the partitions that are not open.
        """
        with alone(CHECKPOINTS), self._lock:
            # asked under the lock: the next topic of a deleted one's name must not get the offsets of the old log
            logs, waiting = partitions()
            offsets = {key: self.get(name, key) for key in waiting}
            offsets |= {key: _OFFSET_OF[name](log) for key, log in logs.items()}
            self._replace(name, offsets)

    def keep_only(self, keys: Collection[TopicPartition]) -> None:
        """Forget partitions that no longer exist, before any log is open: a new one of the same name starts at 0."""
        with alone(CHECKPOINTS), self._lock:
            for name, offsets in self._offsets.items():
                gone = offsets.keys() - keys
                for key in gone:
                    del offsets[key]
                if not gone:
                    continue
                self._replace(name, offsets)

    def begin(self, key: TopicPartition) -> None:
        """Note a new log, which has its entries before it is opened."""
        for name in (RECOVERY_POINT_FILE_NAME, HIGH_WATERMARK_FILE_NAME):
            self._offsets[name][key] = 0

    def forget(self, key: TopicPartition) -> None:
        """Forget a deleted log: in the cleaner's file at once, in the others when they are next written."""
        for name in _OFFSET_OF:
            self._offsets[name].pop(key, None)
        self.set_cleaner_offset(key, lambda: None)

    def set_cleaner_offset(self, key: TopicPartition, offset_of: Callable[[], int | None]) -> None:
        """Write the offset up to which a log was cleaned, asked for under the lock, as in `write`; None of no log."""
        with alone(CHECKPOINTS), self._lock:
            offsets, offset = self._offsets[CLEANER_OFFSET_FILE_NAME], offset_of()
            if offsets.get(key) == offset:
                return
            if offset is None:
                del offsets[key]
            else:
                offsets[key] = offset
            self._replace(CLEANER_OFFSET_FILE_NAME, offsets)

    def _replace(self, name: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Write a file; logs without an offset are left out."""
        known = {key: offset for key, offset in offsets.items() if offset is not None}
        replace_file(self._seam, child(self._root, name), offset_checkpoint_bytes(known))

    def _read(self, name: str) -> Offsets:
        path = child(self._root, name)
        if not os.path.exists(path):
            return {}
        try:
            return {TopicPartition(*key): offset for key, offset in read_offset_checkpoint(path).items()}
        except CheckpointFormatError as error:
            error.path = path
            error.advice = f"no broker starts on it: put it back from a copy, or delete it, and then {_WITHOUT[name]}"
            raise


def take_clean_shutdown(seam: Seam, root: str) -> bool:
    """Remove the mark of an orderly close, durably; return whether it was there."""
    path = child(root, clean_shutdown.FILE_NAME)
    if not os.path.exists(path):
        return False
    seam.unlink(path)
    seam.sync_directory(root)
    return True


def write_clean_shutdown(seam: Seam, root: str, broker_epoch: int) -> None:
    """Mark the directory as closed in order: everything in it is durable."""
    replace_file(seam, child(root, clean_shutdown.FILE_NAME), clean_shutdown_bytes(broker_epoch))
