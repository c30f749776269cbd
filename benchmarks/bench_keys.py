"""Keys to the hashes that partitions are chosen by."""

from __future__ import annotations

import numpy as np

from benchmarks.floors import reading
from benchmarks.measured import Measured
from benchmarks.sizes import scaled
from logstore.client.producer.queues import murmur2
from logstore.kernels.table.key_hashes import murmur2_key, murmur2_keys

KEY_COUNT = scaled(10_000, 1_000_000)
KEY_SIZE = 16
NEAR_COUNT = 1_000


def test_murmur2_keys(measured: Measured) -> None:
    data = np.frombuffer(b"".join(b"%016d" % number for number in range(KEY_COUNT)), np.uint8)
    starts = np.arange(KEY_COUNT, dtype=np.int64) * KEY_SIZE
    hashes = np.zeros(KEY_COUNT, np.int64)
    arguments = (data, starts, starts + KEY_SIZE, KEY_COUNT, hashes)
    floor, hashed = reading(data), lambda count: (count, hashes)
    assert measured(murmur2_keys, *arguments, count=KEY_COUNT, unit="keys", floor=floor, hashed=hashed) == KEY_COUNT
    assert hashes[-1] == murmur2(b"%016d" % (KEY_COUNT - 1))


def test_murmur2_key(measured: Measured) -> None:
    keys = [b"%016d" % number for number in range(NEAR_COUNT)]
    sizes = [KEY_SIZE] * NEAR_COUNT
    hashes = measured(
        lambda: list(map(murmur2_key, keys, sizes)),
        count=NEAR_COUNT,
        unit="keys",
        floor="a few words of memory: less than a call",
        hashed=lambda hashes: hashes,
    )
    assert hashes == list(map(murmur2, keys))
