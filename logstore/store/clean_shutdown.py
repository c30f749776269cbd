"""`.kafka_cleanshutdown`: that the logs of a data directory need no recovery (`CleanShutdownFileHandler`)."""

from __future__ import annotations

import os

from ..disk.atomic import replace_file
from ..disk.checkpoint_writing import clean_shutdown_bytes
from ..disk.names import child
from ..disk.seam import Seam
from ..layout import clean_shutdown

_TEMPORARY_SUFFIX = ".tmp"


def take_clean_shutdown(seam: Seam, root: str) -> bool:
    """Whether the directory was closed in order; from now on it is not, on the disk too."""
    path = child(root, clean_shutdown.FILE_NAME)
    if not os.path.exists(path):
        return False
    seam.unlink(path)
    seam.sync_directory(root)
    return True


def write_clean_shutdown(seam: Seam, root: str, broker_epoch: int) -> None:
    """Everything of the directory is on the disk."""
    path = child(root, clean_shutdown.FILE_NAME)
    replace_file(seam, path, clean_shutdown_bytes(broker_epoch), temporary_suffix=_TEMPORARY_SUFFIX)
