"""`logstore import`."""

from __future__ import annotations

import click

from .audit_options import FINDINGS, dry_run_option, form_option, told_errors


@click.command("import")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@dry_run_option
@form_option
def command(directory: str, dry_run: bool, form: str) -> None:
    """Take over the data DIRECTORY of a single-node broker that is stopped: see whether that can be, and recover it.

    Nothing is converted: the directory stays one that the broker can have again. `logstore.open` does the same by
    itself; this tells before what there is, and whether it can.
    """
    from logstore import open as open_store
    from logstore.errors import UsageError
    from logstore.store.opening.inspection import inspect

    from .directory_text import print_directory

    with told_errors(FINDINGS):
        found = inspect(directory)
        if found.properties is None:
            raise UsageError(
                "There is no meta.properties, so this is no broker's directory",
                path=directory,
                advice="`logstore promote` makes one of partitions that lie in a directory",
            )
        if not dry_run:
            open_store(directory).close()
            found = inspect(directory)
    print_directory(found, form, with_broker_config=False)
