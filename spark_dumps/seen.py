"""What the driver listed of a partition, and the check that an executor sees the same.

An executor on another machine opens the same path and may find nothing there, or the directory of another broker. What
it would return then is no result: a missing file is taken for one that retention removed only if it was seen before, or
if the name that a broker gives it for the minute before its removal is there.
"""

from __future__ import annotations

import glob
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from logstore.disk import paths
from logstore.disk.directory import PartitionFiles
from logstore.disk.files import FILE_COST, read_if_present
from logstore.disk.names import child, is_url, parent
from logstore.disk.object_file import replaced
from logstore.disk.system_errors import nio_error
from logstore.errors import DataDirectoryError
from logstore.layout import meta_properties
from logstore.layout.file_names import DELETED_SUFFIX, DirectoryKind

ADVICE = (
    "give executors and driver the same path to the same storage, such as NFS; or, if retention, compaction or a "
    "truncation changed the directory after the query was planned, run the query again"
)
GROUP_COST_MAX = 512 * 1024 * 1024  # of a task, in bytes: half a second of an audit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """The files of a directory, or of some of it, as the driver saw them.

    Attributes:
        path: the directory of a partition.
        listing: sizes in bytes and names of the files, as text; size -1: only whether the file is there counts, as its
            size may change. A driver may know a million of them.
        file_count, byte_count: of the files; bytes of the logs.
        properties: lines of the `meta.properties` around the partition; None without the file.
        etags: path to ETag, of logs in an object store, which another content does not have.
    """

    path: str
    listing: str
    file_count: int
    byte_count: int
    properties: frozenset[str] | None
    etags: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, files: PartitionFiles, properties: frozenset[str] | None) -> SeenFiles:
        """Note the files of a partition now; a log that is gone since it was listed counts as empty."""
        sizes = {segment.log: _size(segment.log) for segment in files.segments}
        etags = {log: etag_of(log) for log in sizes} if is_url(files.path) else {}
        return cls.of_sizes(files.path, {**sizes, **dict.fromkeys(_side_files(files), -1)}, properties, etags)

    @classmethod
    def of_sizes(
        cls, path: str, sizes: dict[str, int], properties: frozenset[str] | None, etags: dict[str, str]
    ) -> SeenFiles:
        """Make it of the sizes of files by path, -1 as in `listing`."""
        start = len(path)
        listing = "\0".join([f"{size} {file[start:]}" for file, size in sizes.items()])
        return cls(path, listing, len(sizes), sum([size for size in sizes.values() if size > 0]), properties, etags)

    @property
    def sizes(self) -> dict[str, int]:
        entries = (entry.partition(" ") for entry in self.listing.split("\0") if entry)
        return {self.path + name: int(size) for size, _, name in entries}

    @property
    def cost(self) -> int:
        """The bytes of the logs, and what opening files takes, as so many bytes (Spark's `openCostInBytes`)."""
        return self.byte_count + FILE_COST * self.file_count

    def require(self) -> None:
        """Raise DataDirectoryError if this process sees less than was listed, or another directory."""
        root = parent(self.path)
        properties = properties_of(root)
        if self.properties is not None and properties is not None and properties != self.properties:
            raise _another_directory(root, self.properties, properties)
        if not self._is_there():
            self._refuse_missing_directory()
        for path, size in self.sizes.items():
            if not paths.exists(path):
                if not paths.exists(path + DELETED_SUFFIX):
                    raise self._not_seen(path, 1, max(size, 0))
            elif size > (found := _size(path)):
                raise DataDirectoryError(
                    f"executor {host()} sees fewer bytes: the segment is shorter than at planning",
                    path=path,
                    expected=f"at least {size} bytes",
                    found=found,
                    advice=ADVICE,
                )
        for path, etag in self.etags.items():
            if (found_etag := etag_of(path)) != etag:
                raise replaced(path, etag, found_etag)
        if properties != self.properties:
            raise _another_directory(root, self.properties, properties)

    def _is_there(self) -> bool:
        if not is_url(self.path):
            return paths.is_directory(self.path)
        try:
            return bool(paths.scan(self.path))  # listed anew: an earlier task of this process may have listed it
        except FileNotFoundError:
            return False
        except OSError as error:
            raise nio_error(error, self.path) from error

    def _refuse_missing_directory(self) -> None:
        if not is_url(self.path) and glob.glob(f"{glob.escape(self.path)}.*{DirectoryKind.DELETE.value}"):
            advice = "run the query again"
            raise DataDirectoryError("the partition was deleted after planning", path=self.path, advice=advice)
        raise self._not_seen(self.path, self.file_count, self.byte_count)

    def _not_seen(self, path: str, file_count: int, byte_count: int) -> DataDirectoryError:
        listed = f"{file_count} file{'' if file_count == 1 else 's'}, {byte_count} bytes"
        return DataDirectoryError(
            f"executor {host()} does not see {path} (driver listed {listed})", path=path, advice=ADVICE
        )


def packed(
    things: Sequence[T], cost: Callable[[T], int], group_count_min: int | None, most: int = GROUP_COST_MAX
) -> Iterator[tuple[T, ...]]:
    """Yield things in order, in groups of about equal cost: a dear thing alone, cheap ones together.

    Args:
        group_count_min: about so many groups at least; None: groups cost about `most`.
        most: no group costs more, but a thing that does so alone.
    """
    costs = [cost(thing) for thing in things]
    if group_count_min is not None:
        most = min(most, max(1, sum(costs) // group_count_min))
    held: list[T] = []
    held_cost = 0
    for thing, its_cost in zip(things, costs, strict=True):
        if held and held_cost + its_cost > most:
            yield tuple(held)
            held, held_cost = [], 0
        held.append(thing)
        held_cost += its_cost
    if held:
        yield tuple(held)


def host() -> str:
    return socket.gethostname()


def properties_of(root: str) -> frozenset[str] | None:
    """Return the lines of a data directory's `meta.properties` that are no comments; None without the file."""
    content = read_if_present(child(root, meta_properties.FILE_NAME))
    if content is None:
        return None
    lines = (line.strip() for line in content.decode(errors="replace").splitlines())
    return frozenset(line for line in lines if line and not line.startswith(("#", "!")))


def _another_directory(root: str, expected: frozenset[str] | None, found: frozenset[str] | None) -> DataDirectoryError:
    def text(lines: frozenset[str] | None, others: frozenset[str] | None) -> str:
        name = meta_properties.FILE_NAME
        return f"no {name}" if lines is None else f"{name} with {', '.join(sorted(lines - (others or frozenset())))}"

    return DataDirectoryError(
        f"executor {host()} sees another directory at {root} than the driver",
        path=root,
        expected=text(expected, found),
        found=text(found, expected),
        advice=ADVICE,
    )


def _side_files(files: PartitionFiles) -> Iterator[str]:
    for segment in files.segments:
        for path in (segment.offset_index, segment.time_index, segment.transaction_index):
            if path is not None:
                yield path
    yield from files.producer_snapshots.values()
    yield from files.kraft_snapshots.values()
    yield from files.files.values()


def etag_of(url: str) -> str:
    """Return the ETag of an object; empty if it is gone."""
    try:
        return str(paths.stat(url).st_ino)
    except FileNotFoundError:
        return ""


def _size(path: str) -> int:
    try:
        return paths.stat(path).st_size
    except FileNotFoundError:
        return 0
