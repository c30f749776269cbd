"""Opening of a data directory for writing: it is made or recovered first (`LogManager.startup`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ... import clock
from ...disk.directory import partition_directories
from ...disk.lock import DataDirectoryLock
from ...disk.names import absolute_path
from ...disk.seam import Seam
from ...layout.meta_properties import MetaProperties
from ..broker_config import BrokerConfig, parse_broker_config
from ..checkpoints import Checkpoints, take_clean_shutdown
from ..data_directory import DataDirectory
from ..metadata.log import MetadataLog
from ..metadata.topic_changes import wanted_partitions
from ..partitions import Partitions, Progress
from ..timers import Timers
from .formatting import format_directory, make_root, owner, place_of, require_cluster, require_cluster_id
from .registration import begin

S = TypeVar("S", bound=DataDirectory)


def open_as(
    store_type: type[S],
    path: str,
    *,
    config: Mapping[str, Any],
    now_ms: Callable[[], int],
    progress: Progress | None,
    seam: Seam,
    cluster_id: str | None = None,
) -> S:
    """Open a data directory as a store of this type, see `logstore.open`."""
    broker_config = parse_broker_config(config)
    require_cluster_id(cluster_id)
    path = absolute_path(path)
    make_root(seam, path)
    lock = DataDirectoryLock(path)
    store: S | None = None
    try:
        partition_directories(path)  # raises for what a broker would not start beside, before anything is changed
        properties = owner(path) or format_directory(seam, path, now_ms(), cluster_id)
        require_cluster(path, properties, cluster_id)
        store = _open(path, properties, broker_config, lock, seam, now_ms, progress, store_type)
        store.groups.start()
        store.transactions.start(was_clean=store.is_reconciled)
        store.is_reconciled = True
        store.start()
        return store
    except BaseException:
        (lock.release if store is None else store.close)()
        raise


def _open(
    path: str,
    properties: MetaProperties,
    config: BrokerConfig,
    lock: DataDirectoryLock,
    seam: Seam,
    now_ms: Callable[[], int],
    progress: Progress | None,
    store_type: type[S],
) -> S:
    place = place_of(properties)
    metadata = MetadataLog(path, place.node_id, seam, now_ms)
    checkpoints = Checkpoints(path, seam)
    timers = Timers(clock.monotonic_ms if now_ms is clock.now_ms else now_ms)  # a program's own clock is for all
    partitions = Partitions(path, seam, now_ms=now_ms, checkpoints=checkpoints, config=config, timers=timers)
    try:
        partitions.sort_directories(metadata.image)
        metadata.require_suitable(place, has_partitions=bool(partitions.directories.strays))
        begin(path, metadata, place)
        partitions.was_clean = take_clean_shutdown(seam, path)
        partitions.start(wanted_partitions(metadata.image, place.node_id, config), progress)
        return store_type(
            path,
            properties,
            config,
            directory_lock=lock,
            metadata=metadata,
            partitions=partitions,
            checkpoints=checkpoints,
            timers=timers,
            seam=seam,
            now_ms=now_ms,
        )
    except BaseException:
        partitions.close_all()
        metadata.close()
        raise
