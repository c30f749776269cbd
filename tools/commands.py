"""The commands of the command line `logstore`, loaded when they are asked for."""

from __future__ import annotations

import importlib

import click

from logstore import __version__

COMMANDS = {
    "dump": ("dump_command", "Print segments, indexes and snapshots as kafka-dump-log does."),
    "recover": ("recover_command", "Repair a partition directory as a starting broker does, in place."),
    "verify": ("verify_command", "Prove every batch, and every file beside the log."),
    "audit": ("audit_command", "Ask every rule of a data directory, transactions and groups included."),
    "report": ("report_command", "Write one HTML page about a data directory, with pictures."),
    "txns": ("txns_command", "Open transactions: list, hanging, explain why readers wait."),
    "groups": ("groups_command", "Committed offsets of groups, and how many records each is behind."),
    "producers": ("producers_command", "Producers of each partition: epochs, sequences, open transactions."),
    "topics": ("topics_command", "Topics: ids, partitions, sizes, configurations."),
    "segments": ("segments_command", "Segments: offsets, sizes, times, index entries."),
    "diff": ("diff_command", "Compare two replicas up to the first batch that differs."),
    "salvage": ("copy_commands.salvage", "Copy all good batches of a damaged partition to a new directory."),
    "repair": ("copy_commands.repair", "Copy a partition with everything beside its log made anew."),
    "sample": ("sample_command", "Copy some batches to a new directory, redacted if asked for."),
    "promote": ("takeover_commands.promote", "Make a data directory one that a real broker starts with."),
    "import": ("takeover_commands.import_", "Take over the data directory of a broker that is stopped."),
    "formats": ("formats_command", "What the bytes of Kafka's files mean."),
    "doctor": ("doctor_command", "What logstore runs on."),
    "kernels": ("kernels_command", "Compile the kernels for this machine, if they are not yet."),
}


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def logstore() -> None:
    """Real Apache Kafka data directories, with no broker and no JVM."""
