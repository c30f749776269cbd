"""The partitions of a stream, remembered between its triggers.

A trigger asks for the bounds of all partitions, most of which nobody has written to. What was found before holds while
the names in the data directories, the time of a partition's directory, and size and time of its last log are the same.
Times that were near the clock when they were read prove nothing: a file may change twice within a tick of its clock.
So an idle trigger takes two `stat` a partition, in place of listing and opening it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from logstore import clock
from logstore.disk import paths
from logstore.disk.directory import list_partition_directory
from logstore.disk.names import is_url, parent
from logstore.disk.side_files import topic_id_of
from logstore.view.follower import with_swaps

from .bounds import PartitionBounds, Readers, find_bounds
from .directories import find_partitions, matches
from .listed_partition import ListedPartition, RootOffsets
from .options import Options
from .seen import properties_of

REST_NS = 2_000_000_000  # from the last write to a time that is trusted; more than a tick of a file system's clock
Key = tuple[str, int]
Stamp = tuple[int, ...]
Content = tuple[frozenset[str], frozenset[str] | None]  # names, and the lines of `meta.properties`


@dataclass(frozen=True, slots=True)
class _Known:
    """A partition as it was found, with stamps of its directory and its last log; None: not to be trusted."""

    bounds: PartitionBounds
    topic_id: str | None
    directory: Stamp | None
    log: Stamp | None


class RememberedPartitions:
    """The chosen partitions of some directories, and what was found of each; `topic_ids` of those that have one."""

    def __init__(self, options: Options) -> None:
        self.topic_ids: dict[Key, str] = {}
        self._options = options
        self._readers: Readers = {}
        self._known: dict[str, _Known] = {}
        self._roots: dict[str, Content | None] = {}
        self._partitions: list[ListedPartition] = []

    def bounds(self, *, may_lack: bool = True) -> dict[Key, PartitionBounds]:
        """Return the current bounds of all chosen partitions; raises as `find_partitions` and `find_bounds`.

        What cannot be listed is an error, as it is not gone.
        """
        partitions, found = self._listed(may_lack=may_lack), {}
        roots, self._roots = self._roots, {}  # after an error all is listed again
        before, self._known, self.topic_ids = self._known, {}, {}
        for partition in partitions:
            one = self._look(partition, before.get(partition.files.path))
            self._known[partition.files.path] = one
            found[partition.key] = one.bounds
            if one.topic_id is not None:
                self.topic_ids[partition.key] = one.topic_id
        self._roots = roots
        return found

    def _listed(self, *, may_lack: bool) -> list[ListedPartition]:
        """Return the partitions; list them again if there are other names, or another broker's, in the directories."""
        options = self._options
        roots = {path: _content(path) for given in options.paths for path in matches(given)}
        if roots != self._roots or None in roots.values() or not may_lack:
            found = find_partitions(options.paths, options.choice, is_strict=True, may_lack=may_lack)
            self._partitions, self._roots, self._known = found.listed, roots, {}
            return self._partitions
        parents = {parent(one.files.path) for one in self._partitions}
        offsets = {path: RootOffsets.of(path) for path in parents}
        return [offsets[parent(one.files.path)].listed(one.files, one.properties) for one in self._partitions]

    def _look(self, partition: ListedPartition, known: _Known | None) -> _Known:
        path, now_ns = partition.files.path, clock.now_ms() * 1_000_000
        directory = _stamp(path, now_ns)
        if known is not None and directory is not None and known.directory == directory:
            before = known.bounds.partition
            log = _log_stamp(before, now_ns)
            if log is not None and log == known.log and before.log_start_offset == partition.log_start_offset:
                return known
            listed, topic_id = partition._replace(files=before.files), known.topic_id
        else:
            if known is None:
                listed, directory = partition, None  # it was listed before the stamp was taken
            else:
                listed = partition._replace(files=with_swaps(list_partition_directory(path)))
                for error in listed.files.errors:
                    raise error
            log, topic_id = _log_stamp(listed, now_ns), topic_id_of(path)
        bounds = find_bounds(listed, self._options.isolation_level, self._readers)
        return _Known(bounds, topic_id, directory if bounds.partition is listed else None, log)


def _content(path: str) -> Content | None:
    try:
        return frozenset(entry.name for entry in paths.scan(path)), properties_of(path)
    except OSError:
        return None


def _log_stamp(partition: ListedPartition, now_ns: int) -> Stamp | None:
    segments = partition.files.segments
    return _stamp(segments[-1].log, now_ns) if segments else ()


def _stamp(path: str, now_ns: int) -> Stamp | None:
    """Return what changes when a file or a directory is written to; None if that was a moment ago, or it is gone."""
    if is_url(path):
        return None  # a prefix has no time that changes with what is below it
    try:
        status = os.stat(path)
    except OSError:
        return None
    if abs(now_ns - status.st_ctime_ns) < REST_NS:
        return None
    return status.st_ino, status.st_size, status.st_ctime_ns
