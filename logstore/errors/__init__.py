"""The closed list of errors: what went wrong, where, what was expected, what was found, what to do.

Every error inherits from `LogstoreError` and from the builtin that a caller would catch. `message` is in Kafka's own
words where Kafka has words for it; `kafka_name` and `kafka_code` are those of Kafka's `Errors`; `java_class` is the
exception that the real tools die of, so that a command line can print the same first line.
"""

from __future__ import annotations

from .codes import *  # noqa: F403
from .error import *  # noqa: F403
from .local import *  # noqa: F403

__all__ = [
    name for name, value in dict(vars()).items() if isinstance(value, type) and value.__module__.startswith(__name__)
]
