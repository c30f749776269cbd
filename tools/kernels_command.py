"""`logstore kernels`: the one-time build, for set-up scripts and images."""

from __future__ import annotations

import click


@click.command("kernels")
def command() -> None:
    """Build the kernels for this machine, if they are not yet, and say where they are."""
    from logstore.clock import monotonic_s
    from logstore.jit import library

    start_s = monotonic_s()
    path = library.library_path()
    click.echo(f"logstore: kernels for this machine are built ({monotonic_s() - start_s:.1f} s): {path}")
