"""Opening of a data directory for writing, created or recovered first (`LogManager.startup`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ... import clock
from ...config.broker import parse_broker_config
from ...disk.lock import DataDirectoryLock
from ...disk.names import absolute_path
from ...disk.seam import Seam
from ..checkpoints import Checkpoints, take_clean_shutdown
from ..data_directory import DataDirectory
from ..metadata.log import MetadataLog
from ..metadata.topic_changes import wanted_partitions
from ..partitions import Partitions, Progress
from ..timers import Timers
from .formatting import (
    format_directory,
    make_root,
    owner,
    place_of,
    require_cluster,
    require_cluster_id,
    require_formattable,
)
from .registration import begin, require_known_bootstrap
from .retention import retention_warnings

S = TypeVar("S", bound=DataDirectory)
_LOGGER = logging.getLogger("logstore")


def open_as(
    store_type: type[S],
    path: str,
    *,
    config: Mapping[str, Any],
    now_ms: Callable[[], int],
    progress: Progress | None,
    seam: Seam,
    cluster_id: str | None = None,
    accept_loss: bool = True,
) -> S:
    """Open a data directory as a store of this type, see `logstore.open`; `accept_loss` is as in a broker."""
    broker_config = parse_broker_config(config)
    require_cluster_id(cluster_id)
    path = absolute_path(path)
    make_root(seam, path)
    require_formattable(path)  # before anything is made in it
    require_known_bootstrap(path)
    lock = DataDirectoryLock(path)
    store: S | None = None
    try:
        properties = owner(path) or format_directory(seam, path, now_ms(), cluster_id)
        require_cluster(path, properties, cluster_id)
        place = place_of(properties)
        metadata = MetadataLog(path, place.node_id, seam, now_ms, accepts_loss=accept_loss)
        checkpoints, timers = Checkpoints(path, seam), Timers(clock.ticks_of(now_ms))
        partitions = Partitions(path, seam, now_ms, checkpoints, broker_config, timers, accepts_loss=accept_loss)
        try:
            partitions.sort_directories(metadata.image)
            metadata.require_suitable(place, has_partitions=bool(partitions.directories.strays))
            begin(path, metadata, place)
            partitions.directories.finish()
            partitions.was_clean = take_clean_shutdown(seam, path)
            partitions.start(wanted_partitions(metadata.image, place.node_id, broker_config), progress)
            store = store_type(path, properties, broker_config, lock, metadata, partitions, seam, now_ms)
        except BaseException:
            partitions.close_all()
            metadata.close()
            raise
        store.groups.start(was_clean=store.is_reconciled)
        store.transactions.start(was_clean=store.is_reconciled)
        store.is_reconciled = True
        _warn_of_retention(store, metadata, was_clean=partitions.was_clean)
        store.start()
        return store
    except BaseException:
        (lock.release if store is None else store.close)()
        raise


def _warn_of_retention(store: DataDirectory, metadata: MetadataLog, *, was_clean: bool) -> None:
    """Log a warning for each topic whose records go with the first run of retention, half a minute from now."""
    node_id, now_ms = store.node_id, store.now_ms()
    for text in retention_warnings(store.path, metadata.image, node_id, store.config, now_ms, was_clean=was_clean):
        _LOGGER.warning("%s: %s", store.path, text)
