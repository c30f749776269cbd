"""The page of the errors: the closed list, with what to do about each."""

from __future__ import annotations

import builtins
import re

from logstore import errors
from logstore.errors import CoordinatorError, LogstoreError, Recovery
from logstore.errors.advice import ADVICE

from .markdown import table

#: pages that say more
_PAGES = {
    "InvalidConfigurationError": "see [Configurations](configurations.md)",
    "KafkaStorageError": "see [a full or failing disk](../how-to/embed.md#a-full-or-failing-disk); open the store anew",
}

_HEAD = """\
# Errors, and what to do

Written by `python -m docs.generators` from `logstore/errors`; do not edit.

Every error inherits from `logstore.LogstoreError` and from a builtin of Python, so `except LogstoreError` catches all
of them and `except OSError` those of the disk. Its message is in Kafka's words where Kafka has words for it. An error
has these attributes, None where they do not apply:

| attribute | says |
| --- | --- |
| `message` | what is wrong |
| `path`, `position`, `offset` | where: file or directory, byte, Kafka offset |
| `expected`, `found` | the two sides of the check that failed |
| `advice` | what to do now |
| `kafka_name`, `kafka_code` | the name and number in Kafka's `Errors` |
| `java_class` | the exception that Kafka's own tool or client ends with |
| `recovery` | what a producer does about it, below |

```python
import logstore

with logstore.open("data") as store:
    try:
        store.log("orders", 0)
    except logstore.errors.UnknownTopicOrPartitionError as error:
        assert isinstance(error, logstore.LogstoreError) and isinstance(error, LookupError)
        assert (error.kafka_name, error.kafka_code) == ("UNKNOWN_TOPIC_OR_PARTITION", 3)
        assert error.recovery is logstore.errors.Recovery.RETRY
```

## What a producer does

Every error that a producer meets says what its program does next, as the Java client classifies it (KIP-1050):

"""

_RECOVERIES = {
    Recovery.RETRY: "call again: the cause passes by itself",
    Recovery.ABORT: "abort the transaction, then begin again; without one the record is not in the log",
    Recovery.CLOSE: "close this producer and open another, after the advice of the error",
    Recovery.MEND: "correct the call: it changed nothing",
}


def page() -> str:
    """Return the page."""
    found = [getattr(errors, name) for name in errors.__all__]
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, LogstoreError)]
    concrete = [kind for kind in kinds if kind not in (LogstoreError, CoordinatorError)]
    missing = [kind.__name__ for kind in concrete if not _what_to_do(kind)]
    assert not missing, f"errors without advice: {missing}"
    unknown = ADVICE.keys() - {kind.__name__ for kind in concrete}
    assert not unknown, f"advice for errors that are not there: {unknown}"
    recoveries = table(["`recovery`", "what to do"], [(f"`{one.name}`", text) for one, text in _RECOVERIES.items()])
    return (
        _HEAD
        + recoveries
        + "\n## With a code of Kafka's\n\n"
        + _errors([kind for kind in concrete if kind.kafka_code is not None])
        + "\n## Without one\n\nWrong calls, what clients say by themselves, and what is wrong in files.\n\n"
        + _errors([kind for kind in concrete if kind.kafka_code is None])
    )


def _errors(kinds: list[type[LogstoreError]]) -> str:
    return table(
        ["error", "what is wrong", "what to do", "in Kafka", "also a"],
        [
            (
                f"`{kind.__name__}`",
                re.sub(r" \(`[\w.]+`\)\.$", ".", (kind.__doc__ or "").partition("\n")[0]),
                _what_to_do(kind),
                _in_kafka(kind),
                _builtin(kind),
            )
            for kind in kinds
        ],
    )


def _in_kafka(kind: type[LogstoreError]) -> str:
    if kind.kafka_name is None:
        return (kind.java_class or "").rpartition(".")[2]
    return f"{kind.kafka_code} {kind.kafka_name.replace('_', ' ').lower()}"


def _builtin(kind: type[LogstoreError]) -> str:
    return next(base.__name__ for base in kind.__mro__ if base.__module__ == builtins.__name__)


def _what_to_do(kind: type[LogstoreError]) -> str:
    parts = [
        f"`{kind.recovery.name}`" if kind.recovery is not None else "",
        _PAGES.get(kind.__name__) or ADVICE.get(kind.__name__, ""),
    ]
    return ": ".join(filter(None, parts))
