"""What a broker does with each directory of a partition when it starts (`LogManager.loadLog`, `isStrayReplica`).

A broker knows a partition by the topic id in its `partition.metadata`, not by the name of its directory. One without an
id, or with an id that the metadata does not have, is renamed to `-stray`, and the partition of that name begins empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ..disk.names import file_name
from ..disk.side_files import topic_id_of
from ..errors import CheckpointFormatError
from ..layout.file_names import METADATA_TOPIC, DirectoryKind, PartitionDirectory, directory_name
from ..layout.partition_metadata import FILE_NAME
from .metadata_image import MetadataImage, TopicImage


class Fate(Enum):
    """What becomes of a directory, in words behind its name."""

    SERVED = "is served"
    UNIDENTIFIED = f"has no {FILE_NAME}: a broker sets it aside as -stray, and begins the partition empty"
    UNREADABLE = f"has a {FILE_NAME} that does not parse: no broker starts beside it"
    STRAY = "is unknown to the metadata: a broker sets it aside as -stray"
    DELETED = "is of a deleted topic"
    MISNAMED = "has the id of a topic of another name: a broker neither serves it nor sets it aside"
    TWICE = "is there a second time under another name: no broker starts beside both"
    DUE = "is being deleted: a broker deletes it"
    ASIDE = "was set aside: a broker leaves it there"
    MOVED = "was moving here when its broker ended: a broker takes it for the partition"
    BESIDE_CURRENT = "was moving here, but its partition is there too: no broker starts beside both"

    @property
    def ends_broker(self) -> bool:
        """Whether no broker starts beside such a directory."""
        return self in (Fate.UNREADABLE, Fate.TWICE, Fate.BESIDE_CURRENT)


class FoundDirectory(NamedTuple):
    """A directory of a partition, and what becomes of it.

    Attributes:
        topic_id: of `partition.metadata`; None without the file, or if it does not parse.
        known: the topic of the metadata that has a partition of this name; None without one, and if it is set aside.
        problem: why `partition.metadata` does not parse.
    """

    name: PartitionDirectory
    path: str
    fate: Fate
    topic_id: str | None = None
    known: TopicImage | None = None
    problem: CheckpointFormatError | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Topic and number of the partition."""
        return self.name.topic, self.name.partition

    @property
    def lacks_id(self) -> bool:
        """Whether the id is missing or does not parse, and the metadata has it."""
        return self.known is not None and self.fate in (Fate.UNIDENTIFIED, Fate.UNREADABLE)

    @property
    def is_left_alone(self) -> bool:
        """Whether the directory is not, and does not become, the one of a partition."""
        return not self.lacks_id and self.fate not in (Fate.SERVED, Fate.MOVED, Fate.DELETED)

    @property
    def text(self) -> str:
        """The directory and its fate in words."""
        fate = self.fate.value
        if self.fate is Fate.STRAY and self.known is not None:  # of another cluster, or of an earlier topic
            fate = f"has topic id {self.topic_id}, and {self.known.name} is {self.known.topic_id}: a broker sets it "
            fate += "aside as -stray, and begins the partition empty"
        return f"{file_name(self.path)} {fate}"


def directory_fates(
    directories: Iterable[tuple[PartitionDirectory, str]], image: MetadataImage
) -> Iterator[FoundDirectory]:
    """Yield what becomes of each of the `partition_directories` but the metadata log's."""
    taken: set[tuple[str, int, DirectoryKind]] = set()
    found = sorted(directories, key=lambda entry: (entry[0].kind is not DirectoryKind.LIVE, _is_odd(*entry), entry[1]))
    for name, path in found:
        if name.topic == METADATA_TOPIC:
            continue
        directory = _by_id(name, path, image)
        if directory.fate in (Fate.SERVED, Fate.MISNAMED, Fate.UNREADABLE):  # a broker has one of a name
            if name in taken and directory.fate is not Fate.UNREADABLE:
                directory = directory._replace(fate=Fate.TWICE)
            elif name.kind is DirectoryKind.FUTURE and directory.fate is Fate.SERVED:
                is_free = name._replace(kind=DirectoryKind.LIVE) not in taken
                directory = directory._replace(fate=Fate.MOVED if is_free else Fate.BESIDE_CURRENT)
            taken.add(name)
        yield directory


def _is_odd(name: PartitionDirectory, path: str) -> bool:
    """Return whether Kafka would write the partition's number differently, as for `orders-00`."""
    return name.kind is DirectoryKind.LIVE and file_name(path) != directory_name(name.topic, name.partition)


def _by_id(name: PartitionDirectory, path: str, image: MetadataImage) -> FoundDirectory:
    topic = image.topics.get(name.topic) if name.kind is DirectoryKind.LIVE else None
    known = topic if topic is not None and name.partition in topic.partitions else None
    try:
        topic_id = topic_id_of(path)
    except CheckpointFormatError as error:
        return FoundDirectory(name, path, Fate.UNREADABLE, known=known, problem=error)
    if name.kind in (DirectoryKind.DELETE, DirectoryKind.STRAY):
        return FoundDirectory(name, path, Fate.DUE if name.kind is DirectoryKind.DELETE else Fate.ASIDE, topic_id)
    if topic_id is None:
        fate = Fate.STRAY if known is None else Fate.UNIDENTIFIED
        return FoundDirectory(name, path, fate, known=known)
    of_id = image.topics_by_id.get(topic_id)
    if topic_id in image.removed_topic_ids:
        fate = Fate.DELETED
    elif of_id is None or name.partition not in of_id.partitions:
        fate = Fate.STRAY
    else:
        fate = Fate.SERVED if of_id.name == name.topic else Fate.MISNAMED
    return FoundDirectory(name, path, fate, topic_id, known)
