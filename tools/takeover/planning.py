"""Plan of an opening: every log is recovered as `logstore.open` recovers it, up to the first change.

So a command knows before what will go, and fails where the opening would fail. Logs that are opened later, after an
orderly close, are planned too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from logstore.config.broker import parse_broker_config
from logstore.coordinator.transactions.transaction import from_record
from logstore.disk.directory import partition_directories
from logstore.disk.names import child
from logstore.disk.seam import SEAM
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import directory_name
from logstore.layout.offset_checkpoint import (
    CLEANER_OFFSET_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from logstore.layout.partition_metadata import METADATA_TOPIC_ID
from logstore.log.load.loader import LoadSettings
from logstore.log.load.opening import PlannedLog
from logstore.log.load.removals import RecoveryPlan
from logstore.model import TopicPartition
from logstore.replay.directory_fates import Fate, directory_fates
from logstore.replay.internal_topic import ReplayedRecord, errors_of, replayed
from logstore.replay.metadata_state import read_metadata
from logstore.store.checkpoints import Checkpoints
from logstore.store.metadata import log as metadata_log
from logstore.store.metadata.suitability import quorum_of
from logstore.store.metadata.topic_changes import wanted_partitions
from logstore.store.opening.formatting import NODE_ID
from logstore.store.partitions import WantedPartition, naming
from logstore.topics import transaction_state
from logstore.view.partition_reader import PartitionReader

from .inspection import Inspection


def plan_opening(found: Inspection, now_ms: int) -> dict[TopicPartition, RecoveryPlan]:
    """Return what opening the inspected directory would do to each log, that of the metadata first; change nothing."""
    plans = {}
    metadata_path = child(found.path, metadata_log.DIRECTORY_NAME)
    if os.path.isdir(metadata_path):
        state = read_metadata(metadata_path)
        quorum_of(metadata_path, state.kraft_version)
        settings = metadata_log.load_settings(now_ms, accepts_loss=True)
        plan = plans[metadata_log.KEY] = PlannedLog(metadata_path, settings, topic_id=METADATA_TOPIC_ID).summary
        metadata_log.require_kept_levels(state, plan.removals, metadata_path)
    checkpoints = Checkpoints(found.path, SEAM)
    for wanted, path in _wanted(found):
        settings = LoadSettings(
            found.was_clean,
            checkpoints.get(RECOVERY_POINT_FILE_NAME, wanted.key) or 0,
            checkpoints.get(LOG_START_OFFSET_FILE_NAME, wanted.key) or 0,
            now_ms,
            wanted.config,
            was_cleaned=checkpoints.get(CLEANER_OFFSET_FILE_NAME, wanted.key) is not None,
        )
        with naming(wanted.key):
            plan = plans[wanted.key] = PlannedLog(path, settings, topic_id=wanted.topic_id).summary
            if wanted.key.topic == transaction_state.TOPIC and not plan.removals:
                _require_readable_transactions(path)
    return plans


def lost_ends(found: Inspection, plans: Mapping[TopicPartition, RecoveryPlan]) -> list[str]:
    """Return which logs end before what was flushed, though nothing is removed, or have no directory, in words.

    Somebody deleted files, or the disk lost them. No opening tells, and new records get the offsets again.
    """
    checkpoints, texts = Checkpoints(found.path, SEAM), []
    for key in (TopicPartition(name, number) for name, count in found.topics.items() for number in range(count)):
        plan, point = plans.get(key), checkpoints.get(RECOVERY_POINT_FILE_NAME, key) or 0
        name = directory_name(*key)
        if plan is None and not os.path.lexists(child(found.path, name)):
            end, how = 0, "has no directory"
        elif plan is not None and not plan.removals:
            end, how = plan.end_offset, f"ends at offset {plan.end_offset}"
        else:
            continue
        if point > end:
            lost = f"{name} {how}, and was flushed up to {point}: {point - end} offsets are gone"
            texts.append(f"{lost}, and new records get them again: put back its files, or see `logstore verify`")
    return texts


def _require_readable_transactions(path: str) -> None:
    """Read a partition of `__transaction_state` as its coordinator does when the store is opened."""
    last = dict[bytes, ReplayedRecord]()
    for record in replayed(PartitionReader(path)):
        if isinstance(record, ReplayedRecord) and record.key is not None:
            with errors_of(path, record.offset):
                if transaction_state.unknown_version(record.key, record.value) is None:
                    last[record.key] = record
    for key, record in last.items():
        with errors_of(path, record.offset):
            if record.value is not None:
                from_record(key, record.value)


def _wanted(found: Inspection) -> list[tuple[WantedPartition, str]]:
    """Return the partitions that have a directory, as they would be opened, with the directory's path now.

    Raises DataDirectoryError if the directory of another cannot be made, as a file is in its place.
    """
    paths = {
        TopicPartition(*directory.key): directory.path
        for directory in directory_fates(partition_directories(found.path), found.image)
        if directory.fate in (Fate.SERVED, Fate.MOVED) or directory.lacks_id
    }
    node_id = NODE_ID if found.properties is None or found.properties.node_id is None else found.properties.node_id
    wanted = wanted_partitions(found.image, node_id, parse_broker_config({}))
    for partition in wanted:
        place = child(found.path, directory_name(*partition.key))
        if partition.key not in paths and os.path.lexists(place) and not os.path.isdir(place):
            text, advice = "This is in the place of a partition's directory", "move it away"
            raise DataDirectoryError(text, path=place, expected="a directory", found="something else", advice=advice)
    return [(partition, paths[partition.key]) for partition in wanted if partition.key in paths]
