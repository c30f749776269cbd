"""First records of a metadata log: levels of features, and the registration of the store as a broker.

Marks of clean shutdowns and blocks of producer ids need the epoch of the registration.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...config.kafka_version import ELR_VERSION, METADATA_VERSION, OF_NEW_STORES, version_of_levels
from ...disk.directory import list_partition_directory
from ...disk.mapped import MappedFile
from ...disk.names import child
from ...errors import DataDirectoryError
from ...layout.file_names import BOOTSTRAP_SNAPSHOT_NAME
from ...replay.internal_topic import ReplayedRecord, replayed_file
from ...replay.metadata_image import MetadataImage
from ...replay.metadata_state import MetadataState, metadata_damage, read_metadata
from ...topics.cluster_metadata import encode_value
from ..metadata.features import elr_default, new_cluster_records, registration
from ..metadata.log import DIRECTORY_NAME, MetadataLog
from ..metadata.suitability import require_known_levels
from ..metadata.topic_configs import removed_config_records
from ..metadata.topics import NodeDirectory

_TRANSACTIONS_LEVEL = 13  # metadata.version 3.6-IV1 (KIP-868)


def begin(path: str, metadata: MetadataLog, node: NodeDirectory) -> None:
    """Write the first records of a metadata log without a level, and register the node if it is unknown.

    Where a broker removed a topic and made it anew, take away what it would give the new one of the old one.

    A broker does not start on a log whose first records are others, but it does if these come later.
    """
    if METADATA_VERSION not in metadata.image.features:
        records = bootstrap_records(path, metadata.bootstrap)
        require_known_levels(_image_after(records).features, path)
        metadata.append(_first_records(records))
    _require_registration(metadata, node.node_id, node.directory_id)
    if records := removed_config_records(metadata.image):
        metadata.append(records)


def bootstrap_records(path: str, of_snapshot: Sequence[bytes]) -> Sequence[bytes]:
    """Return the records that an empty metadata log begins with, for the data directory at `path`.

    Kafka 4.4 formats a directory with them in a snapshot of the empty log (`of_snapshot`), an older one with
    `bootstrap.checkpoint`. Without both they are the levels of a new cluster.
    """
    file = child(path, BOOTSTRAP_SNAPSHOT_NAME)
    if of_snapshot or not os.path.exists(file):
        return of_snapshot or new_cluster_records(OF_NEW_STORES)
    with MappedFile(file) as snapshot:
        records = [record for record in replayed_file(snapshot.data, file) if isinstance(record, ReplayedRecord)]
    return [record.value for record in records if record.value is not None]


def require_known_bootstrap(path: str) -> None:
    """Raise unless the metadata log in the data directory `path` has records, or can begin with those it would get."""
    state, directory = MetadataState(), child(path, DIRECTORY_NAME)
    if os.path.isdir(directory):
        files = list_partition_directory(directory)
        if any(os.path.getsize(segment.log) for segment in files.segments) or any(
            end_offset > 0 for end_offset, _ in files.kraft_snapshots
        ):
            return
        state.read_snapshots(files)
    require_known_levels(_image_after(bootstrap_records(path, state.bootstrap)).features, path)


def present_levels(path: str) -> dict[str, int]:
    """Return the levels of features of the data directory at `path`, or those with which its metadata log begins.

    Raises DataDirectoryError if there is no metadata log, LogstoreError if it cannot be read to its end.
    """
    directory = child(path, DIRECTORY_NAME)
    if not os.path.isdir(directory):
        raise DataDirectoryError(
            "There is no metadata log, which has the levels of features",
            path=directory,
            advice="name the directory of metadata.log.dir, which for one of several log.dirs is the first",
        )
    state, damage = read_metadata(directory), metadata_damage(directory)
    if damage is not None:
        if METADATA_VERSION in state.image.features:
            damage.advice = f"{damage.advice}; or `logstore import --yes` goes on without what is behind it"
        raise damage
    if METADATA_VERSION not in state.image.features and state.next_offset == 0:
        state.image = _image_after(bootstrap_records(path, state.bootstrap))
    return dict(state.levels)


def _image_after(records: Sequence[bytes]) -> MetadataImage:
    image = MetadataImage()
    for offset, value in enumerate(records):
        image.replay(value, offset)
    return image


def _first_records(bootstrap: Sequence[bytes]) -> list[bytes]:
    """Return the bootstrap records as a controller writes them (`ActivationRecordsGenerator.recordsForEmptyLog`)."""
    levels, records = _image_after(bootstrap).features, list(bootstrap)
    if levels.get(ELR_VERSION):
        records.append(elr_default())
    if levels[METADATA_VERSION] < _TRANSACTIONS_LEVEL:
        return records
    begin = encode_value("BeginTransactionRecord", {"name": "Bootstrap records"})
    return [begin, *records, encode_value("EndTransactionRecord", {})]


def _require_registration(metadata: MetadataLog, node_id: int, directory_id: str) -> None:
    if node_id in metadata.image.brokers:
        return
    metadata.lead()
    levels = metadata.image.features
    kafka = version_of_levels(levels)
    assert kafka is not None
    known = {"brokerId": node_id, "endPoints": []}
    metadata.append([registration(known, levels[METADATA_VERSION], kafka, directory_id, metadata.next_offset)])
