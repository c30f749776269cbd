"""logstore: SQLite for Kafka logs.

Reads and writes real Apache Kafka data directories in process: no broker, no JVM, no server.

    import logstore

    with logstore.open("data") as store:
        store.create_topic("orders", partitions=3)
        store.log("orders", 0).append_records([b"paid"], keys=[b"42"])

What it is: the formats of Kafka 4.3.1 as code (`layout`), one numba scan over a mapped file (`kernels`, `columns`),
the files of a data directory (`disk`), the records of the internal topics (`topics`), one partition (`log`), and a
whole data directory (`store`).
What it is not: a broker, a network client, or a cluster.
"""

# ruff: noqa: A001 - `logstore.open`, as `gzip.open`
from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, overload

from .clock import now_ms as _now_ms

if TYPE_CHECKING:
    from .client.store import EmbeddedStore
    from .store.read_only import ReadOnlyStore

__all__ = ["open"]


@overload
def open(path: str | PathLike[str], *, read_only: Literal[True], now_ms: Callable[[], int] = ...) -> ReadOnlyStore: ...
@overload
def open(
    path: str | PathLike[str],
    *,
    read_only: Literal[False] = ...,
    cluster_id: str | None = ...,
    config: Mapping[str, Any] | None = ...,
    now_ms: Callable[[], int] = ...,
    progress: Callable[[int, int], object] | None = ...,
) -> EmbeddedStore: ...
def open(
    path: str | PathLike[str],
    *,
    read_only: bool = False,
    cluster_id: str | None = None,
    config: Mapping[str, Any] | None = None,
    now_ms: Callable[[], int] = _now_ms,
    progress: Callable[[int, int], object] | None = None,
) -> EmbeddedStore | ReadOnlyStore:
    """Open a data directory, alone, as a broker does that starts; one that is not there is made.

    Args:
        path: of the directory; one of a broker 4.3.1 is taken over as it is.
        read_only: do not lock and do not write: safe beside a live broker, see `store.read_only`.
        cluster_id: whose the directory has to be, or is to be if it is made now; None: anybody's.
        config: broker configurations by Kafka's names, see `store.broker_config`.
        now_ms: the clock: milliseconds since 1970.
        progress: told how many partitions are open, and of how many.

    Raises:
        DataDirectoryError: another process, perhaps a broker, has it; it is of another cluster; or not for one node
            alone.
        InvalidNameError: there is a directory in it that is no partition's.
        UsageError: an unknown configuration, or a value that it cannot have.
        LogstoreError: a partition with damage that a broker would not start with either; after an orderly close that is
            raised where the partition is first asked for.
    """
    if read_only:
        from .errors import UsageError
        from .store.read_only import ReadOnlyStore

        if config is not None or progress is not None or cluster_id is not None:
            raise UsageError("A store that is read_only belongs to nobody: leave config, progress and cluster_id out")
        return ReadOnlyStore(fspath(path), now_ms)
    from .client.store import EmbeddedStore
    from .disk.seam import SEAM
    from .store.opening.start import open_as

    return open_as(
        EmbeddedStore,
        fspath(path),
        config=config or {},
        now_ms=now_ms,
        progress=progress,
        seam=SEAM,
        cluster_id=cluster_id,
    )
