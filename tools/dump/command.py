"""`logstore dump`: what Kafka's `kafka-dump-log` prints, far faster, and a little more."""

from __future__ import annotations

import io
import os
import stat as modes
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, TextIO

from logstore.disk.files import file_size
from logstore.disk.names import java_file, normal_path
from logstore.disk.paths import exists
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.layout.file_names import DUMPED_SUFFIXES, KRAFT_SNAPSHOT_SUFFIX, LOG_SUFFIX

from .options import FILTER_OPTIONS, DumpOptions
from .output import Output

if TYPE_CHECKING:
    from .findings import Findings

_ABOUT = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment."
)
# Exit codes: Kafka's tool fails, an option beyond Kafka's has a wrong value, a file or records cannot be read.
FAILED, USAGE, UNREADABLE = 1, 2, 3
PARALLEL_SIZE_MIN = 4 * 1024 * 1024  # bytes of input; for less, threads cost more than they save
LINE_COUNT = 1024  # lines of findings in one write


def run(argv: list[str], stdout: BinaryIO, stderr: TextIO) -> int:
    """Dump as `argv`, the words after `dump`, ask for; return the exit code of Kafka's tool.

    Text goes to `stdout` as UTF-8; an error that ends Kafka's tool goes to `stderr` as the first line of a stack trace.
    """
    try:
        code = _run(argv, stdout, stderr)
    except LogstoreError as error:
        stderr.write(error_line(error) + "\n")
        code = USAGE if isinstance(error, UsageError) and error.java_class is None else FAILED
    stdout.flush()
    return code


def _answer(options: DumpOptions, argv: list[str], stdout: BinaryIO, stderr: TextIO) -> int | None:
    """Answer a call that dumps nothing, and return its exit code; None for one that dumps."""
    if not argv or options.has("help"):
        # without arguments exactly what Kafka's tool prints
        stderr.write(f"{_ABOUT}\n{help_page('kafka_help.txt')}{help_page('own_help.txt') if argv else ''}")
        return FAILED
    if options.has("version"):
        stdout.write(f"{options.kafka_version.release}\n".encode())
        return 0
    options.check_own()
    if options.has("files"):
        return None
    if not options.words:
        stderr.write(f'Missing required argument "[files]"\n{help_page("kafka_help.txt")}')
        return FAILED
    from ..paths import require_named

    require_named(options.words)
    return None


def help_page(name: str) -> str:
    """Return the help of Kafka's tool, or of the options beyond it."""
    from pathlib import Path  # here, because its import takes longer than the dump of a small log

    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _run(argv: list[str], stdout: BinaryIO, stderr: TextIO) -> int:
    # -h is an error of Kafka's tool, but help in the other commands
    options = DumpOptions(["--help"] if argv == ["-h"] else argv)
    code = _answer(options, argv, stdout, stderr)
    if code is not None:
        return code
    from .findings import Findings

    findings = Findings(lambda line: print(line, file=stderr))
    noted: set[str] = set()

    def note(error: LogstoreError) -> None:
        line = _own_line(error)
        if line not in noted:  # --follow lists the files again and again
            findings.immediate(line)
        noted.add(line)

    def list_paths() -> list[str]:
        if options.has("files"):
            paths = options.files
        else:
            from ..paths import dump_files

            paths = dump_files(options.words, note)
        if options.shows_batches:
            return paths
        named = {*options.files, *options.words}  # of a directory, what a snapshot holds again is left out
        return [path for path in paths if path.endswith(LOG_SUFFIX) or (path in named and _is_log(path))]

    paths = list_paths()
    if not paths and not options.shows_batches and not options.has("follow"):
        findings.immediate("logstore: there are records in logs alone, and none is named")
    out = Output.to_stream(stdout)
    with _table(options, stdout, out):
        if options.has("follow"):
            from .follower import DumpFollower

            DumpFollower(options, out, stdout, findings).run(list_paths)
        try:
            _dump_all([java_file(path) for path in paths], options, out, stdout, stderr, findings)
        except LogstoreError as error:
            error.message = None if error.message is None else options.kafka_version.words(error.message)
            raise
    if options.filter is not None and options.filter.matches.is_asked and not options.filter.matches.is_any:
        asked = " ".join(f"--{name} {value}" for name in FILTER_OPTIONS for value in options.values.get(name, ()))
        findings.immediate(f"logstore: nothing passes {asked}")
    for level in sorted(options.newer):
        findings.immediate(f"logstore: written by a newer Kafka ({level}); what is not known of it is not decoded")
    is_nothing_read = not options.has("files", "follow") and not any(path.endswith(DUMPED_SUFFIXES) for path in paths)
    return UNREADABLE if is_nothing_read or noted or findings.is_any_left_out else 0


