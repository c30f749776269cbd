"""All errors: each says what is wrong, where, what was expected and found, and what to do.

Every error inherits from `LogstoreError` and from the builtin that a caller would catch. `message` is Kafka's where
Kafka has the error; `kafka_name` and `kafka_code` come from Kafka's `Errors`; `java_class` is the exception of
Kafka's tools, so that a command line can print the same first line.
"""

from __future__ import annotations

from .codes import *  # noqa: F403
from .error import *  # noqa: F403
from .local import *  # noqa: F403

__all__ = [
    name for name, value in dict(vars()).items() if isinstance(value, type) and value.__module__.startswith(__name__)
]
