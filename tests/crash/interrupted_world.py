"""What is interrupted, how it is used then, and how it is looked at in the end; `interrupted_calls` has the calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from logstore.audit import stable_reading
from logstore.audit.directory_audit import audit_directory
from logstore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    DataDirectoryError,
    LogstoreError,
    OutOfOrderSequenceError,
    RequestTimedOutError,
)
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.crash.acknowledged import Acknowledged, Place, Span, spans_of
from tests.support import logs

# Errors that do not say what happened, but that the interrupt left something hanging or out of step.
NO_REASON = (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    DataDirectoryError,
    OutOfOrderSequenceError,
    RequestTimedOutError,
)
stable_reading.MOMENT_S = 0.0  # nobody writes to a directory that is audited


class World:
    """Something that is open in a directory, and what it has acknowledged.

    Attributes:
        root: a data directory.
        problems: what went wrong so far.
        refusals: calls that raised an error which says why.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.acknowledged = Acknowledged()
        self.problems: list[str] = []
        self.refusals: list[str] = []
        self._numbers = itertools.count()

    def values(self, count: int) -> list[bytes]:
        """Values that nobody has written."""
        return [b"value %d " % next(self._numbers) + b"x" * 20 for _ in range(count)]

    def attempt(self, name: str, call: Callable[[], object]) -> bool:
        """Make a call that works, or raises a LogstoreError that says why; whether it worked."""
        try:
            call()
        except NO_REASON as error:
            self.problems.append(f"{name} then raised {described(error)}")
        except LogstoreError as error:
            self.refusals.append(f"{name}: {described(error)}")
        except Exception as error:
            self.problems.append(f"{name} then raised {described(error)}")
        else:
            return True
        return False

    def close(self) -> None:
        """Close what is open, whatever happened to it."""
        raise NotImplementedError

    def look(self) -> None:
        """Open the directory again, closed before, and note what is wrong."""
        raise NotImplementedError

    def audit(self, now_ms: int) -> None:
        """Note what an audit of the directory finds."""
        for finding in audit_directory(str(self.root), now_ms).findings:
            if finding.rule == "offsets-lost" and self.acknowledged.keys:
                continue  # records of a compacted log go
            self.problems.append(f"audit: {finding}"[:300])

    def compare(self, records: dict[Place, list[tuple[int, bytes]]]) -> None:
        """Note what differs from what was acknowledged."""
        spans: dict[Place, list[Span]] = {place: spans_of(self.root / f"{place[0]}-{place[1]}") for place in records}
        self.problems += self.acknowledged.problems(records, spans)


def described(error: BaseException) -> str:
    """An error in a line, with what caused it."""
    cause = f" because of {error.__cause__!r}"[:150] if error.__cause__ is not None else ""
    return f"{type(error).__name__}: {error}"[:200].replace("\n", " ") + cause


def records_of(
    log: PartitionLog, isolation: FetchIsolation = FetchIsolation.READ_UNCOMMITTED
) -> list[tuple[int, bytes]]:
    """Offset and value of each record of a log."""
    return [(record.offset, record.value or b"") for record in logs.records_of(log, isolation=isolation)]
