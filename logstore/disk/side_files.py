"""Reading the files beside a `.log`, from path to value.

Every function raises DataDirectoryError if the file cannot be read, and what the parser in `layout` raises if it does
not parse. None writes, none creates a missing file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ..errors import CheckpointFormatError
from ..kernels.scan.crc32c import crc32c
from ..layout import clean_shutdown, leader_epoch_checkpoint, meta_properties, partition_metadata
from ..layout.file_names import base_offset_of
from ..layout.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from ..layout.meta_properties import MetaProperties, parse_meta_properties
from ..layout.offset_checkpoint import (
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
    parse_offset_checkpoint,
)
from ..layout.offset_index import OffsetIndex, parse_offset_index
from ..layout.partition_metadata import PartitionMetadata, parse_partition_metadata
from ..layout.producer_snapshot import CRC_START_POSITION, ProducerSnapshot, parse_producer_snapshot
from ..layout.quorum_state import QuorumState, parse_quorum_state
from ..layout.time_index import TimeIndex, parse_time_index
from ..layout.transaction_index import TransactionIndex, parse_transaction_index
from . import paths
from .files import read_file, read_if_present, read_index_file
from .names import absolute_path, child, file_name


def read_offset_index(path: str) -> OffsetIndex:
    """Read the `.index` at `path`, whose base offset is in its name."""
    base_offset = base_offset_of(file_name(path))
    return parse_offset_index(read_index_file(path), base_offset=base_offset, path=absolute_path(path))


def read_time_index(path: str) -> TimeIndex:
    """Read the `.timeindex` at `path`, whose base offset is in its name."""
    base_offset = base_offset_of(file_name(path))
    return parse_time_index(read_index_file(path), base_offset=base_offset, path=absolute_path(path))


def read_transaction_index(path: str) -> TransactionIndex:
    """Read the `.txnindex` at `path`."""
    return parse_transaction_index(read_file(path), path=absolute_path(path))


def read_producer_snapshot(path: str) -> ProducerSnapshot:
    """Read the `.snapshot` at `path`, and verify its checksum."""
    return checked_producer_snapshot(read_file(path))


def checked_producer_snapshot(data: bytes) -> ProducerSnapshot:
    """Parse the content of a `.snapshot`, and verify its checksum."""
    snapshot = parse_producer_snapshot(data)
    snapshot.check_crc(crc32c(data[CRC_START_POSITION:]))
    return snapshot


def read_offset_checkpoint(path: str) -> dict[tuple[str, int], int]:
    """Read (topic, partition) → offset: recovery points, log start offsets, watermarks, cleaner offsets."""
    return parse_offset_checkpoint(read_file(path), path=absolute_path(path))


def log_start_offsets_of(root: str) -> dict[tuple[str, int], int]:
    """Return (topic, partition) → log start offset by the checkpoint in a data directory; empty without the file."""
    path = child(root, LOG_START_OFFSET_FILE_NAME)
    content = read_if_present(path)
    return {} if content is None else parse_offset_checkpoint(content, path=absolute_path(path))


def recovery_points_of(root: str) -> Mapping[tuple[str, int], int] | None:
    """Return (topic, partition) → the offset from which on files beside a log may be short, 0 for one without an entry.

    None if they are relied on: the data directory was closed in order; or this is none, but a place for copies.
    """
    path = child(root, RECOVERY_POINT_FILE_NAME)
    if paths.exists(child(root, clean_shutdown.FILE_NAME)):
        return None
    try:
        status = paths.stat(path)
    except OSError:
        return {} if paths.exists(child(root, meta_properties.FILE_NAME)) else None
    return _recovery_points(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)  # each partition of a data directory asks, and the file is as long as it has partitions
def _recovery_points(path: str, *_stamp: int) -> Mapping[tuple[str, int], int]:
    try:
        return parse_offset_checkpoint(read_if_present(path) or b"", path=path)
    except CheckpointFormatError:
        return {}  # as a load would have to take it


def read_leader_epoch_checkpoint(path: str) -> list[tuple[int, int]]:
    """Read (epoch, start offset) of each leader epoch."""
    return parse_leader_epoch_checkpoint(read_file(path), path=absolute_path(path))


def leader_epochs_of(directory: str) -> list[tuple[int, int]]:
    """Return (epoch, start offset) by the file in a partition's directory; empty without the file."""
    path = child(directory, leader_epoch_checkpoint.FILE_NAME)
    content = read_if_present(path)
    return [] if content is None else parse_leader_epoch_checkpoint(content, path=absolute_path(path))


def read_partition_metadata(path: str) -> PartitionMetadata:
    """Read the topic id."""
    return parse_partition_metadata(read_file(path), path=absolute_path(path))


def topic_id_of(directory: str) -> str | None:
    """Return the topic id by the file in a partition's directory; None without the file."""
    path = child(directory, partition_metadata.FILE_NAME)
    content = read_if_present(path)
    return None if content is None else parse_partition_metadata(content, path=absolute_path(path)).topic_id


def read_meta_properties(path: str) -> MetaProperties:
    """Read the cluster, node and directory ids."""
    return parse_meta_properties(read_file(path))


def read_quorum_state(path: str) -> QuorumState:
    """Read a KRaft voter's epoch, leader and vote."""
    return parse_quorum_state(read_file(path), path=absolute_path(path))
