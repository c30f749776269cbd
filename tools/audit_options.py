"""Options that the inspecting commands share, and how their errors end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

form_option = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
now_option = click.option(
    "--now", type=int, metavar="MS", help="The time that ages are counted to, in ms since 1970; by the clock."
)


@contextmanager
def errors_as_usage() -> Iterator[None]:
    """What is wrong with the words of the command line is told as click tells it, with exit code 2."""
    from logstore.errors import LogstoreError

    try:
        yield
    except LogstoreError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def errors_as_failure() -> Iterator[None]:
    """A wrong call ends as click ends it, with exit code 2; what is wrong with a directory with exit code 1."""
    from logstore.errors import LogstoreError, UsageError

    try:
        yield
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except LogstoreError as error:
        sys.stderr.write("\n".join([f"logstore: {error}", *getattr(error, "__notes__", [])]) + "\n")
        sys.exit(1)


def time_or_clock(now: int | None) -> int:
    """The option's time, or the clock's."""
    from logstore import clock

    return clock.now_ms() if now is None else now
