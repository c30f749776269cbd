"""Files that are written as a whole: replaced at once, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from .names import parent
from .seam import Seam, Writable


def replace_file(seam: Seam, path: str, data: Writable, *, temporary_suffix: str, syncs_name: bool = True) -> None:
    """Put a file with `data` at `path`; on return it is on the disk, its name if `syncs_name`.

    Whoever looks, also after a crash, finds the old file or the new one. A crash may leave `path` + `temporary_suffix`
    behind. The order is that of `CheckpointFile.write`: write beside it, sync, rename, sync the directory.

    Raises:
        DataDirectoryError: a call failed; the file at `path` is then the old one, or the new one perhaps not synced.
    """
    temporary_path = path + temporary_suffix
    write_file(seam, temporary_path, [data])
    seam.rename(temporary_path, path)
    if syncs_name:
        seam.sync_directory(parent(path))


def write_file(seam: Seam, path: str, pieces: Iterable[Writable]) -> None:
    """Make a file of these bytes, or write it anew; on return it is on the disk, but for its name.

    Raises:
        DataDirectoryError: a call failed.
    """
    descriptor = seam.create(path)
    try:
        for piece in pieces:
            seam.write(descriptor, piece)
        seam.sync(descriptor)
    finally:
        seam.close(descriptor)


def truncate_file(seam: Seam, path: str, size: int) -> None:
    """Cut the file at `path` to `size` bytes; on return the cut is on the disk.

    Raises:
        DataDirectoryError: a call failed.
    """
    descriptor = seam.open(path)
    try:
        seam.truncate(descriptor, size)
        seam.sync(descriptor)
    finally:
        seam.close(descriptor)
