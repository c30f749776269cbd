"""The paths in a user's options: lists of them, URLs of files, and the location of a catalog's table."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from logstore.disk import objects
from logstore.disk.names import is_url, normal_path
from logstore.errors import UsageError

_PROPERTIES = frozenset(  # Spark's own of a table (`TableCatalog.RESERVED_PROPERTIES`)
    {"collation", "comment", "external", "is_managed_location", "location", "owner", "provider", "table_type"}
)
_COPIED = "option."  # begins the names of properties that repeat options


def without_properties(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a catalog's table (`CREATE TABLE … USING kafka_segments`); Spark adds its properties."""
    if "provider" not in given:
        return given
    found = {name: value for name, value in given.items() if name not in _PROPERTIES and not name.startswith(_COPIED)}
    copied = {name.removeprefix(_COPIED): value for name, value in given.items() if name.startswith(_COPIED)}
    place = {"path": given["location"]} if "location" in given else {}
    return {**place, **copied, **found}


def split_paths(text: str) -> list[str]:
    """Split at the commas that are in no braces: `{a,b}` is a choice in one path."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def readable_path(path: str) -> str:
    """Return the absolute path, or the URL of an object store; raises as `local_path`, and as `root_of`."""
    if not is_url(path) or path.partition(":")[0].lower() not in (*objects.SCHEMES, *objects.OTHER_NAMES):
        return local_path(path)
    objects.root_of(path)
    return normal_path(path)


def local_path(path: str) -> str:
    """The absolute path; raises UsageError for a URL of something else than files."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", path)
    if scheme is not None and scheme[1].lower() != "file":
        raise UsageError(
            "kafka_segments works on file systems that driver and executors have mounted",
            expected="a path, or file:/…",
            found=path,
            advice="mount the storage, or copy the directory to where all executors see it",
        )
    if scheme is not None:
        path = path[len("file:") :]
        if re.match("//[^/]", path) and not path.startswith("//localhost/"):
            raise UsageError("a file: URL names no host", expected="file:///…", found=f"file:{path}")
        path = re.sub("^/{2,}", "/", path.removeprefix("//localhost"))
    return os.path.abspath(path)
