"""Hashes of a column of keys, as the Java producer chooses partitions by them.

>>> from .record_columns import BytesColumn
>>> murmur2_hashes(BytesColumn.of_values([b"21", None, b"foobar"])).tolist()
[-973932308, 0, -790332482]
"""

from __future__ import annotations

import numpy as np

from ..kernels.key_hashes import murmur2_keys
from .batch_table import Int64Array
from .record_columns import BytesColumn


def murmur2_hashes(keys: BytesColumn) -> Int64Array:
    """int64[n], each a Java int; 0 for a null key. The partition of a hash is `(hash & 0x7fffffff) % partition_count`.

    Raises:
        UsageError: a range of the column that is not within its bytes.
    """
    keys.sizes  # noqa: B018 - looks whether all ranges are there
    hashes = np.empty(len(keys), np.int64)
    murmur2_keys(keys.data, keys.starts, keys.ends, len(keys), hashes)
    return hashes
