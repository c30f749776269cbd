"""Directories of partitions in a data directory, and those that are set aside: deleted or stray ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..disk.directory import list_partition_directory, partition_directories
from ..disk.names import child
from ..disk.seam import Seam
from ..disk.side_files import topic_id_of
from ..disk.system_errors import is_missing, nio_error
from ..errors import DataDirectoryError
from ..layout.file_names import DirectoryKind, directory_name, set_aside_name
from ..model import TopicPartition
from ..view.metadata_image import MetadataImage, TopicImage
from .metadata.log import DIRECTORY_NAME


class PartitionDirectories:
    """The directory of each partition, and what happens to directories that belong to none.

    Attributes:
        strays: paths of directories whose partition the metadata does not know; they are left alone.
    """

    def __init__(self, root: str, seam: Seam) -> None:
        self._root, self._seam = root, seam
        self.strays: list[str] = []
        self._deleted: dict[str, int] = {}  # path to the time of its removal, ms since 1970

    def sort(self, image: MetadataImage, due_ms: int) -> None:
        """Find stray directories, and set aside those of deleted topics, to be removed at `due_ms`.

        Raises:
            InvalidNameError: a directory that is no partition's.
            DataDirectoryError, CheckpointFormatError: something cannot be read.
        """
        for name, path in partition_directories(self._root):
            if name.kind is DirectoryKind.DELETE:
                self._deleted[path] = due_ms
            elif name.kind is DirectoryKind.LIVE and path != child(self._root, DIRECTORY_NAME):
                topic_id = topic_id_of(path)
                if topic_id in image.removed_topic_ids:
                    self.delete(TopicPartition(name.topic, name.partition), due_ms)
                elif not _is_known(image.topics.get(name.topic), name.partition, topic_id):
                    self.strays.append(path)

    def path(self, partition: TopicPartition) -> str:
        """Return the path of the partition's directory, present or future."""
        return child(self._root, directory_name(*partition))

    def has(self, partition: TopicPartition) -> bool:
        """Return whether the partition has a directory; a stray one of its name does not count."""
        path = self.path(partition)
        return os.path.isdir(path) and path not in self.strays

    def is_settled(self, partition: TopicPartition, *, deletes: bool) -> bool:
        """Return whether retention and cleaning have nothing to do: there is no closed segment.

        Args:
            deletes: `cleanup.policy` has delete, which takes even the only segment unless it is empty.

        Raises:
            DataDirectoryError: the directory cannot be read.
        """
        segments = list_partition_directory(self.path(partition)).segments
        return len(segments) == 1 and not (deletes and _size(segments[0].log))

    def delete(self, partition: TopicPartition, due_ms: int) -> None:
        """Set the directory aside, to be removed at `due_ms`; raises DataDirectoryError."""
        self._deleted[self._set_aside(partition, DirectoryKind.DELETE)] = due_ms

    def make(self, partition: TopicPartition) -> bool:
        """Create a partition's directory if it is missing, after a stray one of its name was set aside.

        Returns:
            True if one was created; it is durable after `sync`.

        Raises:
            DataDirectoryError: the disk refuses it.
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
        """Remove directories that are due; forget those that are gone already.

        Raises:
            DataDirectoryError: of the first that cannot be removed; it stays due, and all were tried.
        """
        failure = None
        for path, due_ms in list(self._deleted.items()):
            if due_ms <= now_ms:
                try:
                    self._remove(path)
                    del self._deleted[path]
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
        """Rename the directory; return its new path."""
        path = child(self._root, set_aside_name(*partition, os.urandom(16).hex(), kind))
        self._seam.rename(self.path(partition), path)
        self._seam.sync_directory(self._root)
        return path


@contextmanager
def _missing_ignored() -> Iterator[None]:
    """`with` block that removes a name; another process may have done so before."""
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


def _is_known(topic: TopicImage | None, partition: int, topic_id: str | None) -> bool:
    """Return whether the metadata has the partition of a directory; an unfinished one has no topic id."""
    return topic is not None and partition in topic.partitions and topic_id in (None, topic.topic_id)
