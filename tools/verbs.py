"""What all verbs share: their help, PATH and --format, and how they end.

Exit codes: 0 nothing is wrong, 1 something is, 2 the command line is wrong, 3 something could not be looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from logstore import clock
from logstore.disk.system_errors import is_refused
from logstore.errors import LogstoreError, UsageError

from .main import HELP_SETTINGS
from .paths import Note, unlisted
from .rows import FORMATS, RowType
from .tables import visible

if TYPE_CHECKING:
    from logstore.audit.finding import Finding

Resolve = Callable[[str, Note], Any]  # of a word of the command line, and of what is told of it; see `paths`
Decorator = Callable[[Callable[..., int]], Callable[..., int]]

FINDINGS, UNREADABLE = 1, 3

PATH_HELP = (
    "A data directory, a partition in it, a file of a partition, which stands for that, or a quoted glob of these."
)
_NOTED = "logstore.noted"  # in a context's meta: the exit code of what a glob left out

now_option = click.option(
    "--now", type=int, metavar="MS", help="Reference time for ages, milliseconds since 1970  [default: now]"
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
yes_option = click.option("--yes", is_flag=True, help="Go on where readable batches will be removed.")


class Verb(click.Command):
    """A command that prints rows, and returns its exit code.

    Args:
        example: a call, for the help.
        prints: types of the rows that it prints.
        error_code: exit code where it cannot do its work.
    """

    def __init__(
        self, *args: Any, example: str, prints: Sequence[RowType], error_code: int = UNREADABLE, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.context_settings = HELP_SETTINGS
        self.example = example
        self.prints = prints
        self.error_code = error_code
        self.params.append(
            click.Option(
                ["--format", "form"],
                type=click.Choice(FORMATS),
                default="table",
                show_default=True,
                help="A table for people, CSV, or a JSON object a line.",
            )
        )

    def invoke(self, ctx: click.Context) -> None:
        with told_errors(ctx):
            code = super().invoke(ctx)
        sys.exit(max(code, ctx.meta.get(_NOTED, 0)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if any(isinstance(one.type, _Path) for one in self.params):
            with formatter.section("Arguments"):
                formatter.write_dl([("PATH", PATH_HELP)])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Example"):
            formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")


class _Path(click.ParamType[Any]):
    """A PATH, as what `resolve` makes of it."""

    name = "path"

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        context = ctx or click.get_current_context()

        def note(error: LogstoreError) -> None:
            tell(error)
            context.meta[_NOTED] = UNREADABLE

        with told_errors(context):
            return self._resolve(value, note)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def path_argument(name: str, resolve: Resolve) -> Decorator:
    """Give a verb an argument PATH: one of the functions of `paths` says what it has to be."""
    return click.argument(name, metavar="PATH", type=_Path(resolve))


def paths_argument(resolve: Resolve) -> Decorator:
    """Give a verb an argument `paths`: all that one PATH or more mean, each once."""
    return click.argument(
        "paths",
        metavar="PATH...",
        nargs=-1,
        required=True,
        type=_Path(resolve),
        callback=lambda context, param, found: list(dict.fromkeys(one for some in found for one in some)),
    )


@contextmanager
def told_errors(context: click.Context) -> Iterator[None]:
    """End the verb at an error: a wrong command line with exit code 2, as click does, anything else with the verb's.

    What the system refuses to read ends it with UNREADABLE.
    """
    try:
        yield
    except UsageError as error:
        raise click.UsageError(visible(str(error)), context) from error
    except LogstoreError as error:
        tell(error)
        verb = context.command
        sys.exit(verb.error_code if isinstance(verb, Verb) and not is_refused(error) else UNREADABLE)


def tell(error: LogstoreError | Finding) -> None:
    """Say what is wrong on standard error."""
    lines = [*f"logstore: {error}".split("\n"), *getattr(error, "__notes__", [])]
    sys.stderr.writelines(f"{visible(line)}\n" for line in lines)


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


def time_or_clock(now: int | None) -> int:
    """Return the option's time, or the clock's."""
    return clock.now_ms() if now is None else now
