"""The lock that a broker holds on a data directory while it runs (`FileLock`, `LogManager.lockLogDirs`)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import DataDirectoryError
from ..layout import meta_properties
from ..layout.file_names import LOCK_FILE_NAME
from .names import child
from .system_errors import nio_error


@contextmanager
def data_directory_lock(path: str) -> Iterator[None]:
    """Be alone with the data directory at `path`, by the lock that Kafka takes as well.

    A directory with neither a `.lock` nor a `meta.properties` belongs to no broker and is not locked.

    Raises:
        DataDirectoryError: another process, perhaps a broker, holds the lock; in Kafka's words.
    """
    lock_path = child(path, LOCK_FILE_NAME)
    if not os.path.exists(lock_path) and not os.path.exists(child(path, meta_properties.FILE_NAME)):
        yield
        return
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise nio_error(error, lock_path) from error
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: str) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise DataDirectoryError(
            f"Failed to acquire lock on file {LOCK_FILE_NAME} in {path}. A Kafka instance in another process or thread "
            "is using this directory.",
            path=path,
            advice="stop that process first",
            java_class="org.apache.kafka.common.KafkaException",
        ) from error
