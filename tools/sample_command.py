"""`logstore sample`."""

from __future__ import annotations

import secrets

import click

from .audit_options import now_option, time_or_clock, told_errors


@click.command("sample")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("destination", type=click.Path())
@click.option("--offset", type=int, help="Where to begin; by default where the log does.")
@click.option("--batches", type=click.IntRange(min=1), default=100, show_default=True, help="How many to take at most.")
@click.option("--redact", is_flag=True, help="Put letters in the place of keys, values and values of headers.")
@now_option
def command(source: str, destination: str, offset: int | None, batches: int, redact: bool, now: int | None) -> None:
    """Copy some batches of the partition directory SOURCE to the new directory DESTINATION, to be shown to others.

    They are of one segment, and keep their offsets, times, producers and sequences. Redacted keys and values have their
    length, and are equal where they were; each sample has a secret of its own, which is not kept.
    """
    from logstore.audit.partition import open_partition
    from logstore.log.config import parse_config
    from logstore.log.load.loader import LoadSettings
    from logstore.log.salvage.sample import Redaction, sample

    with told_errors():
        first_offset = open_partition(source).first_offset if offset is None else offset
        settings = LoadSettings(False, 0, 0, time_or_clock(now), parse_config({}))
        redaction = Redaction(secrets.token_bytes(32)) if redact else None
        found = sample(
            source,
            destination,
            settings,
            first_offset=first_offset,
            batch_count=batches,
            redaction=redaction,
        )
    what = "redacted" if redact else "as they are"
    click.echo(f"{found.batch_count} batches up to offset {found.log.log_end_offset}, {what}, in {destination}")
    if found.skipped_count:
        click.echo(f"{found.skipped_count} batches could not be read, and were left out")
