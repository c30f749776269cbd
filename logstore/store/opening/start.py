"""Opening of a data directory for writing, created or recovered first (`LogManager.startup`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from ... import clock
from ...config.broker import BrokerConfig, parse_broker_config
from ...config.kafka_version import OF_NEW_STORES, kafka_version
from ...config.topic import KAFKA_VERSION
from ...disk.directory import partition_directories
from ...disk.lock import DataDirectoryLock
from ...disk.names import absolute_path, child, file_name
from ...disk.recognition import require_outside
from ...disk.seam import Seam
from ...errors import UsageError
from ...layout import meta_properties
from ...layout.file_names import METADATA_TOPIC, DirectoryKind
from ..checkpoints import Checkpoints, take_clean_shutdown
from ..data_directory import DataDirectory
from ..metadata.batches import BATCH_COUNT_MAX
from ..metadata.log import MetadataLog
from ..metadata.topic_changes import wanted_partitions
from ..metadata.topics import next_epoch_records
from ..partitions import Partitions, Progress
from ..timers import Timers
from .formatting import (
    format_directory,
    make_root,
    node_of,
    owner,
    require_cluster,
    require_cluster_id,
    require_formattable,
)
from .registration import begin, require_known_bootstrap
from .retention import retention_warnings

_LOGGER = logging.getLogger("logstore")


def _checked_place(path: str) -> str:
    """Return the absolute path, of what a store is in or may be made in; UsageError for one in a data directory."""
    path = absolute_path(path)
    if os.path.isdir(path):
        require_formattable(path)
    if not os.path.exists(child(path, meta_properties.FILE_NAME)):
        require_outside(path)
        if "~" in path.split("/") and not os.path.exists(path):  # a directory of this name would be made
            raise UsageError("~ stands for no home in a path", path=path, advice="os.path.expanduser expands it")
        if file_name(path) == ":memory:":
            advice = "open one in tempfile.TemporaryDirectory()"
            raise UsageError("A store is a directory, and never in memory alone", path=path, advice=advice)
    return path


def open_directory(
    path: str,
    *,
    config: Mapping[str, Any],
    now_ms: Callable[[], int],
    progress: Progress | None,
    seam: Seam,
    cluster_id: str | None = None,
    accept_loss: bool = True,
) -> DataDirectory:
    """Open a data directory, see `logstore.open`; `accept_loss` is as in a broker."""
    broker_config = parse_broker_config(config)
    require_cluster_id(cluster_id)
    path = _checked_place(path)
    make_root(seam, path)
    require_known_bootstrap(path)
    lock = DataDirectoryLock(path)
    directory: DataDirectory | None = None
    try:
        kafka = kafka_version(broker_config.get(KAFKA_VERSION, OF_NEW_STORES))
        properties = owner(path) or format_directory(seam, path, now_ms(), kafka, cluster_id)
        require_cluster(path, properties, cluster_id)
        node = node_of(properties)
        has_partitions = any(
            name.kind is DirectoryKind.LIVE and name.topic != METADATA_TOPIC for name, _ in partition_directories(path)
        )
        metadata = MetadataLog(path, node, seam, now_ms, has_partitions=has_partitions, accepts_loss=accept_loss)
        checkpoints, timers = Checkpoints(path, seam), Timers(clock.ticks_of(now_ms))
        partitions = Partitions(path, seam, now_ms, checkpoints, broker_config, timers, accepts_loss=accept_loss)
        try:
            partitions.sort_directories(metadata.image)
            begin(path, metadata, node)
            partitions.directories.finish()
            partitions.was_clean = take_clean_shutdown(seam, path)
            _start(partitions, metadata, node.node_id, broker_config, progress)
            directory = DataDirectory(path, properties, broker_config, lock, metadata, partitions, seam, now_ms)
        except BaseException:
            partitions.close_all()
            metadata.close()
            raise
        directory.groups.start(was_clean=directory.is_reconciled)
        directory.transactions.start(was_clean=directory.is_reconciled)
        directory.is_reconciled = True
        _warn_of_retention(directory, metadata, was_clean=partitions.was_clean)
        directory.start()
        return directory
    except BaseException:
        (lock.release if directory is None else directory.close)()
        raise


def _start(
    partitions: Partitions, metadata: MetadataLog, node_id: int, config: BrokerConfig, progress: Progress | None
) -> None:
    """Recover the partitions; after a crash each begins a leader epoch, as it may have lost what was read (KIP-320)."""
    partitions.start(wanted_partitions(metadata.image, node_id, config), progress)
    if not partitions.was_clean and (records := next_epoch_records(metadata.image, node_id)):
        for first in range(0, len(records), BATCH_COUNT_MAX):
            metadata.append(records[first : first + BATCH_COUNT_MAX])
        partitions.update(wanted_partitions(metadata.image, node_id, config))


def _warn_of_retention(directory: DataDirectory, metadata: MetadataLog, *, was_clean: bool) -> None:
    node_id, now_ms = directory.node_id, directory.now_ms()
    for text in retention_warnings(
        directory.path, metadata.image, node_id, directory.config, now_ms, was_clean=was_clean
    ):
        _LOGGER.warning("%s: %s", directory.path, text)
