r"""`leader-epoch-checkpoint`, in a partition's directory: start of each epoch (`LeaderEpochCheckpointFile`).

Text as in `checkpoint`, version 0; an entry is `<epoch> <start offset>`, both ascending. An epoch ends where the next
one starts. With the entries a follower finds the offset at which its log and the leader's diverge (KIP-101, KIP-279).

>>> parse_leader_epoch_checkpoint(bytes.fromhex("300a 320a 3020300a 322031380a"), path="/d/l-e-c")
[(0, 0), (2, 18)]
"""

from __future__ import annotations

from .checkpoint import int_field, long_field, parse_checkpoint

VERSION = 0
FILE_NAME = "leader-epoch-checkpoint"


def parse_leader_epoch_checkpoint(data: bytes, *, path: str) -> list[tuple[int, int]]:
    """Return (epoch, start offset) of each entry, in file order; raise CheckpointFormatError with Kafka's message."""
    return parse_checkpoint(data, version=VERSION, path=path, parse_entry=_parse_entry)


def _parse_entry(fields: list[str]) -> tuple[int, int] | None:
    if len(fields) != 2:
        return None
    epoch, start_offset = fields
    return int_field(epoch), long_field(start_offset)
