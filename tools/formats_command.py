"""`logstore formats`."""

from __future__ import annotations

import importlib
import pkgutil

import click


@click.command("formats")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print what the bytes of Kafka's files mean: the page of the format NAME, or the list of all."""
    from logstore import layout

    names = sorted(module.name for module in pkgutil.iter_modules(layout.__path__))
    if name is None:
        from .tables import print_table

        print_table(("name", "what it is"), [(one, _page(one).partition("\n")[0]) for one in names])
        return
    if name not in names:
        raise click.UsageError(f"There is no format {name}; `logstore formats` lists them")
    click.echo(_page(name))


def _page(name: str) -> str:
    page = importlib.import_module(f"logstore.layout.{name}").__doc__
    return "" if page is None else page.strip()
