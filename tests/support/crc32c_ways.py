"""The checksum in each of the ways that some processor has."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.kernels.scan import crc32c
from tests.support.kernel_forms import Guarded, run_both

WAYS = {"instruction": 1, "tables": 0}  # has_crc32c


def crcs_of(data: bytes, start: int, end: int) -> set[int]:
    """Checksums of data[start:end], compiled and interpreted in each way; no byte is read behind the end."""
    array = np.frombuffer(data, np.uint8)
    found = {run_both(crc32c.crc32c_range, array, start, end, read_limit=end)}
    for has_crc32c in WAYS.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(crc32c, "has_crc32c", lambda has=has_crc32c: has)
            found.add(crc32c.crc32c_range.function(Guarded(array, end), start, end))
    return found
