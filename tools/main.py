"""The command line `logstore`: one command a file, loaded when it is asked for."""

from __future__ import annotations

import importlib
import os

import click

# numpy starts a thread a processor for linear algebra, which nothing here does: a fifth of a small dump's time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMMANDS = {
    "dump": ("dump_command", "Print segments, indexes and snapshots as kafka-dump-log does."),
    "recover": ("recover_command", "Repair a partition directory as a starting broker does, in place."),
    "kernels": ("kernels_command", "Compile the kernels for this machine, if they are not yet."),
}


class _Commands(click.Group):
    """Commands by name, so that none is imported before it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[name][0]}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="logstore-kafka")
def logstore() -> None:
    """Real Apache Kafka data directories, with no broker and no JVM."""


def main() -> None:
    """Entry point of the console script."""
    logstore(prog_name="logstore")
