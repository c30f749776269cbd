"""The next command for a finding, to be copied into a shell."""

from __future__ import annotations

import os
import shlex

from logstore.audit.finding import Finding, Where
from logstore.audit.open_transactions import RULE_OF
from logstore.layout.file_names import parse_partition_directory

from .markup import Markup, text

_LENGTH_MAX = 20_000  # characters; far above a path's, because a command that is cut would be another one


def command_line(command: str) -> Markup:
    """Return a line that a click selects, and that a button of the script copies."""
    return Markup(f'<div class="command"><code>{text(command, _LENGTH_MAX)}</code></div>')


def shell_quoted(path: str) -> str:
    r"""Return `path` as a word of a shell; one with unprintable characters in the escapes of bash.

    >>> print(shell_quoted("/data/orders-0"), shell_quoted("/my data"), shell_quoted("it's\n"))
    /data/orders-0 '/my data' $'it\x27s\x0a'
    """
    if path.isprintable():
        return shlex.quote(path)
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in os.fsencode(path)
    )
    return f"$'{escaped}'"


def next_command(finding: Finding, root: str) -> str:
    """Return the command to go on with for a finding in the data directory at `root`; it changes nothing."""
    directory = partition_directory_name(finding.where, root)
    if finding.rule.startswith(("group-", "chain-")):
        return f"logstore groups {shell_quoted(root)}"
    if "`logstore topics`" in finding.advice:
        return f"logstore topics {shell_quoted(root)}"
    if "`logstore promote`" in finding.advice:
        return f"logstore promote {shell_quoted(root)} --dry-run"
    if directory is None:
        return f"logstore audit --explain {finding.rule}"
    path = shell_quoted(os.path.join(root, directory))
    if finding.rule in RULE_OF.values():
        return f"logstore txns explain {path}"
    for verb in ("salvage", "repair"):
        if f"`logstore {verb}`" in finding.advice:
            return f"logstore {verb} {path} --dry-run"
    if "`logstore diff`" in finding.advice:
        return f"logstore diff {path} …/{shell_quoted(directory)}"
    if finding.where.offset is not None:
        return f"logstore dump {path} --offset {finding.where.offset}"
    return f"logstore audit --explain {finding.rule}"


def partition_directory_name(where: Where, root: str) -> str | None:
    """Return the name of the directory of the partition that a finding is about; None if it is about none."""
    name = path_within(where.path or "", root).partition("/")[0]
    if parse_partition_directory(name) is not None:
        return name
    return None if where.topic is None else f"{where.topic}-{where.partition}"


def path_within(path: str, root: str) -> str:
    """Return `path` relative to `root`.

    >>> path_within("/data/orders-0/x.log", "/data"), path_within("/data", "/data"), path_within("orders-0", "/data")
    ('orders-0/x.log', '', 'orders-0')
    """
    if path == root:
        return ""
    return path.removeprefix(root.rstrip("/") + "/")
