"""A data directory open for reading: without lock and without writes, so a broker may run beside it.

    store = logstore.open("/var/lib/kafka/data", read_only=True)
    store.topics, store.log("orders", 0).records()
    store.refresh()                                        # sees topics created and deleted since

Topics come from the metadata log. One of a broker's several directories may have none: then the topics are those whose
partitions are there, and their configurations are unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import ClassVar

from ..calls import TOPICS, alone
from ..disk.directory import list_data_directory, list_partition_directory, partition_directories
from ..disk.names import absolute_path, child
from ..disk.paths import exists, is_directory
from ..disk.recognition import require_no_parent
from ..disk.side_files import read_meta_properties, topic_id_of
from ..disk.system_errors import is_missing
from ..errors import DataDirectoryError, OffsetOutOfRangeError
from ..layout import meta_properties
from ..layout.file_names import METADATA_TOPIC, DirectoryKind, directory_name
from ..replay.metadata_image import MetadataImage, PartitionImage, TopicImage
from ..replay.metadata_state import MetadataState
from ..view.partition_reader import PartitionReader
from .closing import ClosedInWith
from .metadata.log import DIRECTORY_NAME
from .metadata.topics import TopicDescription, describe, topic_of, unknown_topic


def _require_data_directory(path: str) -> None:
    if any(exists(child(path, name)) for name in (meta_properties.FILE_NAME, DIRECTORY_NAME)):
        return
    if not is_directory(path):  # the first `refresh` says so
        return
    found = list_data_directory(path)
    found.require_no_partition()
    if found.is_foreign:
        require_no_parent(path)
        if found.errors:
            raise found.errors[0]
        raise DataDirectoryError(
            "This is not a Kafka data directory: no meta.properties, no partition", path=path, found=found.strangers[0]
        )


_UNKNOWN_PARTITION = PartitionImage((), (), (), -1, -1)


class ReadOnlyDirectory(ClosedInWith):
    """A data directory as of the last `refresh`. All methods may be called from any thread.

    Attributes:
        path: of the data directory, absolute.
        properties: of `meta.properties`; None without the file.
        now_ms: the clock.
        is_after_fork: always False: a child of a fork may go on reading.
    """

    is_after_fork: ClassVar[bool] = False

    def __init__(self, path: str, now_ms: Callable[[], int]) -> None:
        self.path, self.now_ms = absolute_path(path), now_ms
        _require_data_directory(self.path)
        self._lock = threading.RLock()
        self._state = MetadataState()
        self._metadata: PartitionReader | None = None
        self._readers: dict[tuple[str, int], PartitionReader] = {}
        self._topics: Mapping[str, TopicDescription] = {}
        properties_file = child(self.path, meta_properties.FILE_NAME)
        self.properties = read_meta_properties(properties_file) if exists(properties_file) else None
        self.refresh()

    def require_same_process(self) -> None:
        """Do nothing, where a store refuses calls in the child of a fork: nothing is written here."""

    def require_open(self) -> None:
        """Do nothing, as nothing is held."""

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics by name, the internal ones too."""
        return self._topics

    def feature(self, name: str) -> int:
        """Return the finalized level of a feature, such as `transaction.version`; 0 if it is off."""
        return self._state.levels.get(name, 0)

    def describe_topic(self, name: str) -> TopicDescription:
        """Return a topic; raises UnknownTopicOrPartitionError."""
        with alone(TOPICS), self._lock:
            return describe(self._image, topic_of(self._image, name))

    def log(self, topic: str, partition: int) -> PartitionReader:
        """Return the reader of a partition, always the same one; the caller refreshes it; see `ReadOnlyStore.log`."""
        key = topic, partition
        with alone(TOPICS), self._lock:
            known, path = topic_of(self._image, topic), child(self.path, directory_name(topic, partition))
            if partition not in known.partitions:
                raise unknown_topic(directory_name(topic, partition))
            if key not in self._readers:
                if known.topic_id and topic_id_of(path) not in (None, known.topic_id):
                    raise unknown_topic(directory_name(topic, partition))
                try:
                    self._readers[key] = PartitionReader(path)
                except DataDirectoryError as error:
                    if is_missing(error):
                        raise unknown_topic(directory_name(topic, partition)) from error
                    raise
            return self._readers[key]

    def refresh(self) -> None:
        """Read the present topics; the reader of a partition is refreshed separately.

        Raises:
            DataDirectoryError: there is no such directory, or it cannot be read.
            LogstoreError: the metadata log cannot be read.
        """
        with alone(TOPICS), self._lock:
            if is_directory(child(self.path, DIRECTORY_NAME)):
                self._read_metadata()
            else:
                self._state.image = self._listed()
            image = self._image
            self._topics = {name: describe(image, topic) for name, topic in image.topics.items()}
            self._drop_readers()

    def _drop_readers(self) -> None:
        """Drop readers of deleted topics, also of one whose name another topic has now."""
        self._readers = {
            key: reader
            for key, reader in self._readers.items()
            if key[0] in self._topics and self._topics[key[0]].topic_id == (reader.topic_id or "")
        }

    def close(self) -> None:
        """Do nothing, as nothing is held; for symmetry with a store that is written."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {len(self._topics)} topics>"

    @property
    def _image(self) -> MetadataImage:
        return self._state.image

    def _read_metadata(self) -> None:
        """Continue in the log, or start over with a snapshot if the beginning of the log was deleted meanwhile."""
        path = child(self.path, DIRECTORY_NAME)
        if self._metadata is None:
            self._metadata = PartitionReader(path)
            self._state.read_snapshots(list_partition_directory(path))
        else:
            self._metadata.refresh()
        try:
            self._state.read_log(self._metadata.view())
        except OffsetOutOfRangeError:
            self._state = MetadataState()
            self._state.read_snapshots(list_partition_directory(path))
            self._metadata.refresh()
            self._state.read_log(self._metadata.view())

    def _listed(self) -> MetadataImage:
        image = MetadataImage()
        for name, path in partition_directories(self.path):
            if name.kind is not DirectoryKind.LIVE or name.topic == METADATA_TOPIC:
                continue
            topic_id = topic_id_of(path) or ""
            topic = image.topics.setdefault(name.topic, TopicImage(name.topic, topic_id))
            topic.partitions[name.partition] = _UNKNOWN_PARTITION
        return image
