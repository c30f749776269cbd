"""One file to dump: what it is by its name, and who prints it."""

from __future__ import annotations

from collections.abc import Callable

from logstore.disk.names import file_name

from .findings import Findings
from .log_text import dump_log
from .offset_index_text import dump_offset_index
from .options import DumpOptions
from .output import Output
from .producer_snapshot_text import dump_producer_snapshot
from .time_index_text import dump_time_index
from .transaction_index_text import dump_transaction_index


def dump_file(
    path: str,
    options: DumpOptions,
    out: Output,
    findings: Findings,
    advance: Callable[[int], None] = lambda size: None,
) -> None:
    """Print the file at `path` (as Java normalises it) with its `Dumping` line.

    `advance` is told the bytes of a log that are done.
    """
    name = file_name(path)
    dot = name.rfind(".")
    suffix = name[dot:] if dot >= 0 else ""
    is_log = suffix in (".log", ".checkpoint")
    if options.is_json:
        from .json_lines import dump_log_as_json, entry_writer

        if is_log:
            dump_log_as_json(path, options, out, advance)
        else:
            _dump_side_file(path, suffix, options, entry_writer(path, out), findings)
        return
    out.print(f"Dumping {path}")
    if is_log:
        dump_log(path, options, out, findings, advance)
    else:
        _dump_side_file(path, suffix, options, out.write, findings)


def _dump_side_file(
    path: str, suffix: str, options: DumpOptions, write: Callable[[bytes], None], findings: Findings
) -> None:
    if suffix == ".index":
        dump_offset_index(path, options, write, findings)
    elif suffix == ".timeindex":
        dump_time_index(path, options, write, findings)
    elif suffix == ".snapshot":
        dump_producer_snapshot(path, options, write, findings)
    elif suffix == ".txnindex":
        dump_transaction_index(path, options, write, findings)
    else:
        findings.immediate(f"Ignoring unknown file {path}")
