"""Opening a partition: create or recover its directory, and open the last segment (`UnifiedLog.create`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from ...config.topic import KAFKA_VERSION
from ...disk.atomic import CHECKPOINT_TEMPORARY_SUFFIX, replace_file
from ...disk.names import absolute_path, child, parent
from ...disk.seam import SEAM, Seam
from ...disk.side_files import read_partition_metadata
from ...errors import CheckpointFormatError, InconsistentTopicIdError
from ...layout import leader_epoch_checkpoint, partition_metadata
from ...layout.checkpoint_writing import partition_metadata_bytes
from ...layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name
from ..partition_log import PartitionLog
from ..segment.active_segment import ActiveSegment
from ..segment.writable_folder import WritableFolder
from ..state import LogHost, LogState
from .loader import LoadSettings, LogLoader
from .recover import partition_of
from .removals import RecoveryPlan, Removal

_LOGGER = logging.getLogger("logstore")


class PlannedLog:
    """A partition whose opening is planned: everything is read, and nothing in its directory has changed.

    Attributes:
        path: of the directory, absolute.
        topic_partition: its name.
    """

    def __init__(
        self,
        path: str,
        settings: LoadSettings,
        *,
        seam: Seam = SEAM,
        topic_id: str | None = None,
    ) -> None:
        """Plan the recovery of the partition directory at `path`; create the directory if it is missing.

        Args:
            topic_id: in Kafka's 22 characters; will be written to `partition.metadata` if that is missing.

        Raises:
            InconsistentTopicIdError: the directory belongs to another topic.
            TooManyOpenFilesError: the process may open no more files.
            LogstoreError: as `recover.plan_recovery`.
        """
        settings.open_files.require_spare()
        path = absolute_path(path)
        name = partition_of(path)
        self.topic_partition = f"{name.topic}-{name.partition}"
        self.path, self._settings = path, settings
        if not os.path.isdir(path):
            seam.make_directory(path)
            seam.sync_directory(parent(path))
        self._directory = WritableFolder(path, seam, settings.config[KAFKA_VERSION], settings.open_files)
        self._directory.plan()
        self._topic_id = _topic_id(self._directory, self.topic_partition, topic_id)
        self._loader = LogLoader(self._directory, self.topic_partition, settings, opens_for_appends=True)
        self._loader.plan()

    @property
    def removals(self) -> Sequence[Removal]:
        """Bytes of logs that the recovery removes."""
        return self._loader.removals

    @property
    def summary(self) -> RecoveryPlan:
        """What the opening would do."""
        return self._loader.summary

    def require_accepted(self) -> None:
        """Raise RecoveryLossError if readable batches would go, and the settings do not accept that."""
        self._loader.require_accepted()

    def open(self, host: LogHost) -> PartitionLog:
        """Recover as planned, and open for appends, under the data directory's lock; raises as `recover_partition`."""
        self.require_accepted()
        self._loader.apply()
        return PartitionLog(_running(self._loader, host, self._topic_id), _opened_again)


def make_log(path: str, topic_id: str | None, seam: Seam) -> None:
    """Write the files of an empty log into its new directory, as an opening would; durable on return."""
    if topic_id is not None:
        data = partition_metadata_bytes(topic_id)
        replace_file(seam, child(path, partition_metadata.FILE_NAME), data, syncs_name=False)
    kinds = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
    for name in (leader_epoch_checkpoint.FILE_NAME, *(segment_file_name(0, kind) for kind in kinds)):
        seam.close(seam.create(child(path, name)))
    seam.sync_directory(path)


def _topic_id(directory: WritableFolder, topic_partition: str, topic_id: str | None) -> str | None:
    """Return the id in `partition.metadata`; write one that is given if the file is missing or does not parse."""
    name = partition_metadata.FILE_NAME
    if not directory.exists(name):
        if topic_id is not None:
            _write_topic_id(directory, topic_id, "was missing")
        return topic_id
    if topic_id is not None and directory.read(name) == partition_metadata_bytes(topic_id):
        return topic_id
    try:
        known = read_partition_metadata(directory.file(name)).topic_id
    except CheckpointFormatError:
        if topic_id is None:
            raise
        _write_topic_id(directory, topic_id, "did not parse")
        return topic_id
    if topic_id not in (None, known):
        raise InconsistentTopicIdError(
            f"Tried to assign topic ID {topic_id} to log for topic partition {topic_partition},but log already "
            f"contained topic ID {known}",
            path=directory.file(name),
        )
    return known


def _write_topic_id(directory: WritableFolder, topic_id: str, reason: str) -> None:
    data = partition_metadata_bytes(topic_id)
    directory.replace(partition_metadata.FILE_NAME, data, reason, temporary_suffix=CHECKPOINT_TEMPORARY_SUFFIX)


def _opened_again(old: LogState) -> LogState:
    """Load a log whose state was put aside, as after a crash of the process: what was written is in its files."""
    settings = LoadSettings(
        was_clean=False,
        recovery_point=old.recovery_point,
        log_start_offset=old.log_start_offset if old.remote_start_offset is None else old.remote_start_offset,
        now_ms=old.host.now_ms(),
        config=old.config,
        accepts_loss=False,
        open_files=old.directory.open_files,
    )
    directory = WritableFolder(
        old.directory.path, old.directory.seam, old.config[KAFKA_VERSION], old.directory.open_files
    )
    loader = LogLoader(directory, old.topic_partition, settings, opens_for_appends=True)
    loader.load()
    state = _running(loader, old.host, old.topic_id)
    if old.active.descriptor >= 0:  # before that is closed: the system tells its errors to open descriptors only
        state.open_active()
    return state


def _running(loader: LogLoader, host: LogHost, topic_id: str | None) -> LogState:
    """Open the last segment of a loaded log for appends; a new one is preallocated."""
    state = loader.state
    state.topic_id, state.host, state.last_flush_ms = topic_id, host, host.now_ms()
    state.producers.state.requires_verification = host.requires_verification
    for segment in state.segments:
        segment.created_ms, segment.roll_jitter_ms = state.last_flush_ms, state.draw_roll_jitter_ms()
    last = state.segments.last
    assert last is not None
    active = ActiveSegment.resume(last, state.config, is_durable=state.recovery_point >= state.log_end_offset)
    if loader.has_made_segment:
        active.preallocate()
    state.activate(active)
    state.follow_end()
    if state.remote_start_offset is not None:
        _LOGGER.warning(
            "Records of %s from offset %d to %d are in remote storage: a broker with tiered storage reads them",
            *(state.topic_partition, state.remote_start_offset, state.log_start_offset - 1),
        )
    return state
