"""Inspection of a data directory: its content, and what an opening would do. Changes nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...disk.names import absolute_path, child
from ...disk.side_files import topic_id_of
from ...layout import clean_shutdown, meta_properties
from ...layout.file_names import directory_name
from ...layout.meta_properties import MetaProperties
from ...log.config import REMOTE_STORAGE
from ...view.metadata_image import METADATA_VERSION, MetadataImage
from ...view.metadata_replay import MetadataState, read_metadata
from ..metadata.log import DIRECTORY_NAME
from ..metadata.suitability import require_suitable
from .adoption import AdoptedTopic, adoptable_topics, live_partitions
from .formatting import owner, place_of
from .registration import require_known_bootstrap


@dataclass(frozen=True, slots=True)
class Inspection:
    """The content of a data directory.

    Attributes:
        properties: its owner; None without one.
        kraft_version: 1 if the voters are in the log, 0 if a broker's configuration names them.
        features: finalized levels by name.
        topics: name to number of partitions.
        next_producer_id: the first that belongs to no block.
        was_clean: it was closed in order.
        steps: of `logstore.open`, or of `adopt` for a directory without owner, in words.
        stray_directories: paths of partitions unknown to the metadata; a broker renames them.
        tiered_topics: names of topics with older records in remote storage.
        image: all that the metadata says.
    """

    path: str
    properties: MetaProperties | None
    kraft_version: int
    features: dict[str, int]
    topics: dict[str, int]
    next_producer_id: int
    was_clean: bool
    steps: tuple[str, ...]
    stray_directories: tuple[str, ...]
    tiered_topics: tuple[str, ...]
    image: MetadataImage


def inspect(path: str) -> Inspection:
    """Inspect a data directory; no broker or store should be running.

    Raises:
        InvalidNameError: a directory in it that is no partition's.
        DataDirectoryError: it does not exist, or is not for one node alone.
        LogstoreError: its metadata cannot be read.
    """
    path = absolute_path(path)
    live = live_partitions(path)
    properties = owner(path)
    if properties is None:
        return _of_nobody(path, adoptable_topics(live))
    metadata_path = child(path, DIRECTORY_NAME)
    state = read_metadata(metadata_path) if os.path.isdir(metadata_path) else MetadataState()
    require_suitable(state, metadata_path, place_of(properties), has_partitions=bool(live) and not state.image.topics)
    require_known_bootstrap(path)
    image = state.image
    wanted = {(name, one): topic.topic_id for name, topic in image.topics.items() for one in topic.partitions}
    was_clean = os.path.exists(child(path, clean_shutdown.FILE_NAME))
    steps = [] if was_clean else ["recover all partitions, because the directory was not closed in order"]
    if METADATA_VERSION not in image.features:
        steps.append("write the first records of the metadata log")
    if properties.node_id not in image.brokers:
        steps.append(f"register node {properties.node_id} in the metadata log")
    steps += [f"make the directory of {directory_name(*key)}" for key in sorted(wanted.keys() - live.keys())]
    strays = [place for key, place in live.items() if topic_id_of(place) not in (None, wanted.get(key))]
    return Inspection(
        path,
        properties,
        state.kraft_version,
        dict(image.features),
        {name: len(topic.partitions) for name, topic in sorted(image.topics.items())},
        image.next_producer_id,
        was_clean,
        tuple(steps),
        tuple(strays),
        tuple(name for name in sorted(image.topics) if image.topic_config(name).get(REMOTE_STORAGE) == "true"),
        image,
    )


def _of_nobody(path: str, topics: list[AdoptedTopic]) -> Inspection:
    """Inspect a directory without `meta.properties`: it is empty, or partitions were put there."""
    steps = [f"make {meta_properties.FILE_NAME} and a metadata log"]
    for topic in topics:
        known = f"id {topic.topic_id}" if topic.topic_id is not None else "a new id"
        steps.append(f"make topic {topic.name} of {topic.partition_count} partitions with {known}")
        steps += [f"make the directory of {directory_name(topic.name, number)}" for number in topic.missing]
    if topics:
        steps.append("begin producer ids behind the highest that is in the logs")
        steps.append("recover all partitions, because nobody says that they were closed in order")
    counts = {topic.name: topic.partition_count for topic in topics}
    return Inspection(path, None, 1, {}, counts, 0, False, tuple(steps), (), (), MetadataImage())
