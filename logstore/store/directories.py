"""Directories of partitions in a data directory, and those that are set aside: deleted or stray ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..disk.atomic import replace_file
from ..disk.directory import list_partition_directory, partition_directories
from ..disk.names import child, file_name
from ..disk.seam import Seam
from ..disk.system_errors import is_missing, nio_error
from ..errors import DataDirectoryError
from ..layout import partition_metadata
from ..layout.checkpoint_writing import partition_metadata_bytes
from ..layout.file_names import DirectoryKind, PartitionDirectory, directory_name, set_aside_name
from ..log.segment.deleted_files import Delays
from ..model import TopicPartition
from ..replay.directory_fates import Fate, FoundDirectory, directory_fates
from ..replay.metadata_image import MetadataImage


class PartitionDirectories:
    """The directory of each partition, and what happens to directories that belong to none.

    Attributes:
        strays: paths of directories whose partition the metadata does not know; they are left alone.
    """

    def __init__(self, root: str, seam: Seam) -> None:
        self._root, self._seam = root, seam
        self.strays: list[str] = []
        self._unfinished: list[FoundDirectory] = []
        self._deleted = Delays()  # paths

    def sort(self, image: MetadataImage, now_ms: int, delay_ms: int) -> None:
        """Find stray directories, and set aside those of deleted topics, to be removed in `delay_ms`."""
        for found in directory_fates(partition_directories(self._root), image):
            require_kafkas_name(found.name, found.path)
            if found.name.kind is DirectoryKind.DELETE:
                self._deleted.add(found.path, now_ms, delay_ms)
            elif found.fate is Fate.DELETED and found.name.kind is DirectoryKind.LIVE:
                self.delete(TopicPartition(*found.key), now_ms, delay_ms)
            elif found.lacks_id or found.fate is Fate.MOVED:
                self._unfinished.append(found)
            elif found.is_left_alone and found.name.kind is DirectoryKind.LIVE:
                self.strays.append(found.path)

    def finish(self) -> None:
        """Write missing topic ids, and give directories that were moving here the name of their partition.

        A broker does the latter too (`LogManager.recoverAbandonedFutureLogs`); directories without an id it sets aside.
        """
        for found in self._unfinished:
            if found.fate is Fate.MOVED:
                self._seam.rename(found.path, self.path(TopicPartition(*found.key)))
            else:
                assert found.known is not None
                file = child(found.path, partition_metadata.FILE_NAME)
                replace_file(self._seam, file, partition_metadata_bytes(found.known.topic_id))
        if any(found.fate is Fate.MOVED for found in self._unfinished):
            self.sync()
        self._unfinished.clear()

    def path(self, partition: TopicPartition) -> str:
        """Return the path of the partition's directory, present or future."""
        return child(self._root, directory_name(*partition))

    def has(self, partition: TopicPartition) -> bool:
        """Return whether the partition has a directory; a stray one of its name does not count."""
        path = self.path(partition)
        return os.path.isdir(path) and path not in self.strays

    def is_idle(self, partition: TopicPartition, *, deletes: bool) -> bool:
        """Return whether retention and cleaning have nothing to do: there is no closed segment.

        If `cleanup.policy` `deletes`, even the only segment goes, unless it is empty.
        """
        segments = list_partition_directory(self.path(partition)).segments
        return len(segments) == 1 and not (deletes and _size(segments[0].log))

    def delete(self, partition: TopicPartition, now_ms: int, delay_ms: int) -> str:
        """Set the directory aside, to be removed in `delay_ms`; return its new path; raises DataDirectoryError."""
        path = self._set_aside(partition, DirectoryKind.DELETE)
        self._deleted.add(path, now_ms, delay_ms)
        return path

    def make(self, partition: TopicPartition) -> bool:
        """Create a partition's directory if it is missing; return whether it was. It is durable after `sync`.

        A stray one of its name is set aside before.
        """
        path = self.path(partition)
        if path in self.strays:
            self._set_aside(partition, DirectoryKind.STRAY)
            self.strays.remove(path)
        if os.path.isdir(path):
            return False
        self._seam.make_directory(path)
        return True

    def sync(self) -> None:
        """Sync the names of the directories; raises DataDirectoryError."""
        self._seam.sync_directory(self._root)

    def abandon(self, partition: TopicPartition) -> None:
        """Treat a directory that cannot be set aside as stray."""
        if os.path.isdir(self.path(partition)):
            self.strays.append(self.path(partition))

    def remove_deleted(self, now_ms: int) -> None:
        """Remove directories that are due; forget those that are gone already."""
        failure = None
        for path in self._deleted.over(now_ms):
            try:
                self._remove(path)
                self._deleted.discard(path)
            except DataDirectoryError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _remove(self, path: str) -> None:
        try:
            names = sorted(os.listdir(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise nio_error(error, path) from error
        for name in names:
            with _missing_ignored():
                self._seam.unlink(child(path, name))
        with _missing_ignored():
            self._seam.remove_directory(path)
        self._seam.sync_directory(self._root)

    def _set_aside(self, partition: TopicPartition, kind: DirectoryKind) -> str:
        path = child(self._root, set_aside_name(*partition, os.urandom(16).hex(), kind))
        self._seam.rename(self.path(partition), path)
        self._seam.sync_directory(self._root)
        return path


def require_kafkas_name(name: PartitionDirectory, path: str) -> None:
    """Raise DataDirectoryError for a name such as `orders-00`, which a broker takes for `orders-0`."""
    wanted = directory_name(name.topic, name.partition)
    if name.kind is DirectoryKind.LIVE and file_name(path) != wanted:
        raise DataDirectoryError(
            "The number of a partition is written in another way than Kafka writes it",
            path=path,
            expected=wanted,
            found=file_name(path),
            advice=f"rename it to {wanted}; beside a directory of that name move it away: no broker starts beside both",
        )


@contextmanager
def _missing_ignored() -> Iterator[None]:
    try:
        yield
    except DataDirectoryError as error:
        if not is_missing(error):
            raise


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise nio_error(error, path) from error
