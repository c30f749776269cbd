"""`logstore promote`."""

from __future__ import annotations

import click

from .audit_options import FINDINGS, dry_run_option, form_option, told_errors


@click.command("promote")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@dry_run_option
@form_option
def command(directory: str, dry_run: bool, form: str) -> None:
    """Make the data DIRECTORY one that an unmodified Kafka 4.3.1 starts with, and print the configuration to start it.

    A directory that a store has closed is that already, and nothing is changed. One that was not closed in order is
    recovered. Partitions that lie in a directory without meta.properties get a metadata log of their own.
    """
    from logstore import clock
    from logstore import open as open_store
    from logstore.disk.seam import SEAM
    from logstore.store.opening.adoption import adopt
    from logstore.store.opening.inspection import inspect

    from .directory_text import print_directory

    with told_errors(FINDINGS):
        found = inspect(directory)
        if not dry_run:
            if found.properties is None:
                adopt(directory, seam=SEAM, now_ms=clock.now_ms)
            if found.steps:
                open_store(directory).close()
            found = inspect(directory)
    print_directory(found, form, with_broker_config=not dry_run)