def _table(options: DumpOptions, stdout: BinaryIO, out: Output) -> AbstractContextManager[object]:
    """Begin the table of Arrow or Parquet; it ends with the context."""
    if options.format not in ("arrow", "parquet"):
        return nullcontext()
    from .arrow_rows import TableStream

    stream = TableStream(stdout, options)
    out.put_batch = stream.put
    return closing(stream)


def _dump_all(
    paths: list[str], options: DumpOptions, out: Output, stdout: BinaryIO, stderr: TextIO, findings: Findings
) -> None:
    input_size = sum(map(file_size, paths))
    if input_size < PARALLEL_SIZE_MIN or out.put_batch is not None:  # a table is written by one thread
        try:
            for path in paths:
                _dump_file(options, path, out, findings)
        finally:
            out.flush()
    else:
        _dump_in_workers(paths, options, stdout, stderr, findings, input_size)
    lines = findings.lines()
    while some := list(islice(lines, LINE_COUNT)):
        stderr.write("\n".join(some) + "\n")


def _dump_in_workers(
    paths: list[str], options: DumpOptions, stdout: BinaryIO, stderr: TextIO, findings: Findings, input_size: int
) -> None:
    from ..progress import Progress
    from .jobs import run_jobs

    stream = stderr if _is_file(stdout) else io.StringIO()  # a pipe may lead to a pager on the same terminal
    with (
        Progress("dump", lambda: input_size, stream) as progress,
        closing(run_jobs(paths, partial(_dump_file, options), progress.advance)) as jobs,
    ):
        for job in jobs:
            for array, size in job.buffers():
                stdout.write(array[:size])
            for line in job.immediate_lines:
                progress.clear()
                findings.immediate(line)
            if job.error is not None:
                raise job.error
            findings.merge(job.findings)


def _is_file(stdout: BinaryIO) -> bool:
    """Return whether the dump goes into a file."""
    try:
        return modes.S_ISREG(os.fstat(stdout.fileno()).st_mode)
    except OSError:
        return False  # no descriptor


def _is_log(path: str) -> bool:
    return path.endswith((LOG_SUFFIX, KRAFT_SNAPSHOT_SUFFIX))


def _dump_file(options: DumpOptions, path: str, out: Output, findings: Findings) -> None:
    """Print the file at `path`, which `java_file` has normalised; tell of one that was deleted since it was listed."""
    if options.format == "text":
        out.print(f"Dumping {path}")
    try:
        # imported here, because an import takes longer than a small dump
        if _is_log(path):
            from .log_dump import dump_log

            dump_log(path, options, out, findings)
        else:
            from .index_text import dump_side_file

            dump_side_file(path, options, out, findings)
    except LogstoreError:
        if exists(path) or normal_path(path) in options.named:
            raise
        findings.is_any_left_out = True
        findings.immediate(_own_line(DataDirectoryError("The file was deleted before it was dumped", path=path)))


def error_line(error: LogstoreError) -> str:
    """Return the first line of the stack trace that the JVM prints for an uncaught exception.

    An error that Kafka's tool has no words for is told in full.
    """
    if error.java_class is None or error.given_advice is not None:
        return _own_line(error)
    text = f'Exception in thread "main" {error.java_class}'
    return text if error.message is None else f"{text}: {error.message}"


def _own_line(error: LogstoreError) -> str:
    return "logstore: " + str(error).replace("\n", " ")
