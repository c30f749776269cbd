"""One file to dump: what it is by its name, and who prints it.

What prints a file is imported when there is such a file: a small dump is over before all of it were loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from logstore.disk.names import file_name

from .findings import Findings
from .log_printer import dump_log
from .options import DumpOptions
from .output import Output

_SIDE_FILES = {
    ".index": ("offset_index_text", "dump_offset_index"),
    ".timeindex": ("time_index_text", "dump_time_index"),
    ".snapshot": ("producer_snapshot_text", "dump_producer_snapshot"),
    ".txnindex": ("transaction_index_text", "dump_transaction_index"),
}


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
            dump_log_as_json(path, options, out, findings, advance)
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
    if suffix not in _SIDE_FILES:
        findings.immediate(f"Ignoring unknown file {path}")
        return
    module, function = _SIDE_FILES[suffix]
    dump = getattr(import_module(f".{module}", __package__), function)
    dump(path, options, write, findings)
