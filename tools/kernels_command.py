"""`logstore kernels`: the one-time compilation, for set-up scripts and images."""

from __future__ import annotations

import click


@click.command("kernels")
def command() -> None:
    """Compile the kernels for this machine, if they are not yet, and say where they are."""
    from logstore.kernels import native

    click.echo(str(native.object_file()))
