"""What all verbs share: their help, PATH and --format, and how they end.

Exit codes: 0 nothing is wrong, 1 something is, 2 the command line is wrong, 3 something could not be read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from logstore import clock
from logstore.disk.system_errors import is_refused
from logstore.errors import LogstoreError, UsageError

from . import HELP_SETTINGS
from .paths import Note, each_once, input_paths
from .rows import FORMATS, RowType, VerbAnswer, show
from .tables import visible

if TYPE_CHECKING:
    from logstore.audit.finding import Finding

Resolve = Callable[[str, Note], Any]  # makes something of a word of the command line; see `paths`
Decorator = Callable[[Callable[..., VerbAnswer]], Callable[..., VerbAnswer]]

FINDINGS, UNREADABLE = 1, 3

PATH_HELP = (
    "A data directory, a partition in it, a file of a partition, which stands for that, or a quoted glob of these."
)
_PATH = click.Path(readable=False)  # the shell completes it; `resolve` says better what is wrong with it
_IS_UNREADABLE = "logstore.unreadable"  # in a context's meta: something that was named could not be read

now_option = click.option(
    "--now",
    type=int,
    metavar="MS",
    default=clock.now_ms,
    help="Reference time for ages, milliseconds since 1970  [default: now]",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
yes_option = click.option("--yes", is_flag=True, help="Go on where readable batches will be removed.")


class Verb(click.Command):
    """A command whose function returns an `VerbAnswer`, which is printed in the format that is asked for.

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
        form = ctx.params.pop("form")
        with told_errors(ctx):
            answer: VerbAnswer = super().invoke(ctx)
            show(answer, form)
            for note in answer.notes:
                tell(note)
            sys.stdout.flush()  # while `main` can still tell that the disk is full
        sys.exit(UNREADABLE if _IS_UNREADABLE in ctx.meta else answer.code)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if any(one.type is _PATH for one in self.params):
            with formatter.section("Arguments"):
                formatter.write_dl([("PATH", PATH_HELP)])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Example"):
            formatter.write(f"{'':{formatter.current_indent}}{self.example}\n")


def path_argument(name: str, resolve: Resolve) -> Decorator:
    """Give a verb an argument PATH, resolved by a function of `paths`."""

    def convert(context: click.Context, _: click.Parameter, word: str) -> Any:
        with told_errors(context):
            return resolve(word, note_unreadable)

    return click.argument(name, metavar="PATH", type=_PATH, callback=convert)


def paths_argument(form: Callable[[str, bool], Any] = lambda path, is_partition: (path, is_partition)) -> Decorator:
    """Give a verb an argument `paths`: every directory that one or more PATHs name, each once.

    `form` makes an item of the path, and whether it is a partition.
    """

    def convert(context: click.Context, _: click.Parameter, words: Sequence[str]) -> list[Any]:
        with told_errors(context):
            named = [found for word in words for found in input_paths(word, note_unreadable)]
            return [form(*found) for found in each_once(named)]

    return click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=_PATH, callback=convert)


@contextmanager
def told_errors(context: click.Context) -> Iterator[None]:
    """End the verb at an error: with 2 if the command line is wrong, as click does, else with the verb's error code.

    End it with UNREADABLE where the system refuses to read.
    """
    try:
        yield
    except UsageError as error:
        raise click.UsageError(visible(str(error)), context) from error
    except LogstoreError as error:
        tell(error)
        verb = context.command
        sys.exit(verb.error_code if isinstance(verb, Verb) and not is_refused(error) else UNREADABLE)


def tell(error: LogstoreError | Finding | str) -> None:
    """Print what is wrong to standard error."""
    lines = [*f"logstore: {error}".split("\n"), *getattr(error, "__notes__", [])]
    sys.stderr.writelines(f"{visible(line)}\n" for line in lines)


def note_unreadable(error: LogstoreError) -> None:
    """Print what could not be read, and let the verb go on to end with UNREADABLE."""
    tell(error)
    click.get_current_context().meta[_IS_UNREADABLE] = True


def code_of_problems(problems: Iterable[LogstoreError | Finding | str]) -> int:
    """Return the exit code for findings, and for what could not be read or listed; 0 for what is only a note."""
    told = (one for one in problems if not isinstance(one, str))
    return max((UNREADABLE if isinstance(one, LogstoreError) else code_of([one]) for one in told), default=0)


def code_of(findings: Iterable[Finding]) -> int:
    """Return the exit code for findings; UNREADABLE wins, because what could not be read may hide others."""
    found = {finding.rule for finding in findings}
    return UNREADABLE if found & {"log-unreadable", "log-size"} else FINDINGS if found else 0


def hint(name: str, names: Collection[str], otherwise: str | None = None) -> str:
    """Return a sentence with the name that is close to a wrong one; without such a name `otherwise`, or all names."""
    close = get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]}?" if close else otherwise or f"There are {', '.join(names)}."
