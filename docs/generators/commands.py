"""The page of the commands: what each prints for `--help`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from logstore_tools.commands import COMMANDS, logstore
from logstore_tools.dump.command import help_page
from logstore_tools.verbs import FINDINGS, UNREADABLE

from .markdown import table

_WIDTH = 80

_HEAD = """\
# Commands and exit codes

Written by `python -m docs.generators` from what each command says of itself; do not edit.

`logstore COMMAND --help` prints the same. Commands that inspect never write, take no lock, and may run beside a live
broker; those that write say so, and are named in the second table.

The shell completes commands, options and paths: `eval "$(_LOGSTORE_COMPLETE=bash_source logstore)"` in `~/.bashrc`,
`zsh_source` in `~/.zshrc`, or `_LOGSTORE_COMPLETE=fish_source logstore | source` in `config.fish`.

"""

_WRITES = {
    "recover": "the partition directory, in place",
    "promote": "the data directory; `--dry-run` only tells",
    "import": "the data directory, if it was not closed in order; `--dry-run` only tells",
    "salvage": "a new directory, if one is named",
    "repair": "a new directory, if one is named",
    "sample": "a new directory",
    "report": "one HTML file",
    "doctor": "with `--compile` the library of kernels, beside the package or in the user's cache",
}

_CODES = [
    ("0", "all is well; for `dump` also: what Kafka's tool ends with 0"),
    (str(FINDINGS), "something is wrong with the data, or the command could not do its work; see each command"),
    ("2", "the command line is wrong: an unknown option, a value that does not do, a path that does not exist"),
    (str(UNREADABLE), "an inspecting command could not look at something, and says on standard error at what"),
    ("130", "it was interrupted (Ctrl-C)"),
    ("143", "it was terminated (SIGTERM)"),
]


def page() -> str:
    """Return the page."""
    listed = table(["command", "does"], [(f"[`{name}`](#{name})", about) for name, (_, _, about) in COMMANDS.items()])
    writes = table(["command", "writes"], [(f"`{name}`", what) for name, what in _WRITES.items()])
    codes = table(["exit code", "means"], _CODES)
    context = click.Context(logstore, info_name="logstore", **logstore.context_settings)
    return (
        f"{_HEAD}{listed}\nThese write:\n\n{writes}\n## Exit codes\n\n{codes}\n"
        "`logstore dump` keeps the codes of Kafka's tool: 0, and 1 where that ends in a usage error or an exception. "
        "Its 3 also says that records alone were asked for and some are left out, because their batch is corrupt, "
        "or that no path names a file that it can print.\n" + "".join(_sections(logstore, context, 2))
    )


def _sections(group: click.Group, context: click.Context, level: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, terminal_width=_WIDTH)
        text = (
            f"{help_page('kafka_help.txt')}{help_page('own_help.txt')}" if name == "dump" else command.get_help(inner)
        )
        text = re.sub(r" +$", "", text, flags=re.MULTILINE).strip("\n")
        title = inner.command_path.removeprefix("logstore ")
        yield f"\n{'#' * level} {title}\n\n```text\n{text}\n```\n"
        if isinstance(command, click.Group):
            yield from _sections(command, inner, level + 1)
