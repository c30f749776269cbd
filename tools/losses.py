"""Losses of a recovery: readable batches behind damage, which it would remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.errors import LogstoreError, UsageError

from .tables import count_of

if TYPE_CHECKING:
    from logstore.log.salvage.salvage import Piece
    from logstore.view.walk import Advance


def losses(path: str, advance: Advance, *, was_clean: bool, recovery_point: int) -> list[Piece]:
    """Return the good pieces of a log that its recovery would remove, because they are behind the first damage.

    It reads nothing after a clean shutdown, else the segments from the recovery point on (`LogLoader.recoverLog`).

    Args:
        advance: told of the bytes that are read.
    """
    from logstore.disk.directory import list_partition_directory
    from logstore.log.load.loader import first_unflushed
    from logstore.log.salvage.salvage import plan_salvage

    if was_clean:
        return []
    try:
        pieces = plan_salvage(path, advance)
    except UsageError:
        return []  # recovery first finishes a cleaning, and the segments that count are unknown before
    segments = list_partition_directory(path).segments
    first = first_unflushed((one.base_offset for one in segments), recovery_point)
    looked_at = [piece for piece in pieces if piece.base_offset >= first]
    damaged = next((number for number, piece in enumerate(looked_at) if piece.problem is not None), len(looked_at))
    return [piece for piece in looked_at[damaged:] if piece.problem is None]


def losses_of_directory(path: str, advance: Advance) -> dict[str, list[Piece]]:
    """Return the losses of all live partitions when the data directory is opened next, by path.

    Like a broker, the opening reads the metadata log whole in any case.

    Args:
        advance: told of the bytes that are read.
    """
    from logstore.audit.partition import open_partitions
    from logstore.layout.file_names import METADATA_TOPIC

    found = {}
    for partition in open_partitions(path):
        if partition.is_live:
            around, is_metadata = partition.surroundings, partition.files.topic == METADATA_TOPIC
            was_clean = around.was_closed and not is_metadata
            recovery_point = 0 if is_metadata else around.recovery_point or 0
            found[partition.files.path] = losses(
                partition.files.path, advance, was_clean=was_clean, recovery_point=recovery_point
            )
    return {path: pieces for path, pieces in found.items() if pieces}


def loss_sizes(pieces: list[Piece]) -> tuple[int, int]:
    """Return the numbers of batches and of bytes in the pieces."""
    return sum(piece.batch_count for piece in pieces), sum(piece.end - piece.start for piece in pieces)


def loss_text(pieces: list[Piece]) -> str:
    """Return the size and the place of the pieces in words."""
    batch_count, size = loss_sizes(pieces)
    batches = count_of(batch_count, "batch")
    return f"{size:,} readable bytes from offset {pieces[0].first_offset} on, in {batches} behind the first damage"


def require_consent(lost: Mapping[str, list[Piece]]) -> None:
    """Raise LogstoreError if a recovery without --yes would remove anything.

    Args:
        lost: the pieces that it would remove, by the path of the partition.
    """
    advice = "--yes goes on; `logstore salvage` keeps them in a copy"
    if len(lost) == 1:
        ((path, pieces),) = lost.items()
        raise LogstoreError(f"Recovery would remove {loss_text(pieces)}", path=path, advice=advice)
    if lost:
        lines = "".join(f"\n  {path}: {loss_text(pieces)}" for path, pieces in lost.items())
        raise LogstoreError(f"Recovery would remove in {len(lost)} partitions:{lines}\n", advice=advice)
