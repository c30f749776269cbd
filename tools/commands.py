"""The commands of the command line `logstore`, loaded when they are asked for."""

from __future__ import annotations

import importlib
import sys

import click

from logstore import __version__

from .main import dump_program

COMMANDS = {
    "dump": ("commands.dump", "Print segments, indexes and snapshots as kafka-dump-log does."),
    "recover": ("recover_command", "Repair a partition directory as a starting broker does, in place."),
    "verify": ("check_commands.verify", "Prove every batch, and every file beside the log."),
    "audit": ("check_commands.audit", "Ask every rule of a data directory, transactions and groups included."),
    "report": ("check_commands.report", "Write one HTML page about a data directory, with pictures."),
    "txns": ("txns_command", "Open transactions: list, hanging, explain why readers wait."),
    "groups": ("listing_commands.groups", "Committed offsets of groups, and how many records each is behind."),
    "producers": ("listing_commands.producers", "Producers of each partition: epochs, sequences, open transactions."),
    "topics": ("listing_commands.topics", "Topics: ids, partitions, sizes, configurations."),
    "segments": ("listing_commands.segments", "Segments: offsets, sizes, times, index entries."),
    "diff": ("diff_command", "Compare two replicas up to the first batch that differs."),
    "salvage": ("copy_commands.salvage", "Copy all good batches of a damaged partition to a new directory."),
    "repair": ("copy_commands.repair", "Copy a partition with everything beside its log made anew."),
    "sample": ("copy_commands.sample", "Copy some batches to a new directory, redacted if asked for."),
    "promote": ("takeover_commands.promote", "Make a data directory one that a real broker starts with."),
    "import": ("takeover_commands.import_", "Take over the data directory of a broker that is stopped."),
    "formats": ("about_commands.formats", "What the bytes of Kafka's files mean."),
    "doctor": ("about_commands.doctor", "What logstore runs on; with --compile its kernels, ahead of time."),
}


@click.command("dump", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def dump(argv: tuple[str, ...]) -> None:
    """Print segments, indexes and snapshots as kafka-dump-log does."""
    sys.exit(dump_program(list(argv)))


class _Commands(click.Group):
    """Commands by name, so that none is imported before it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(".")
        command: click.Command = getattr(importlib.import_module(f".{module}", __package__), attribute or "command")
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.stderr.write("logstore: interrupted\n")
            sys.exit(130)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def logstore() -> None:
    """Real Apache Kafka data directories, with no broker and no JVM."""
