"""Files written as a whole: replaced atomically, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..errors import DataDirectoryError
from .names import absolute_path, parent
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


def write_output(seam: Seam, path: str, data: Writable) -> None:
    """Write a file that a user named; durable on return. An error or an interrupt leaves the old file, or none.

    A device or a pipe is only written to.

    Raises:
        DataDirectoryError: a call failed, or `path` is a symbolic link.
    """
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        descriptor = seam.create(path)  # which refuses a link
        try:
            seam.write(descriptor, data)
        finally:
            seam.close(descriptor)
        return
    temporary_path = path + CHECKPOINT_TEMPORARY_SUFFIX
    try:
        replace_file(seam, path, data, syncs_name=False)
    except BaseException as error:
        if os.path.lexists(temporary_path):
            seam.unlink(temporary_path)
        if isinstance(error, DataDirectoryError):  # which the user reads, who named the other one
            error.message = (error.message or "").replace(temporary_path, path)
        raise
    seam.sync_directory(parent(absolute_path(path)))


def write_file(seam: Seam, path: str, pieces: Iterable[Writable]) -> None:
    """Create or overwrite a file; its content is durable on return, its name is not. Raises DataDirectoryError."""
    descriptor = seam.create(path)
    try:
        for piece in pieces:
            seam.write(descriptor, piece)
        seam.sync(descriptor)
    finally:
        seam.close(descriptor)


def truncate_file(seam: Seam, path: str, size: int) -> None:
    """Truncate a file to `size` bytes; durable on return. Raises DataDirectoryError."""
    descriptor = seam.open(path)
    try:
        seam.truncate(descriptor, size)
        seam.sync(descriptor)
    finally:
        seam.close(descriptor)
