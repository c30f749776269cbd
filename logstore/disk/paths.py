"""What is at a path, on a disk or, if the path is a URL, in an object store; in the words of `os`.

Failures are OSErrors, as the ones of `os`. Questions that `os.path` answers with no where it cannot look raise
DataDirectoryError for a store that does not answer. `objects` is imported for the first URL only.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import TYPE_CHECKING, Union

from .names import is_url, java_file
from .open_files import opened
from .system_errors import nio_error

if TYPE_CHECKING:
    from .objects import ObjectEntry, ObjectStatus

Entry = Union["os.DirEntry[str]", "ObjectEntry"]
Status = Union[os.stat_result, "ObjectStatus"]
Scan = Callable[[str], list[Entry]]

WILDCARDS = "*?["
_NAME = attrgetter("name")


def stat(path: str) -> Status:
    """Return `os.stat(path)`, links followed."""
    if is_url(path):
        from . import objects

        return objects.stat(path)
    return os.stat(path)


def lstat(path: str) -> Status:
    """Return `os.lstat(path)`."""
    return stat(path) if is_url(path) else os.lstat(path)


def exists(path: str) -> bool:
    """Return whether there is anything of this name, a link too."""
    return os.path.lexists(path) if not is_url(path) else _mode(path) != 0


def is_directory(path: str) -> bool:
    """Return whether a directory is there, or at the end of a link."""
    return os.path.isdir(path) if not is_url(path) else modes.S_ISDIR(_mode(path))


def is_file(path: str) -> bool:
    """Return whether a plain file is there, or at the end of a link."""
    return os.path.isfile(path) if not is_url(path) else modes.S_ISREG(_mode(path))


def _mode(url: str) -> int:
    try:
        return stat(url).st_mode
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise nio_error(error, url) from error


def real_path(path: str) -> str:
    """Return the path without links; of a URL its one form, without a trailing slash."""
    return java_file(path) if is_url(path) else os.path.realpath(path)


def scan(path: str) -> list[Entry]:
    """Return the entries of a directory, by name."""
    if is_url(path):
        from . import objects

        return [*objects.scan(path)]
    with opened(os.scandir, path) as entries:
        return sorted(entries, key=_NAME)


def forget(path: str) -> None:
    """Have the directory that the path is in listed anew, if it is in an object store."""
    if is_url(path):
        from . import objects

        objects.forget(path)


def tree_scan(path: str) -> Scan:
    """Return `scan` for a directory and those in it: all objects of a store are listed at once."""
    if not is_url(path):
        return scan
    from . import objects

    listed = objects.scan_tree(path)
    return lambda directory: [*listed(directory)]


def url_matches(pattern: str) -> list[str]:
    """Return the URLs that a pattern matches, by name; `**` is any number of directories, and hidden names need a dot.

    What is below the part of the pattern without wildcards is listed at once.
    """
    parts = pattern.split("/")
    fixed_count = next(index for index, part in enumerate(parts) if any(c in part for c in WILDCARDS))
    base = "/".join(parts[:fixed_count])
    try:
        scan_below = tree_scan(base)
        return sorted(set(_matches(base, parts[fixed_count:], scan_below)))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise nio_error(error, base) from error


def _matches(directory: str, parts: list[str], scan_below: Scan) -> Iterator[str]:
    first, rest = parts[0], parts[1:]
    if first == "**" and rest:
        yield from _matches(directory, rest, scan_below)
    for entry in scan_below(directory):
        if entry.name.startswith(".") and not first.startswith("."):
            continue
        if first == "**" and entry.is_dir():
            yield from _matches(entry.path, parts, scan_below)
        if not fnmatchcase(entry.name, first):
            continue
        if not rest:
            yield entry.path
        elif entry.is_dir() and first != "**":
            yield from _matches(entry.path, rest, scan_below)
