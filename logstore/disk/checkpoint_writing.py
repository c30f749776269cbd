"""Checkpoints to bytes, as Kafka writes them (`CheckpointFile.write`, `LeaderEpochCheckpointFile`).

>>> leader_epoch_checkpoint_bytes([(0, 0), (2, 18)])
b'0\\n2\\n0 0\\n2 18\\n'
"""

from __future__ import annotations

from collections.abc import Sequence

from ..layout import leader_epoch_checkpoint


def leader_epoch_checkpoint_bytes(epochs: Sequence[tuple[int, int]]) -> bytes:
    """The content of a `leader-epoch-checkpoint` with these (epoch, start offset) entries."""
    lines = [str(leader_epoch_checkpoint.VERSION), str(len(epochs))]
    lines += [f"{epoch} {start_offset}" for epoch, start_offset in epochs]
    return "".join(f"{line}\n" for line in lines).encode()
