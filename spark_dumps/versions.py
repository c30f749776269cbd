"""The versions of Spark that can run this package, and what the older ones lack.

| Spark | lacks |
|---|---|
| 3 | data sources in Python: it is refused |
| 4.0, 4.1 | limits of a stream (`ReadLimit`): `maxRecordsPerTrigger` and `maxOffsetsPerTrigger` are refused |

Unix sockets between Python and the JVM are Spark 4.1's and newer; Spark 4.0 ignores their setting.
"""

from __future__ import annotations

import re

import pyspark

from logstore.errors import UsageError

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

    HAS_READ_LIMITS = True
except ImportError:
    HAS_READ_LIMITS = False

    class ReadLimit: ...  # type: ignore[no-redef]

    class ReadAllAvailable(ReadLimit): ...  # type: ignore[no-redef]

    class ReadMaxRows(ReadLimit): ...  # type: ignore[no-redef]

    class SupportsTriggerAvailableNow: ...  # type: ignore[no-redef]


__all__ = [
    "HAS_READ_LIMITS",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "require_read_limits",
    "require_spark",
]
VERSION_MIN = (4, 0)  # the first with data sources in Python


def require_spark(name: str, version: str) -> None:
    """Raise UsageError if `version`, of the Spark called `name`, has no data sources in Python."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < VERSION_MIN:
        least = ".".join(map(str, VERSION_MIN))
        raise UsageError(f"{name} is too old", expected=f"{least} or newer", found=version)


def require_read_limits(option: str) -> None:
    """Raise UsageError if this Spark cannot limit the batches of a stream."""
    if not HAS_READ_LIMITS:
        raise UsageError(
            f"Spark {pyspark.__version__} cannot heed {option}",
            expected="Spark 4.2 or newer",
            advice="leave it out, and a batch has all that is there",
        )
