"""File names as Java's `java.io.File` normalizes and prints them, as they stand in Kafka's messages; and URLs.

>>> java_file("data//t-0/x.log/"), java_file("//"), java_file("")
('data/t-0/x.log', '/', '')
>>> file_name("data/t-0/x.log"), parent("/x.log"), child("/", "x.log")
('x.log', '/', '/x.log')
>>> java_file("s3://bucket//t-0/"), parent("s3://bucket/t-0"), parent("s3://bucket"), absolute_path("s3://bucket/")
('s3://bucket/t-0', 's3://bucket', 's3://bucket', 's3://bucket')
"""

from __future__ import annotations

import os
import re

from ..errors import UsageError

_SLASHES = re.compile("/{2,}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def path_text(path: str | os.PathLike[str]) -> str:
    """Return the path that a caller names; raise UsageError for an empty one, or no text that can be a path."""
    try:
        text = os.fspath(path)
        if isinstance(text, str) and text and "\0" not in text and os.fsencode(text):
            return text
    except (TypeError, UnicodeEncodeError):
        pass
    raise UsageError("A path is a text, and not empty", expected="a str or os.PathLike", found=ascii(path))


def is_url(path: str) -> bool:
    """Return whether a path names an object of a store, or what only another program can read."""
    return "://" in path and _SCHEME.match(path) is not None


def java_file(path: str) -> str:
    """Return `new File(path).toString()`: no doubled and no trailing slash; `.` and `..` stay."""
    if "//" in path:
        scheme = path[: path.index("://") + 3] if is_url(path) else ""
        path = scheme + _SLASHES.sub("/", path[len(scheme) :])
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def absolute_path(path: str) -> str:
    """Return `File.getAbsolutePath`: the working directory before a relative path; nothing is resolved.

    Raises UsageError for a relative path in a working directory that is gone.
    """
    path = java_file(path)
    if path.startswith("/") or is_url(path):
        return path
    try:
        return child(os.getcwd(), path) if path else os.getcwd()
    except OSError as error:
        raise UsageError(
            "The working directory is gone", path=path, found=error.strerror, advice="give an absolute path"
        ) from error


def normal_path(path: str) -> str:
    """Return the absolute path without `.` and `..`; a URL as it is."""
    return java_file(path) if is_url(path) else os.path.normpath(absolute_path(path))


def file_name(path: str) -> str:
    """Return `File.getName`: the part behind the last slash."""
    return java_file(path).rpartition("/")[2]


def parent(path: str) -> str:
    """Return `File.getParent` of an absolute path; the root's is the root."""
    path = java_file(path)
    above = path.rpartition("/")[0]
    return path if above.endswith(":/") and is_url(path) else above or "/"


def child(directory: str, name: str) -> str:
    """Return `new File(directory, name)`."""
    return f"{directory}{name}" if directory.endswith("/") else f"{directory}/{name}"


def sibling(path: str, name: str) -> str:
    """Return the absolute path of the file `name` in the directory of `path`."""
    return child(parent(absolute_path(path)), name)
