"""The partitions below the paths of a read."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from logstore.disk import paths
from logstore.disk.directory import (
    DataDirectoryFiles,
    list_data_directory,
    list_partition_directory,
)
from logstore.disk.names import file_name, is_url, parent
from logstore.disk.recognition import is_partition, require_kafka
from logstore.disk.system_errors import is_missing, path_in
from logstore.errors import DataDirectoryError, LogstoreError, UnknownTopicOrPartitionError, UsageError
from logstore.layout.file_names import DirectoryKind, directory_name, parse_partition_directory

from .listed_partition import ListedPartition, RootOffsets
from .options import Mode, Options, TopicChoice
from .seen import properties_of

_NAME_COUNT_MAX = 10  # of names that an error lists


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A chosen partition that cannot be listed, or a file in it that cannot be read: a link that leads out, damage."""

    topic: str
    partition: int
    error: LogstoreError


@dataclass(frozen=True)
class FoundPartitions:
    """The chosen live partitions.

    Attributes:
        listed: sorted by topic and partition.
        refused: partitions whose directories cannot be listed.
        roots: the data directories among the paths and the matches of their patterns.
    """

    listed: list[ListedPartition]
    refused: list[Unlisted]
    roots: list[DataDirectoryFiles]

    @cached_property
    def keys(self) -> set[tuple[str, int]]:
        """(topic, partition) of all of them."""
        return {one.key for one in self.listed} | {(one.topic, one.partition) for one in self.refused}

    @property
    def unlisted(self) -> list[Unlisted]:
        """What no row can be read of: whole partitions, then files of the others."""
        files = [Unlisted(*one.key, error) for one in self.listed for error in one.files.errors]
        return [*self.refused, *files]


def find_partitions(
    paths: Iterable[str], choice: TopicChoice, *, is_strict: bool, may_lack: bool = False
) -> FoundPartitions:
    """Return the chosen live partitions below `paths`.

    A path, or what its glob pattern matches, is a data directory (`log.dirs`) or the directory of one partition.

    Args:
        is_strict: raise the error of a chosen partition that cannot be listed; else return it.
        may_lack: what is chosen may be missing, also all of a directory, as for a stream that waits for it.

    Raises:
        DataDirectoryError: a path is missing, or cannot be listed.
        LogstoreError: with `is_strict`.
        UnknownTopicOrPartitionError: a chosen topic or partition is missing, or none matches the pattern.
        UsageError: a path is no data directory; two replicas of a partition are there, of which only one can be read.
    """
    found: dict[tuple[str, int], ListedPartition] = {}
    refused: dict[str | None, Unlisted] = {}
    roots: dict[str, DataDirectoryFiles] = {}
    for path in paths:
        for directory in matches(path):
            inside = _partitions_in(directory, choice, is_given=directory == path, may_lack=may_lack)
            for unlisted in inside.unlisted if is_strict else []:
                raise unlisted.error
            refused.update((path_in(one.error), one) for one in inside.refused)
            roots.update((one.path, one) for one in inside.roots)
            for partition in inside.listed:
                twin = found.setdefault(partition.key, partition)
                if twin.files.path != partition.files.path:
                    raise UsageError(
                        f"{partition.name} is there twice",
                        expected="one replica of each partition",
                        found=f"{twin.files.path} and {partition.files.path}",
                        advice="read one broker's directories at a time",
                    )
    chosen = FoundPartitions([found[key] for key in sorted(found)], [*refused.values()], [*roots.values()])
    if not may_lack and (missing := _missing(choice, chosen.keys)):
        there = find_partitions(paths, TopicChoice(is_everything=True), is_strict=False, may_lack=True)
        raise _unknown(missing, [one.key for one in there.listed], paths)
    return chosen


def chosen_partitions(options: Options) -> FoundPartitions:
    """Return the partitions that the options choose, with FAILFAST strictly; raises as `find_partitions`."""
    return find_partitions(options.paths, options.choice, is_strict=options.mode is Mode.FAILFAST)


def partitions_of_topic(options: Options, topic: str) -> FoundPartitions:
    """Return the partitions of the one topic that a table reads; none in a data directory without the topic.

    Raises:
        UsageError: the options choose other topics, or no path is a data directory or a partition of the topic.
        UnknownTopicOrPartitionError: the options choose a partition of the topic that is missing.
    """
    choice, asked = options.choice, {topic}
    if choice == TopicChoice():
        choice = TopicChoice(topics=frozenset(asked))
    elif asked != (choice.topics or {name for name, _ in choice.partitions or ()}):
        raise UsageError(
            f"table {options.table} reads topic {topic} alone",
            advice="leave out subscribe, subscribePattern and assign, and filter the rows with where",
        )
    is_strict, may_lack = options.mode is Mode.FAILFAST, options.choice == TopicChoice()
    found = find_partitions(options.paths, choice, is_strict=is_strict, may_lack=may_lack)
    for directory in [] if found.keys else found.roots:
        require_kafka(directory)
    if not found.keys and not found.roots:
        raise UsageError(
            f"table {options.table} reads topic {topic} alone, and no path is a partition of it",
            found=", ".join(options.paths),
            advice="give the data directory",
        )
    return found


