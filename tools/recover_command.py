"""`logstore recover`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from logstore.disk.names import absolute_path, parent
from logstore.errors import LogstoreError, UsageError

from .audit_options import (
    FINDINGS,
    dry_run_option,
    form_option,
    now_option,
    print_object,
    time_or_clock,
    told_errors,
)

if TYPE_CHECKING:
    from logstore.log.load.loader import LoadSettings
    from logstore.log.salvage.salvage import Piece


@click.command("recover")
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--clean/--unclean",
    "was_clean",
    default=None,
    help="Whether the last broker ended in order  [default: whether it left .kafka_cleanshutdown]",
)
@click.option(
    "--recovery-point", type=int, help="First offset not known to be on the disk  [default: the checkpoint's]"
)
@click.option("--log-start", type=int, help="Offset at which the log starts  [default: the checkpoint's]")
@now_option
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A configuration of the topic; may be repeated.")
@click.option("--yes", is_flag=True, help="Go on where readable batches will be removed.")
@dry_run_option
@form_option
def command(
    directory: str,
    was_clean: bool | None,
    recovery_point: int | None,
    log_start: int | None,
    now: int | None,
    config: Sequence[str],
    yes: bool,
    dry_run: bool,
    form: str,
) -> None:
    """Repair the partition DIRECTORY in place, as a broker does that starts, and print what it holds.

    The directory must not be in use. What is not told by options is taken from the data directory around it: its
    marker of a clean shutdown and its checkpoints, which stay as they are. Behind the first damage a broker removes all
    batches, those that can be read too: that needs --yes, and `logstore salvage` keeps them.
    """
    from logstore.audit.partition import Surroundings, open_partition
    from logstore.disk.lock import data_directory_lock
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings
    from logstore.log.load.recover import recover_partition
    from logstore.log.load.recovered import as_json

    with told_errors(FINDINGS):
        path = absolute_path(directory)
        topic_config = parse_config(dict(_pair(text) for text in config))
        around = open_partition(path).surroundings if os.path.isdir(path) else Surroundings()
        settings = LoadSettings(
            was_clean=around.was_closed if was_clean is None else was_clean,
            recovery_point=(around.recovery_point or 0) if recovery_point is None else recovery_point,
            log_start_offset=(around.log_start_offset or 0) if log_start is None else log_start,
            now_ms=time_or_clock(now),
            config=topic_config,
        )
        lost = _losses(path, settings)
        if not dry_run:
            _require_told(path, lost, yes)
            with data_directory_lock(parent(path)):
                recovered = recover_partition(path, settings)
    if dry_run:
        removed = dict(zip(("removedBatches", "removedBytes"), _sizes(lost), strict=True))
        print_object({"path": path, "wasClean": settings.was_clean, **removed}, form)
        sys.exit(FINDINGS if lost else 0)
    values = as_json(recovered)
    if form == "table":
        names = ("epoch", "startOffset")
        values["leaderEpochs"] = [dict(zip(names, entry, strict=True)) for entry in values["leaderEpochs"]]
    print_object(values, form)


def _losses(path: str, settings: LoadSettings) -> list[Piece]:
    """Return what can be read of the log and would be removed, being behind the first damage that is looked for.

    After a clean shutdown nothing is looked at, else the segments from the recovery point on (`LogLoader.recoverLog`).
    """
    from logstore.disk.directory import list_partition_directory
    from logstore.log.load.loader import first_unflushed
    from logstore.log.salvage.salvage import plan_salvage

    if settings.was_clean or not os.path.isdir(path):
        return []
    try:
        pieces = plan_salvage(path)
    except UsageError:
        return []  # a cleaning is finished first, and nobody knows before which segments count
    segments = list_partition_directory(path).segments
    first = first_unflushed((one.base_offset for one in segments), settings.recovery_point)
    looked_at = [piece for piece in pieces if piece.base_offset >= first]
    damaged = next((number for number, piece in enumerate(looked_at) if piece.problem is not None), len(looked_at))
    return [piece for piece in looked_at[damaged:] if piece.problem is None]


def _require_told(path: str, lost: list[Piece], yes: bool) -> None:
    if lost and not yes:
        batch_count, size = _sizes(lost)
        raise LogstoreError(
            f"Recovery would remove {size:,} readable bytes from offset {lost[0].first_offset} on, in {batch_count:,} "
            "batches behind the first damage",
            path=path,
            advice="--yes goes on; `logstore salvage` keeps them in a copy",
        )


def _sizes(pieces: list[Piece]) -> tuple[int, int]:
    """Return the batches and bytes of the pieces."""
    return sum(piece.batch_count for piece in pieces), sum(piece.end - piece.start for piece in pieces)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--config {text}: expected NAME=VALUE")
    return name, value
