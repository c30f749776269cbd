"""`logstore report`."""

from __future__ import annotations

import sys

import click

from .audit_options import directory_argument, now_option, time_or_clock, told_errors


@click.command("report")
@directory_argument
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The HTML file to write.")
@now_option
def command(directory: str, output: str, now: int | None) -> None:
    """Write one HTML page about a data DIRECTORY: findings with advice, offsets, transactions, segments, in pictures.

    It asks what `logstore audit` asks, and exits as that does. The page needs no network and holds no record.
    """
    from logstore.audit.directory_audit import audit_directory
    from logstore.disk.seam import SEAM

    from .paths import data_directory
    from .report import page

    now_ms = time_or_clock(now)
    with told_errors():
        audited = audit_directory(data_directory(directory), now_ms)
        content = page(directory, audited, now_ms).encode()
        descriptor = SEAM.create(output)
        try:
            SEAM.write(descriptor, content)
        finally:
            SEAM.close(descriptor)
    click.echo(f"{output}: {len(audited.findings)} findings")
    sys.exit(1 if audited.findings else 0)
