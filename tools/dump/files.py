"""One file to dump: what it is by its name, and who prints it."""

from __future__ import annotations

from collections.abc import Callable

from logstore.disk.names import file_name

from .findings import Findings
from .log_text import dump_log
from .options import DumpOptions
from .output import Output
from .producer_snapshot_text import dump_producer_snapshot
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
    out.print(f"Dumping {path}")
    name = file_name(path)
    dot = name.rfind(".")
    suffix = name[dot:] if dot >= 0 else ""
    if suffix in (".log", ".checkpoint"):
        dump_log(path, options, out, findings, advance)
    elif suffix == ".index":
        from .offset_index_text import dump_offset_index

        dump_offset_index(path, options, out.write, findings)
    elif suffix == ".timeindex":
        from .time_index_text import dump_time_index

        dump_time_index(path, options, out.write, findings)
    elif suffix == ".snapshot":
        dump_producer_snapshot(path, options, out.write, findings)
    elif suffix == ".txnindex":
        dump_transaction_index(path, options, out.write, findings)
    else:
        findings.immediate(f"Ignoring unknown file {path}")
