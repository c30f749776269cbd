"""logstore: SQLite for Kafka logs.

Reads and writes real Apache Kafka data directories in process: no broker, no JVM, no server.

    import logstore

    with logstore.open("data") as store:
        store.create_topic("orders", partitions=3)
        with store.producer() as producer:
            producer.send("orders", b"paid", key=b"42")
        for record in store.read("orders"):
            ...

    for finding in logstore.audit("/var/lib/kafka/data"):  # of a broker that may be running
        ...

The public names are those of `__all__`, each imported when it is first asked for, and the errors in `logstore.errors`;
what else can be imported may change. It is no broker, no network client and no cluster.
"""

# ruff: noqa: A001 - `logstore.open`, as `gzip.open`
from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from .clock import now_ms as _now_ms

if TYPE_CHECKING:
    from . import errors
    from .audit.answers import AuditedFindings, audit, explain, transactions, verify
    from .audit.contents import dump
    from .audit.listings import groups, producers, segments, topics
    from .client.arguments import OffsetAndTimestamp
    from .client.consumer import Consumer
    from .client.consumer.consumer_records import ConsumerRecord
    from .client.consumer.membership import RebalanceListener
    from .client.producer import Producer
    from .client.producer.batch import RecordFuture, RecordMetadata
    from .client.read_only import ReadOnlyStore
    from .client.store import Store
    from .coordinator.groups.membership import ConsumerGroupMetadata
    from .coordinator.groups.offsets import OffsetAndMetadata
    from .errors import LogstoreError
    from .log.partition_log import PartitionLog
    from .model import TopicPartition
    from .rows.listing import Rows

__version__ = "0.1.0"  # that of pyproject.toml
__all__ = [
    "AuditedFindings",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "LogstoreError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionLog",
    "Producer",
    "ReadOnlyStore",
    "RebalanceListener",
    "RecordFuture",
    "RecordMetadata",
    "Rows",
    "Store",
    "TopicPartition",
    "__version__",
    "audit",
    "dump",
    "errors",
    "explain",
    "groups",
    "open",
    "producers",
    "segments",
    "topics",
    "transactions",
    "verify",
]
_MODULES = {
    "Consumer": "client.consumer",
    "ConsumerGroupMetadata": "coordinator.groups.membership",
    "ConsumerRecord": "client.consumer.consumer_records",
    "AuditedFindings": "audit.answers",
    "LogstoreError": "errors",
    "OffsetAndMetadata": "coordinator.groups.offsets",
    "OffsetAndTimestamp": "client.arguments",
    "PartitionLog": "log.partition_log",
    "Producer": "client.producer",
    "ReadOnlyStore": "client.read_only",
    "RebalanceListener": "client.consumer.membership",
    "RecordFuture": "client.producer.batch",
    "RecordMetadata": "client.producer.batch",
    "Store": "client.store",
    "Rows": "rows.listing",
    "TopicPartition": "model",
    **dict.fromkeys(("explain", "transactions", "verify"), "audit.answers"),
    **dict.fromkeys(("groups", "producers", "segments"), "audit.listings"),
    "dump": "audit.contents",
}


def __getattr__(name: str) -> Any:
    if name in ("audit", "errors", "topics"):
        return import_module(f".{name}", __name__)
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


@overload
def open(path: str | PathLike[str], *, read_only: Literal[True], now_ms: Callable[[], int] = ...) -> ReadOnlyStore: ...
@overload
def open(path: str | PathLike[str], *, read_only: bool, now_ms: Callable[[], int] = ...) -> Store | ReadOnlyStore: ...
@overload
def open(
    path: str | PathLike[str],
    *,
    read_only: Literal[False] = ...,
    cluster_id: str | None = ...,
    kafka_version: str | None = ...,
    accept_loss: bool = ...,
    config: Mapping[str, Any] | None = ...,
    now_ms: Callable[[], int] = ...,
    progress: Callable[[int, int], object] | None = ...,
) -> Store: ...
def open(
    path: str | PathLike[str],
    *,
    read_only: bool = False,
    cluster_id: str | None = None,
    kafka_version: str | None = None,
    accept_loss: bool = False,
    config: Mapping[str, Any] | None = None,
    now_ms: Callable[[], int] = _now_ms,
    progress: Callable[[int, int], object] | None = None,
) -> Store | ReadOnlyStore:
    """Open a data directory, lock it and recover it as a starting broker does; make one that is not there.

    Records older than `retention.ms` are deleted half a minute later, as by a broker; a logged warning says how many.

    Args:
        path: of the directory; one of a broker up to 4.4 is taken over as it is. With `read_only` a URL will do too.
        read_only: neither lock nor write: safe beside a live broker, see `store.read_only`.
        cluster_id: required cluster id, or the id to assign on creation; None accepts any.
        kafka_version: `4.3`, the default, or `4.4`: whose levels a new directory gets; another keeps those it has.
        accept_loss: let the recovery remove batches that can be read, as a broker does: those behind damage, for one.
        config: broker configurations by Kafka's names, see `store.broker_config`.
        now_ms: the clock: milliseconds since 1970.
        progress: called with how many partitions have been read, and of how many.

    Raises:
        DataDirectoryError: another process has locked it; it is of another cluster, or of one of several nodes.
        RecoveryLossError: readable batches would go, and that is not accepted; nothing is removed.
        UsageError: an unknown configuration, a wrong value, a path that is empty or none.
        LogstoreError: a partition that a broker would not start with either; after an orderly close, where it is used.
    """
    path = _checked(path, now_ms, read_only=read_only, accept_loss=accept_loss)
    if read_only:
        from .client.read_only import ReadOnlyStore
        from .errors import UsageError

        if accept_loss or any(given is not None for given in (config, progress, cluster_id, kafka_version)):
            raise UsageError("A store that is read_only takes the path and now_ms alone")
        return ReadOnlyStore(path, now_ms)
    from .client.store import open_store
    from .disk.seam import SEAM

    how = {"now_ms": now_ms, "progress": progress, "cluster_id": cluster_id, "accept_loss": accept_loss}
    return open_store(path, config=_with_version(config or {}, kafka_version), seam=SEAM, **how)


def _checked(path: str | PathLike[str], now_ms: Callable[[], int], **flags: bool) -> str:
    """Return the path of a directory to open; raise UsageError for a path, a clock or a flag that is none."""
    from .client.arguments import require_function
    from .disk.names import path_text
    from .errors import UsageError
    from .model import whole_number

    for name, given in flags.items():
        if not isinstance(given, bool):  # "no" would count as true
            raise UsageError(f"{name} is no flag", expected="True or False", found=repr(given))
    require_function("clock", now_ms)
    if now_ms is not _now_ms:
        whole_number("time of the clock", now_ms())  # that of `time.time` is none
    return path_text(path)


def _with_version(config: Mapping[str, Any], version: str | None) -> Mapping[str, Any]:
    """Return the configuration with the version of Kafka; raises UsageError if it names another one."""
    from .client.arguments import by_name
    from .config.kafka_version import kafka_version
    from .config.topic import KAFKA_VERSION
    from .errors import UsageError

    config = by_name("Configurations", config)
    if version is None:
        return config
    if kafka_version(config.get(KAFKA_VERSION, version)) is not kafka_version(version):
        raise UsageError(
            f"kafka_version and the configuration {KAFKA_VERSION} differ",
            expected=version,
            found=config[KAFKA_VERSION],
        )
    return {**config, KAFKA_VERSION: version}
