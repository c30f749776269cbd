"""What the inspecting commands share: options, exit codes, and what they print as JSON or as a table.

Exit codes: 0 nothing is wrong, 1 something is, 2 the command line is wrong, 3 something could not be looked at.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from logstore.audit.finding import Finding
    from logstore.errors import LogstoreError

T = TypeVar("T")

FINDINGS, UNREADABLE = 1, 3

form_option = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
now_option = click.option(
    "--now", type=int, metavar="MS", help="Reference time for ages, milliseconds since 1970  [default: now]"
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
directory_argument = click.argument("directory", type=click.Path())


@contextmanager
def told_errors(code: int = UNREADABLE) -> Iterator[None]:
    """End the command at an error: a wrong command line with exit code 2, as click does, anything else with `code`."""
    from logstore.errors import LogstoreError, UsageError

    try:
        yield
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except LogstoreError as error:
        tell(error)
        sys.exit(code)


def tell(error: LogstoreError | Finding) -> None:
    """Say what is wrong on standard error."""
    sys.stderr.write("\n".join([f"logstore: {error}", *getattr(error, "__notes__", [])]) + "\n")


def exit_code_of(root: str, findings: Iterable[Finding] = ()) -> int:
    """Say what of a data directory could not be looked at, and what else was found; return the exit code."""
    from .paths import unlisted

    code = 0
    for finding in findings:
        tell(finding)
        code = FINDINGS
    for error in unlisted(root):
        tell(error)
        code = UNREADABLE
    return code


def print_objects(objects: Sequence[T], form: str, columns: Sequence[str], cells: Callable[[T], Sequence[Any]]) -> None:
    """Print a list of objects as JSON, or a table with the cells of each."""
    if form == "json":
        click.echo(json.dumps(objects))
        return
    from .tables import print_table

    print_table(columns, map(cells, objects))


def time_or_clock(now: int | None) -> int:
    """Return the option's time, or the clock's."""
    from logstore import clock

    return clock.now_ms() if now is None else now
