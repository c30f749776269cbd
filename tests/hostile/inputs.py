"""What is damaged: files of the golden directories, streams of each codec, records of internal topics; and how."""

from __future__ import annotations

import struct
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from logstore.codec import compress
from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords
from logstore.kernels.scan.crc32c import crc32c
from logstore.layout import batch as layout
from logstore.layout.batch import MAGIC_V2
from tests.conformance.damage import ANYWHERE, KINDS, MAGIC_AT, batch_positions, damaged
from tests.golden.archive import unpack
from tests.hostile.parsers import CODECS, MAGIC_COUNT, PARSERS, Parser
from tests.support.dice import Dice

GOLDEN_NAMES = ("records", "transactions", "compacted", "groups", "cluster", "legacy", "random")
TEXTS = ("checkpoint", "meta.properties", "partition.metadata", "quorum-state")
INTERNAL = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state")
SIZE_MAX = 1 << 17  # of an input, so that there are many
SMALLEST_SIZES = {".log": 100, ".snapshot": 20, ".index": 8, ".timeindex": 12, ".txnindex": 34}
#: a turn: logs have eight parsers, and their bytes are most of what there is
TURN = (*[".log"] * 16, *[".stream"] * 4, ".index", ".timeindex", ".txnindex", ".snapshot", ".text", ".message")


class Input(NamedTuple):
    """Damaged bytes, and what reads them."""

    parser: Parser
    content: bytes


class Inputs:
    """Inputs by number, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._samples: dict[str, list[bytes]] = defaultdict(list)
        with TemporaryDirectory() as place:
            for name in GOLDEN_NAMES:
                for path in sorted(unpack(name, Path(place)).rglob("*")):
                    if path.is_file():
                        self._add(path)
        for content in self._samples[".log"][:40]:
            for number, codec in enumerate(CODECS * MAGIC_COUNT):
                self._samples[".stream"].append(bytes([number]) + compress(codec, memoryview(content[:30_000])))

    def _add(self, path: Path) -> None:
        content = path.read_bytes()[: SIZE_MAX // 2]
        if path.name.endswith(TEXTS):
            self._samples[".text"].append(content)
        elif path.suffix == ".checkpoint":
            self._samples[".log"].append(content)
        elif path.suffix in PARSERS and content:
            self._samples[path.suffix].append(content.rstrip(b"\0") + bytes(24))
        if path.suffix == ".log" and path.parent.name.startswith(INTERNAL):
            self._samples[".message"] += messages_of(path.read_bytes())

    def of(self, number: int) -> Input:
        """Return an input with one to three damages."""
        dice = Dice(f"{self._seed} {number}")
        suffix = TURN[number % len(TURN)]
        content = dice.choose(self._samples[suffix])
        for turn in range(dice.between(1, 3)):
            kind = dice.choose(list(KINDS.get(suffix, ANYWHERE)))
            if len(content) < SMALLEST_SIZES.get(suffix, 1):  # nothing in it can be changed
                kind = "append-noise"
            known = suffix if suffix in KINDS else ".snapshot"  # any that has all that goes anywhere
            with suppress(struct.error):  # a length that does not become larger
                content = damaged(content, known, kind, f"{self._seed} {number} {turn}")
        if suffix == ".log" and dice.chance(50):
            content = signed(content)
        return Input(dice.choose(PARSERS[suffix]), content[:SIZE_MAX])


def signed(log: bytes) -> bytes:
    """Return the log with checksums that fit, so that what comes behind the check of them is reached."""
    content = bytearray(log)
    for start in batch_positions(content):
        (length,) = struct.unpack_from(">i", content, start + layout.BATCH_LENGTH)
        end = start + layout.LOG_OVERHEAD_SIZE + length
        if content[start + MAGIC_AT] == MAGIC_V2 and end - start > layout.ATTRIBUTES:
            checksum = crc32c(bytes(content[start + layout.ATTRIBUTES : end]))
            struct.pack_into(">I", content, start + layout.CRC, checksum)
    return bytes(content)


def messages_of(log: bytes) -> list[bytes]:
    """Return the records of a log, each as the length of its key in two bytes, its key and its value."""
    data, found = np.frombuffer(log, np.uint8), []
    table = scan(data)
    for row in np.flatnonzero(table.magic >= MAGIC_V2).tolist():
        for chunk in BatchRecords(data, table, row).chunks():
            for index in range(len(chunk)):
                key = chunk.key(index) or b""
                found.append(len(key).to_bytes(2) + key + (chunk.value(index) or b""))
    return found
