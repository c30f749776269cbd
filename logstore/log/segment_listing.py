"""Which files make which segment of a directory that is being written, rolled, cleaned and cut by others.

A `.swap` file is whole, and takes the place of the files that it has been made from; see `left_overs`. So where there
is one, it counts, and nothing of its segment is missed while old files go and new ones take their names. `.cleaned`
files are not whole yet, `.deleted` ones are nobody's any more.
"""

from __future__ import annotations

from ..errors import InvalidNameError
from ..layout.file_names import (
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    base_offset_of,
)
from .directory import PartitionDirectory
from .live_segment import DirectoryChangedError

_LISTING_COUNT_MAX = 100


def settled_names(directory: PartitionDirectory) -> list[str]:
    """The names of all files, sorted, listed again until two listings are alike: one may miss a file that is renamed.

    Raises:
        DirectoryChangedError: they do not become alike.
        DataDirectoryError: the directory cannot be listed.
    """
    names = directory.names()
    for _ in range(_LISTING_COUNT_MAX):
        again = directory.names()
        if again == names:
            return names
        names = again
    raise DirectoryChangedError


def segment_names(names: list[str]) -> dict[int, dict[str, str]]:
    """From base offset, ascending, to the names of a segment's files by suffix; there is a `.log` of each.

    >>> names = ["00.index", "00.log", "05.log", "05.log.swap", "07.index", "09.log.deleted"]
    >>> segment_names(names)
    {0: {'.index': '00.index', '.log': '00.log'}, 5: {'.log': '05.log.swap'}}
    """
    found: dict[int, dict[str, str]] = {}
    for name in sorted(names, key=lambda name: name.endswith(SWAP_SUFFIX)):
        kind = next((kind for kind in SEGMENT_SUFFIXES if name.removesuffix(SWAP_SUFFIX).endswith(kind)), None)
        offset = _offset_of(name)
        if kind is not None and offset is not None:
            found.setdefault(offset, {})[kind] = name
    return {offset: found[offset] for offset in sorted(found) if LOG_SUFFIX in found[offset]}


def snapshot_names(names: list[str]) -> dict[int, str]:
    """From offset to name of the producer snapshots."""
    found = {_offset_of(name): name for name in names if name.endswith(PRODUCER_SNAPSHOT_SUFFIX)}
    return {offset: name for offset, name in found.items() if offset is not None}


def _offset_of(name: str) -> int | None:
    try:
        return base_offset_of(name)
    except InvalidNameError:
        return None  # no broker makes such a file
