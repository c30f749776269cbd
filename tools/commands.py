"""The commands of the command line `logstore`, imported when they are called."""

from __future__ import annotations

import importlib
import sys

import click
from click.shell_completion import CompletionItem

from logstore import __version__

from . import HELP_SETTINGS
from .dump.options import KAFKA_OPTIONS, OWN_OPTIONS
from .endings import dump_program

LOOK, CHECK, MEND, MOVE = "Look", "Check", "Mend", "Move"
#: by name: group in the help, place in this package, and a sentence for the help
COMMANDS = {
    "dump": (LOOK, "commands.dump", "Print segments, indexes and snapshots as kafka-dump-log does."),
    "segments": (LOOK, "listing_commands.segments", "Segments: offsets, sizes, times, index entries."),
    "topics": (LOOK, "listing_commands.topics", "Topics: ids, partitions, sizes, configurations."),
    "producers": (LOOK, "listing_commands.producers", "Producers: epochs, sequences, open transactions."),
    "groups": (LOOK, "listing_commands.groups", "Committed offsets of groups, and how far each is behind."),
    "txns": (LOOK, "txns_command", "Open transactions: list, hanging, explain why readers wait."),
    "formats": (LOOK, "about_commands.formats", "What the bytes of Kafka's files mean."),
    "verify": (CHECK, "check_commands.verify", "Check every batch, and every file beside the log."),
    "audit": (CHECK, "check_commands.audit", "Check all that, and transactions and groups."),
    "report": (CHECK, "check_commands.report", "Write one HTML page of what audit finds, with pictures."),
    "diff": (CHECK, "diff_command", "Compare two replicas up to the first batch that differs."),
    "doctor": (CHECK, "about_commands.doctor", "Versions and kernels; --compile builds the kernels."),
    "recover": (MEND, "recover_command", "Repair a partition in place, as a starting broker does."),
    "repair": (MEND, "copy_commands.repair", "Copy a partition with everything beside its log made anew."),
    "salvage": (MEND, "copy_commands.salvage", "Copy all good batches of a damaged partition."),
    "sample": (MOVE, "copy_commands.sample", "Copy some batches, redacted if asked for."),
    "import": (MOVE, "takeover_commands.import_", "Take over the data directory of a stopped broker."),
    "features": (MOVE, "features_command", "Show levels of features, and raise them as kafka-features does."),
    "promote": (MOVE, "takeover_commands.promote", "Make a data directory one that a real broker starts with."),
}


class _Dump(click.Command):
    """The dump, which parses its options itself, because Kafka's tool does it otherwise than click."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        options = [f"--{name}" for name in KAFKA_OPTIONS | OWN_OPTIONS]
        return [CompletionItem(option) for option in options if option.startswith(incomplete)]


@click.command("dump", cls=_Dump, add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def dump(argv: tuple[str, ...]) -> None:
    """Print segments, indexes and snapshots as kafka-dump-log does."""
    sys.exit(dump_program(list(argv)))


class _Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][1].partition(".")
        command: click.Command = getattr(importlib.import_module(f".{module}", __package__), attribute or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        from .verbs import hint  # which takes longer to import than a list of the commands

        raise click.UsageError(f"There is no command {name!r}. {hint(name, COMMANDS)}", ctx)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.stderr.write("logstore: interrupted\n")
            sys.exit(130)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in (LOOK, CHECK, MEND, MOVE):
            with formatter.section(group):
                formatter.write_dl([(name, about) for name, (of, _, about) in COMMANDS.items() if of == group])


@click.command(cls=_Commands, invoke_without_command=True, context_settings=HELP_SETTINGS)
@click.version_option(__version__, "-V", "--version")
@click.pass_context
def logstore(ctx: click.Context) -> None:
    """Real Apache Kafka data directories, with no broker and no JVM.

    PATH is a data directory, a partition in it, a file of a partition, or a quoted glob of these. `logstore COMMAND
    --help` gives an example of each command.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
