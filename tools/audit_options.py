"""What the inspecting commands share: options, exit codes, and what they print as JSON or as a table.

Exit codes: 0 nothing is wrong, 1 something is, 2 the command line is wrong, 3 something could not be looked at.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from logstore import clock
from logstore.disk.system_errors import is_refused
from logstore.errors import LogstoreError, UsageError

from .paths import unlisted
from .tables import print_table

if TYPE_CHECKING:
    from logstore.audit.finding import Finding

Row = dict[str, Any]
ReadRows = Callable[..., tuple[list[Row], int]]

FINDINGS, UNREADABLE = 1, 3

form_option = click.option(
    "--format", "form", type=click.Choice(["table", "csv", "jsonl", "json"]), default="table", show_default=True
)
now_option = click.option(
    "--now", type=int, metavar="MS", help="Reference time for ages, milliseconds since 1970  [default: now]"
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
yes_option = click.option("--yes", is_flag=True, help="Go on where readable batches will be removed.")
directory_argument = click.argument("directory", type=click.Path())


@contextmanager
def told_errors(code: int = UNREADABLE) -> Iterator[None]:
    """End the command at an error: a wrong command line with exit code 2, as click does, anything else with `code`.

    What the system refuses to read ends it with UNREADABLE.
    """
    try:
        yield
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except LogstoreError as error:
        tell(error)
        sys.exit(UNREADABLE if is_refused(error) else code)


def tell(error: LogstoreError | Finding) -> None:
    """Say what is wrong on standard error."""
    sys.stderr.write("\n".join([f"logstore: {error}", *getattr(error, "__notes__", [])]) + "\n")


def exit_code_of(root: str, findings: Iterable[Finding] = ()) -> int:
    """Say what of a data directory could not be looked at, and what else was found; return the exit code."""
    found = list(findings)
    for finding in found:
        tell(finding)
    return max(code_of(found), told_unreadable(unlisted(root)))


def code_of(findings: Iterable[Finding]) -> int:
    """Return the exit code that findings end a command with: what could not be read may hide others."""
    found = {finding.rule for finding in findings}
    return UNREADABLE if "log-unreadable" in found else FINDINGS if found else 0


def told_unreadable(errors: Sequence[LogstoreError]) -> int:
    """Say what could not be listed; return the exit code."""
    for error in errors:
        tell(error)
    return UNREADABLE if errors else 0


def listing(columns: Sequence[str], cells: Callable[[Row], Sequence[Any]]) -> Callable[[ReadRows], Callable[..., None]]:
    """Make the body of a command of a function that returns rows, as JSON's objects, and the exit code.

    Args:
        columns: of the table.
        cells: values of a row for the table.
    """

    def decorate(read: ReadRows) -> Callable[..., None]:
        @form_option
        @functools.wraps(read)
        def run(*, form: str, **arguments: Any) -> None:
            with told_errors():
                rows, code = read(**arguments)
            print_rows(rows, form, columns, map(cells, rows))
            sys.exit(code)

        return run

    return decorate


def print_rows(rows: list[Row], form: str, columns: Sequence[str] = (), cells: Iterable[Sequence[Any]] = ()) -> None:
    """Print rows for programs: a JSON list, an object a line, or CSV, where what is in a cell is JSON; or as a table.

    Args:
        columns, cells: of the table.
    """
    if form == "json":
        click.echo(json.dumps(rows))
    elif form == "jsonl":
        click.echo("".join([f"{json.dumps(row)}\n" for row in rows]), nl=False)
    elif form == "csv":
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([list(row) for row in rows[:1]])
        for row in rows:
            writer.writerow([json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in row.values()])
    else:
        print_table(columns, cells)


def print_object(values: Row, form: str) -> None:
    """Print an object for programs, or a line a member; below the count of a list stands a line for each value."""
    if form == "json":
        click.echo(json.dumps(values))
        return
    if form != "table":
        print_rows([values], form)
        return
    for name, value in values.items():
        is_list = isinstance(value, list)
        click.echo(f"{name}: {len(value) if is_list else _members(value, ', ')}")
        for one in value if is_list else ():
            click.echo(f"  {_members(one, ' ')}")


def _members(value: Any, separator: str) -> str:
    return separator.join(f"{name}: {one}" for name, one in value.items()) if isinstance(value, dict) else str(value)


def time_or_clock(now: int | None) -> int:
    """Return the option's time, or the clock's."""
    return clock.now_ms() if now is None else now
