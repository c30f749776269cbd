"""What a recovery would remove although it can be read: said before it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.errors import LogstoreError, UsageError

if TYPE_CHECKING:
    from logstore.log.salvage.salvage import Piece
    from logstore.view.walk import Advance


def losses(path: str, advance: Advance, *, was_clean: bool, recovery_point: int) -> list[Piece]:
    """Return what can be read of a log and would be removed, being behind the first damage that is looked for.

    After a clean shutdown nothing is looked at, else the segments from the recovery point on (`LogLoader.recoverLog`).

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
        return []  # a cleaning is finished first, and nobody knows before which segments count
    segments = list_partition_directory(path).segments
    first = first_unflushed((one.base_offset for one in segments), recovery_point)
    looked_at = [piece for piece in pieces if piece.base_offset >= first]
    damaged = next((number for number, piece in enumerate(looked_at) if piece.problem is not None), len(looked_at))
    return [piece for piece in looked_at[damaged:] if piece.problem is None]


def losses_of_directory(path: str, advance: Advance) -> dict[str, list[Piece]]:
    """Return what the next opening of a data directory would remove, by the path of the partition.

    The metadata log is read whole in any case, as by a broker.

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


def loss_sizes(pieces: Iterable[Piece]) -> tuple[int, int]:
    """Return the batches and bytes of the pieces."""
    found = list(pieces)
    return sum(piece.batch_count for piece in found), sum(piece.end - piece.start for piece in found)


def loss_text(pieces: list[Piece]) -> str:
    """Return what would be removed in words."""
    batch_count, size = loss_sizes(pieces)
    batches = "1 batch" if batch_count == 1 else f"{batch_count:,} batches"
    return f"{size:,} readable bytes from offset {pieces[0].first_offset} on, in {batches} behind the first damage"


def require_consent(lost: Mapping[str, list[Piece]]) -> None:
    """Raise what a recovery without --yes ends with, if it would remove something.

    Args:
        lost: what would be removed, by the path of the partition.
    """
    advice = "--yes goes on; `logstore salvage` keeps them in a copy"
    if len(lost) == 1:
        ((path, pieces),) = lost.items()
        raise LogstoreError(f"Recovery would remove {loss_text(pieces)}", path=path, advice=advice)
    if lost:
        lines = "".join(f"\n  {path}: {loss_text(pieces)}" for path, pieces in lost.items())
        raise LogstoreError(f"Recovery would remove in {len(lost)} partitions:{lines}\n", advice=advice)
