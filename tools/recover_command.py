"""`logstore recover`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from logstore.disk.names import absolute_path, parent

from .audit_options import (
    FINDINGS,
    dry_run_option,
    form_option,
    now_option,
    print_object,
    time_or_clock,
    told_errors,
    yes_option,
)
from .losses import loss_sizes, losses, require_consent
from .paths import partition_directory


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
@yes_option
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
    from logstore.audit.partition import open_partition
    from logstore.disk.lock import data_directory_lock
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings
    from logstore.log.load.recover import recover_partition
    from logstore.log.load.recovered import as_json

    with told_errors(FINDINGS):
        topic_config = parse_config(dict(_pair(text) for text in config))
        path = absolute_path(partition_directory(directory))
        around = open_partition(path).surroundings
        settings = LoadSettings(
            was_clean=around.was_closed if was_clean is None else was_clean,
            recovery_point=(around.recovery_point or 0) if recovery_point is None else recovery_point,
            log_start_offset=(around.log_start_offset or 0) if log_start is None else log_start,
            now_ms=time_or_clock(now),
            config=topic_config,
        )
        lost = losses(path, was_clean=settings.was_clean, recovery_point=settings.recovery_point)
        if not dry_run:
            require_consent({path: lost} if lost and not yes else {})
            with data_directory_lock(parent(path)):
                recovered = recover_partition(path, settings)
    if dry_run:
        removed = dict(zip(("removedBatches", "removedBytes"), loss_sizes(lost), strict=True))
        print_object({"path": path, "wasClean": settings.was_clean, **removed}, form)
        sys.exit(FINDINGS if lost else 0)
    values = as_json(recovered)
    if form == "table":
        names = ("epoch", "startOffset")
        values["leaderEpochs"] = [dict(zip(names, entry, strict=True)) for entry in values["leaderEpochs"]]
    print_object(values, form)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--config {text}: expected NAME=VALUE")
    return name, value
