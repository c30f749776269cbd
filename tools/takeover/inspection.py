"""Inspection of a data directory: its content, and what an opening would do. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from logstore import clock
from logstore.audit.checks.metadata_log import startup_files
from logstore.config.broker import parse_broker_config
from logstore.config.kafka_version import METADATA_VERSION
from logstore.config.topic import REMOTE_STORAGE
from logstore.disk.directory import list_data_directory, list_partition_directory, partition_directories
from logstore.disk.names import absolute_path, child, file_name
from logstore.errors import InvalidNameError
from logstore.layout import clean_shutdown, meta_properties, partition_metadata
from logstore.layout.file_names import DirectoryKind, directory_name, is_renamed_log
from logstore.layout.meta_properties import MetaProperties
from logstore.log.maintain.retain import RETENTION_MS
from logstore.replay.directory_fates import Fate, FoundDirectory, directory_fates
from logstore.replay.metadata_image import MetadataImage
from logstore.replay.metadata_state import MetadataState, read_metadata
from logstore.store.metadata.log import DIRECTORY_NAME
from logstore.store.metadata.suitability import require_suitable
from logstore.store.opening.formatting import NODE_ID, node_of, owner
from logstore.store.opening.registration import require_known_bootstrap
from logstore.store.opening.retention import retention_warnings

from .adoption import AdoptedTopic, live_partitions, plan_adoption


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
        image: all that the metadata says; of a directory without owner, what it would say.
        warnings: what a broker does with other directories, and what retention deletes, in words.
        obstacles: directories and files beside which no broker starts, in words.
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
    warnings: tuple[str, ...]
    obstacles: tuple[str, ...]


def inspect(path: str) -> Inspection:
    """Inspect a data directory; no broker or store should be running.

    Raises:
        InvalidNameError: a directory in it that is no partition's.
        DataDirectoryError: it does not exist, or is not for one node alone.
        LogstoreError: its metadata cannot be read.
    """
    path = absolute_path(path)
    properties = owner(path)
    if properties is None:
        state, topics = plan_adoption(path)
        was_clean, steps = False, _adoption_steps(path, state, topics)
    else:
        metadata_path = child(path, DIRECTORY_NAME)
        state = read_metadata(metadata_path) if os.path.isdir(metadata_path) else MetadataState()
        was_clean = os.path.exists(child(path, clean_shutdown.FILE_NAME))
        steps = [] if was_clean else ["recover all partitions, because the directory was not closed in order"]
    require_known_bootstrap(path)
    image = state.image
    found = list(directory_fates(partition_directories(path), image))
    strays = [entry for entry in found if entry.name.kind is DirectoryKind.LIVE and entry.is_left_alone]
    if properties is not None:
        require_suitable(state, child(path, DIRECTORY_NAME), node_of(properties), has_partitions=bool(strays))
        steps += _first_steps(state, properties)
    steps += _config_steps(image) + _directory_steps(path, found, image)
    told = [entry for entry in found if entry.fate is not Fate.SERVED and not entry.lacks_id]
    fates = [entry.text for entry in told if not entry.fate.ends_broker]
    endings = [entry.text for entry in told if entry.fate.ends_broker]
    node_id = NODE_ID if properties is None or properties.node_id is None else properties.node_id
    due = retention_warnings(path, image, node_id, parse_broker_config({}), clock.now_ms(), was_clean=was_clean)
    return Inspection(
        path,
        properties,
        state.kraft_version,
        dict(image.features),
        {name: len(topic.partitions) for name, topic in sorted(image.topics.items())},
        image.next_producer_id,
        was_clean,
        tuple(steps),
        tuple(entry.path for entry in strays),
        tuple(name for name in sorted(image.topics) if image.topic_config(name).get(REMOTE_STORAGE) == "true"),
        image,
        (*fates, *due),
        (*endings, *_foreign_files(found), *_startup_files(path)),
    )


def _foreign_files(found: Sequence[FoundDirectory]) -> list[str]:
    """Return what keeps a broker from starting, or lets it begin empty: files with names that Kafka does not give."""
    errors = [error for entry in found for error in list_partition_directory(entry.path).errors]
    names = [str(error.path) for error in errors if isinstance(error, InvalidNameError)]
    start, empty = (
        "has no offset in its name: no broker starts beside it",
        "is not read: the partition would begin empty",
    )
    return [f"{path} {empty if is_renamed_log(file_name(path)) else start}" for path in names]


def _startup_files(path: str) -> list[str]:
    """Return what keeps a broker from starting among the files that it reads first."""
    broken = startup_files(list_data_directory(path))
    return [f"{one.where.path}: expected {one.expected}, found {one.found}: no broker starts on it" for one in broken]


def _first_steps(state: MetadataState, properties: MetaProperties) -> list[str]:
    steps = []
    if METADATA_VERSION not in state.image.features:
        steps.append("write the first records of the metadata log")
    if properties.node_id not in state.image.brokers:
        steps.append(f"register node {properties.node_id} in the metadata log")
    return steps


def _config_steps(image: MetadataImage) -> list[str]:
    return [
        f"unset {' '.join(sorted(config))} of {name}, which a broker would take over from a topic that was deleted"
        for name, config in sorted(image.removed_configs.items())
        if config and name in image.topics
    ]


def _directory_steps(path: str, found: Sequence[FoundDirectory], image: MetadataImage) -> list[str]:
    there = live_partitions(path).keys() | {directory.key for directory in found if directory.fate is Fate.MOVED}
    wanted = {(name, number) for name, topic in image.topics.items() for number in topic.partitions}
    steps = [step for directory in found if (step := _step(directory)) is not None]
    return steps + [f"make the directory of {directory_name(*key)}" for key in sorted(wanted - there)]


def _step(found: FoundDirectory) -> str | None:
    """Return what an opening does with a directory; None for nothing."""
    name = file_name(found.path)
    if found.fate is Fate.MOVED:
        return f"rename {name} to {directory_name(*found.key)}, as a broker does"
    if found.fate is Fate.DELETED and found.name.kind is DirectoryKind.LIVE:
        return f"set {name} aside to be deleted, as its topic was"
    if not found.lacks_id:
        return None
    why = "no broker starts" if found.fate is Fate.UNREADABLE else "a broker sets the directory aside as -stray"
    return f"write {partition_metadata.FILE_NAME} of {name}, without which {why}"


def _adoption_steps(path: str, state: MetadataState, topics: Sequence[AdoptedTopic]) -> list[str]:
    """Return the steps of an adoption: the directory is empty, or partitions were put there."""
    has_metadata = os.path.isdir(child(path, DIRECTORY_NAME))
    steps = [f"make {meta_properties.FILE_NAME}" + ("" if has_metadata else " and a metadata log")]
    for topic in topics:
        known = f"id {topic.topic_id}" if topic.topic_id is not None else "a new id"
        if topic.config == {RETENTION_MS: "-1"}:
            known += ", and with retention.ms=-1, as nobody knows its configuration"
        steps.append(f"make topic {topic.name} of {topic.partition_count} partitions with {known}")
    if state.image.topics:
        steps.append("begin producer ids behind the highest that is in the logs")
        steps.append("recover all partitions, because nobody says that they were closed in order")
    return steps
