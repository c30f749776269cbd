"""Findings that last: a running broker changes files while they are read, and two of them may not fit together.

Findings in a directory that did not change meanwhile stand, unless it was written to a moment ago: the broker may be
between the `.log` and an index. Else the directory is read again, and only findings that come again, by rule and place,
are kept: a fault stays, a moment passes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..clock import now_ms
from ..disk.paths import Scan, tree_scan
from ..disk.system_errors import nio_error
from ..errors import DataDirectoryError
from .finding import Finding

T = TypeVar("T")
READING_COUNT_MAX = 4
MOMENT_S = 0.5  # longer than between two writes that belong together, on a machine that is busy
OLDEST_MS = 1_293_840_000_000  # 2011: a file is not older than Kafka; tools that pack files give them 0, for one
REST_MS = 2000  # a directory that was left alone for so long is not in the middle of anything

Signature = set[tuple[str, int, int]]


def read_until_stable(
    path: str, read: Callable[[], T], findings_of: Callable[[T], Sequence[Finding]], beside: Iterable[str] = ()
) -> tuple[T, tuple[Finding, ...]]:
    """Return the last result of `read()` for the directory at `path`, and the findings that all results share.

    Args:
        beside: other directories that it reads.

    Raises:
        DataDirectoryError: a directory cannot be listed; and what `read` raises.
    """
    paths = {path, *beside}
    before = _signatures(paths)
    result = read()
    findings = tuple(findings_of(result))
    has_waited = False
    for _ in range(READING_COUNT_MAX - 1):
        if not findings:
            break
        after = _signatures(paths)
        if after == before and (has_waited or abs(now_ms() - newest_ms(after)) >= REST_MS):
            break
        if after == before:
            has_waited = True
            threading.Event().wait(MOMENT_S)
        before = after
        result = read()
        before_it = {(finding.rule, finding.where) for finding in findings}
        findings = tuple(one for one in findings_of(result) if (one.rule, one.where) in before_it)
    return result, findings


def newest_ms(files: Signature, until_ms: int = 2**63) -> int:
    """Return when the newest of some files was written, ms; 0 if none has a time from OLDEST_MS to `until_ms`."""
    times = (modified_ns // 1_000_000 for _, _, modified_ns in files)
    return max((time for time in times if OLDEST_MS <= time <= until_ms), default=0)


def _signatures(paths: Iterable[str]) -> Signature:
    return Signature().union(*map(signature, paths))


def signature(path: str, depth: int = 2, scan: Scan | None = None) -> Signature:
    """Return names, sizes and times of all files in the directory and in those right below it that can be listed."""
    found = Signature()
    try:
        scan = scan or tree_scan(path)
        entries = scan(path)
    except FileNotFoundError:
        return found  # a partition that was deleted meanwhile
    except OSError as error:
        raise nio_error(error, path) from error
    for entry in entries:
        try:
            if depth > 1 and entry.is_dir(follow_symlinks=False):
                found |= signature(entry.path, depth - 1, scan)
            else:
                status = entry.stat(follow_symlinks=False)
                found.add((entry.path, status.st_size, status.st_mtime_ns))
        except (OSError, DataDirectoryError):
            continue
    return found
