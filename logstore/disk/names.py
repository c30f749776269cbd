"""File names as Java's `java.io.File` normalizes and prints them, as they stand in Kafka's messages.

>>> java_file("data//t-0/x.log/"), java_file("//"), java_file("")
('data/t-0/x.log', '/', '')
>>> file_name("data/t-0/x.log"), parent("/x.log"), child("/", "x.log")
('x.log', '/', '/x.log')
"""

from __future__ import annotations

import os
import re

_SLASHES = re.compile("/{2,}")


def java_file(path: str) -> str:
    """Return `new File(path).toString()`: no doubled and no trailing slash; `.` and `..` stay."""
    if "//" in path:
        path = _SLASHES.sub("/", path)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def absolute_path(path: str) -> str:
    """Return `File.getAbsolutePath`: the working directory before a relative path; nothing is resolved."""
    path = java_file(path)
    if path.startswith("/"):
        return path
    return child(os.getcwd(), path) if path else os.getcwd()


def file_name(path: str) -> str:
    """Return `File.getName`: the part behind the last slash."""
    return java_file(path).rpartition("/")[2]


def parent(path: str) -> str:
    """Return `File.getParent` of an absolute path that is not the root."""
    return java_file(path).rpartition("/")[0] or "/"


def child(directory: str, name: str) -> str:
    """Return `new File(directory, name)`."""
    return f"{directory}{name}" if directory.endswith("/") else f"{directory}/{name}"


def sibling(path: str, name: str) -> str:
    """Return the absolute path of the file `name` in the directory of `path`."""
    return child(parent(absolute_path(path)), name)
