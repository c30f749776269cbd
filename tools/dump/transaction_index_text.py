"""The text of a `.txnindex` (`DumpLogSegments.dumpTxnIndex`)."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from logstore.disk.files import read_file
from logstore.disk.names import absolute_path, file_name, java_file
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import base_offset_of
from logstore.layout.transaction_index import parse_transaction_index

from .findings import Findings


def dump_transaction_index(path: str, options: object, out: Callable[[bytes], None], findings: Findings) -> None:
    """Print one line per entry; no option and no finding concerns this file.

    Nothing is printed for a file that is missing, and of a damaged one not the entries before the damage.

    Raises:
        InvalidNameError, DataDirectoryError, CorruptIndexError: what the real tool dies of.
    """
    base_offset_of(file_name(path))
    if not os.path.exists(path):
        return
    if os.path.isdir(path):
        raise DataDirectoryError(f"{java_file(path)}: Is a directory", java_class="java.nio.file.FileSystemException")
    index = parse_transaction_index(read_file(path), path=absolute_path(path))
    index.require_all()
    columns = np.stack(
        [
            index.versions,
            index.producer_ids,
            index.first_offsets,
            index.last_offsets,
            index.last_stable_offsets,
        ],
        axis=1,
    )
    lines = [
        f"version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} "
        f"lastStableOffset: {last_stable_offset}\n"
        for version, producer_id, first_offset, last_offset, last_stable_offset in columns.tolist()
    ]
    out("".join(lines).encode())
