"""`logstore kernels`: the one-time compilation, for set-up scripts and images."""

from __future__ import annotations

import click


@click.command("kernels")
def command() -> None:
    """Compile the kernels for this machine, if they are not yet, and say where they are."""
    from logstore.clock import monotonic_s
    from logstore.kernels import native

    start_s = monotonic_s()
    paths = native.object_files()
    click.echo(
        f"logstore: kernels for this machine are compiled ({monotonic_s() - start_s:.1f} s): "
        f"{len(paths)} files in {paths[0].parent}"
    )
