"""Recovery of a partition directory in place, as a starting broker does it (`UnifiedLog.create`).

After a clean shutdown almost nothing is read. After any other, every segment from the recovery point on is read, cut
behind its last good batch and given new indexes; segments behind one that was cut are removed. Files and state are then
those that Apache Kafka 4.3.1 leaves when it opens the directory and closes it again.

Everything is planned before anything changes (`plan_recovery`): the plan names the readable batches that would go.

Recovery that crashes and runs again ends in the same state: what is removed because of some evidence goes before that
evidence. The caller must own the directory, see `disk.lock`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ...config.topic import KAFKA_VERSION
from ...disk.directory import partition_name
from ...disk.names import absolute_path
from ...disk.seam import SEAM, Seam
from ...disk.side_files import topic_id_of
from ...errors import DataDirectoryError, UsageError
from ...layout.file_names import DirectoryKind, PartitionDirectory
from ..segment.writable_folder import WritableFolder
from ..state import LogState
from .loader import LoadSettings, LogLoader
from .removals import RecoveryPlan


def recover_partition(
    path: str, settings: LoadSettings, seam: Seam = SEAM, *, before_cut: Callable[[], object] = lambda: None
) -> tuple[LogState, RecoveryPlan]:
    """Recover the partition directory at `path`, in place and durably; call `before_cut` before bytes of logs go.

    Returns:
        The state in which a broker with one replica would continue, not open for appends; and what was done.

    Raises:
        InvalidNameError: the directory's name is no partition's, or a file's name holds no offset.
        UsageError: the directory is being deleted.
        DataDirectoryError: a file cannot be read or written, or is a symbolic link.
        RecoveryLossError: readable batches would go, and the settings do not accept that; nothing has changed.
        CheckpointFormatError: `leader-epoch-checkpoint` or `partition.metadata` does not parse.
        CorruptRecordError, CorruptIndexError, InvalidRecordError, InvalidTxnStateError, IndexFullError,
        OffsetOverflowError, InvalidOffsetError: damage that keeps a broker from starting too.
    """
    loader = _loader(path, settings, seam)
    loader.plan()
    loader.require_accepted()
    if loader.removals:
        before_cut()
    loader.apply()
    return loader.state, loader.summary


def plan_recovery(path: str, settings: LoadSettings) -> RecoveryPlan:
    """Return what a recovery of the partition directory at `path` would do; change nothing.

    It is the recovery itself, up to the first change. Raises as `recover_partition`, but accepts every loss.
    """
    loader = _loader(path, settings, SEAM)
    loader.plan()
    return loader.summary


def _loader(path: str, settings: LoadSettings, seam: Seam) -> LogLoader:
    path = absolute_path(path)
    name = partition_of(path)
    if not os.path.isdir(path):
        raise DataDirectoryError("There is no such directory", path=path)
    directory = WritableFolder(path, seam, settings.config[KAFKA_VERSION])
    loader = LogLoader(directory, f"{name.topic}-{name.partition}", settings)
    loader.state.topic_id = topic_id_of(path)  # before anything changes
    return loader


def partition_of(path: str) -> PartitionDirectory:
    """Parse the name of a partition's directory; raise InvalidNameError, or UsageError if it is being deleted."""
    name = partition_name(path)
    if name.kind is DirectoryKind.DELETE:
        raise UsageError(
            "The directory is being deleted, there is nothing to recover",
            path=path,
            advice="a broker deletes it; to have the partition back, rename it to topic-partition first",
        )
    return name