def matches(pattern: str) -> list[str]:
    """Return the directories that a path names, or a glob pattern matches; raises DataDirectoryError for none.

    In a pattern `{a,b}` is one or the other, as for Hadoop.
    """
    if paths.exists(pattern):  # a name may contain characters of a pattern
        return [pattern]
    named = [path for one in _without_braces(pattern) for path in _glob(one)]
    found = sorted({path for path in named if paths.is_directory(path)})
    if not found:
        raise DataDirectoryError("there is no such directory", path=pattern, advice="give a data directory of a broker")
    return found


def _without_braces(pattern: str) -> list[str]:
    choice = re.search(r"\{([^{}]*)\}", pattern)
    if choice is None:
        return [pattern]
    before, behind = pattern[: choice.start()], pattern[choice.end() :]
    return [one for name in choice[1].split(",") for one in _without_braces(f"{before}{name}{behind}")]


def _glob(pattern: str) -> list[str]:
    if not is_url(pattern):
        return glob.glob(pattern)
    has_wildcards = any(character in pattern for character in paths.WILDCARDS)
    return paths.url_matches(pattern) if has_wildcards else [pattern]


def _partitions_in(directory: str, choice: TopicChoice, *, is_given: bool, may_lack: bool) -> FoundPartitions:
    """Return the chosen partitions of a directory, which is one of the paths if `is_given`, else a pattern's match."""
    by_path = TopicChoice(is_everything=True) if choice == TopicChoice() else choice  # the path of a partition names it
    try:
        data_directory = list_data_directory(directory)
        is_one = is_partition(data_directory)
    except DataDirectoryError as error:
        refused = _unlisted([error], by_path)
        if is_given or not refused:
            raise
        return FoundPartitions([], refused, [])
    refused, roots = list[Unlisted](), list[DataDirectoryFiles]()
    if is_one:
        listed, root, choice = [list_partition_directory(directory)], parent(directory), by_path
        if listed[0].kind is not DirectoryKind.LIVE:
            raise UsageError("this is a partition that a broker has set aside, and no table reads it", path=directory)
    else:
        if not may_lack:
            require_kafka(data_directory)
        listed, root, roots = list(data_directory.partitions), directory, [data_directory]
        refused = _unlisted(data_directory.errors, choice)
    offsets, properties = RootOffsets.of(root), properties_of(root)
    chosen = [
        files for files in listed if files.kind is DirectoryKind.LIVE and choice.accepts(files.topic, files.partition)
    ]
    return FoundPartitions([offsets.listed(files, properties) for files in chosen], refused, roots)


def _missing(choice: TopicChoice, found: Iterable[tuple[str, int]]) -> list[str]:
    """Return the names of the chosen topics or partitions that were not found; the pattern if nothing matches it."""
    keys = set(found)
    if choice.topics is not None:
        return sorted(choice.topics.difference(topic for topic, _ in keys))
    if choice.partitions is not None:
        return [directory_name(*key) for key in sorted(choice.partitions - keys)]
    return [choice.pattern] if choice.pattern is not None and not keys else []


def _unknown(missing: list[str], there: list[tuple[str, int]], paths: Iterable[str]) -> UnknownTopicOrPartitionError:
    topics = sorted({topic for topic, _ in there})
    known = [*topics, *(directory_name(*key) for key in there)]
    close = sorted({name for one in missing for name in get_close_matches(one, known, n=1)})
    return UnknownTopicOrPartitionError(
        f"no topic or partition here is what was asked for: {_listed(missing)}",
        path=", ".join(paths),
        found=f"topics {_listed(topics)}" if topics else "no topic",
        advice=f"did you mean {_listed(close)}?"
        if close
        else "a pattern is looked for in names of topics that are not internal; subscribe and assign name them exactly",
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _NAME_COUNT_MAX
    return ", ".join(names[:_NAME_COUNT_MAX]) + (f" and {more} more" if more > 0 else "")


def _unlisted(errors: Iterable[LogstoreError], choice: TopicChoice) -> list[Unlisted]:
    """Return the errors of listing that concern chosen live partitions which are still there."""
    paths = [(path_in(error), error) for error in errors if not is_missing(error)]
    named = [(parse_partition_directory(file_name(path or "")), error) for path, error in paths]
    return [
        Unlisted(name.topic, name.partition, error)
        for name, error in named
        if name is not None and name.kind is DirectoryKind.LIVE and choice.accepts(name.topic, name.partition)
    ]
