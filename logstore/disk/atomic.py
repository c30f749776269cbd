"""Files written as a whole: replaced atomically, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from .names import parent
from .seam import Seam, Writable

CHECKPOINT_TEMPORARY_SUFFIX = ".tmp"  # Kafka's own, which it overwrites


def replace_file(
    seam: Seam,
    path: str,
    data: Writable,
    *,
    temporary_suffix: str = CHECKPOINT_TEMPORARY_SUFFIX,
    syncs_name: bool = True,
) -> None:
    """Replace the file at `path` by `data`; durable on return, its name only if `syncs_name`.

    A reader, also after a crash, finds the old file or the new one. A crash may leave `path` + `temporary_suffix`
    behind. The order is that of `CheckpointFile.write`: write a temporary file, sync, rename, sync the directory.

    Raises:
        DataDirectoryError: a call failed; the file at `path` is the old one, or the new one perhaps not synced.
    """
    temporary_path = path + temporary_suffix
    write_file(seam, temporary_path, [data])
    seam.rename(temporary_path, path)
    if syncs_name:
        seam.sync_directory(parent(path))


def write_file(seam: Seam, path: str, pieces: Iterable[Writable]) -> None:
    """Create or overwrite a file with these bytes; its content is durable on return, its name is not.

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
    """Truncate the file at `path` to `size` bytes; durable on return.

    Raises:
        DataDirectoryError: a call failed.
    """
    descriptor = seam.open(path)
    try:
        seam.truncate(descriptor, size)
        seam.sync(descriptor)
    finally:
        seam.close(descriptor)
