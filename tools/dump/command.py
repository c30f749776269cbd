"""`logstore dump`: what Kafka's `kafka-dump-log` prints, far faster, and a little more."""

from __future__ import annotations

from importlib import resources
from typing import BinaryIO, TextIO

from logstore.disk.names import java_file
from logstore.errors import LogstoreError

from .files import dump_file
from .findings import Findings
from .options import DumpOptions
from .output import Output

KAFKA_VERSION = "4.3.1"
ABOUT = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment."
)


def run(argv: list[str], stdout: BinaryIO, stderr: TextIO) -> int:
    """Dump what `argv` (the words after `dump`) asks for; returns the exit code of Kafka's tool.

    Output goes to `stdout` as UTF-8; what Kafka's tool dies of goes to `stderr` as the first line of its stack trace.
    """
    out = Output(stdout)
    try:
        code = _run(argv, out, stderr)
    except LogstoreError as error:
        out.close()
        stderr.write(java_line(error) + "\n")
        return 1
    out.close()
    return code


def _run(argv: list[str], out: Output, stderr: TextIO) -> int:
    options = DumpOptions.parse(argv)
    if not argv or options.arguments.has("help"):
        stderr.write(f"{ABOUT}\n{_help_table()}")
        return 1
    if options.arguments.has("version"):
        out.print(KAFKA_VERSION)
        return 0
    if not options.arguments.has("files"):
        stderr.write(f'Missing required argument "[files]"\n{_help_table()}')
        return 1
    findings = Findings(lambda line: _print_line(stderr, line))
    for path in options.files:
        dump_file(java_file(path), options, out, findings)
    for line in findings.lines():
        _print_line(stderr, line)
    return 0


def java_line(error: LogstoreError) -> str:
    """The first line of the stack trace that the JVM prints for an uncaught exception."""
    text = f'Exception in thread "main" {error.java_class}'
    return text if error.message is None else f"{text}: {error.message}"


def _print_line(stream: TextIO, line: str) -> None:
    stream.write(line + "\n")


def _help_table() -> str:
    return resources.files(__package__).joinpath("kafka_help.txt").read_text()
