"""The page of the library: the public names with their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import logstore
from logstore.audit import answers, contents, listings
from logstore.client.consumer.consumer_records import Lag
from logstore.columns.any_columns import record_columns
from logstore.columns.decoded_records import Record, Records
from logstore.log.append.request import AppendInfo
from logstore.model import FetchIsolation
from logstore.store.metadata.topics import TopicDescription
from logstore.view.partition_reader import PartitionReader
from logstore.view.record_reader import RecordReader

from .markdown import prose

_ROOT = Path(__file__).parents[2]
_WIDTH = 100

_PARTS: list[tuple[str, str, list[Any]]] = [
    (
        "Stores",
        "A data directory that is open.",
        [logstore.open, logstore.Store, logstore.ReadOnlyStore, TopicDescription],
    ),
    ("Producers", "", [logstore.Producer, logstore.RecordFuture, logstore.RecordMetadata]),
    (
        "Consumers",
        "",
        [
            logstore.Consumer,
            logstore.ConsumerRecord,
            logstore.RebalanceListener,
            logstore.ConsumerGroupMetadata,
            logstore.OffsetAndMetadata,
            logstore.OffsetAndTimestamp,
            Lag,
            logstore.TopicPartition,
        ],
    ),
    (
        "Questions",
        "[Ask from Python](../how-to/ask-from-python.md) shows them.",
        [
            *(answers.audit, answers.verify, answers.transactions, answers.explain),
            *(listings.groups, listings.producers, listings.topics, listings.segments, contents.dump),
            *(logstore.Rows, logstore.AuditedFindings),
        ],
    ),
    (
        "One partition",
        "`store.log(topic, partition)` is the leader of a partition; a read-only store gives a reader of it.",
        [
            logstore.PartitionLog,
            AppendInfo,
            PartitionReader,
            RecordReader,
            Records,
            Record,
            record_columns,
            FetchIsolation,
        ],
    ),
]
#: public in Python, and for the library's own parts
_INNER = {
    "Store": {"invalidate_after_fork", "schedule"},
    "Producer": {"invalidate_after_fork"},
    "PartitionLog": {
        *("append", "append_as_leader", "cleanable", "clean", "delete_old_segments", "fast"),
        *("drop_expired_producers", "first_unstable_offset", "flush_if_due", "has_ongoing_transaction", "move"),
        *("increment_log_start_offset", "invalidate_after_fork", "is_closed_in_order", "path"),
        *("remove_deleted_files", "start_inside", "stop_cleaning", "truncate_fully_and_start_at", "update_config"),
        *("unwatch", "view", "watch", "producer_entries"),
    },
    "PartitionReader": {"unwatch", "view", "watch"},
    "FetchIsolation": {"end_offset", "of"},
}

_HEAD = """\
# The library

Written by `python -m docs.generators` from signatures and docstrings; do not edit.

`import logstore` gives these names, each imported when it is first asked for:

{names}.

They, the errors in [`logstore.errors`](errors.md), and the types below are what a program relies on; what else can be
imported may change.
Configurations are in [their own page](configurations.md).
"""


def page() -> str:
    """Return the page."""
    names = ", ".join(f"`{name}`" for name in logstore.__all__)
    parts = [_HEAD.format(names=textwrap.fill(names, 118, break_on_hyphens=False))]
    for title, about, kinds in _PARTS:
        parts.append(f"\n## {title}\n" + (f"\n{about}\n" if about else ""))
        parts += [_class(kind) if inspect.isclass(kind) else _function(kind, _name(kind), 3) for kind in kinds]
    parts.append(_spark())
    missing = [name for name in logstore.__all__ if inspect.isclass(getattr(logstore, name)) and not _is_told(name)]
    assert not missing, f"public names without a place in the page: {missing}"
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))


def _is_told(name: str) -> bool:
    return name == "LogstoreError" or any(getattr(logstore, name) in kinds for _, _, kinds in _PARTS)


def _name(kind: Any) -> str:
    return f"logstore.{kind.__name__}" if kind.__name__ in logstore.__all__ else f"{kind.__module__}.{kind.__name__}"


def _class(kind: type) -> str:
    members = "".join(_member(kind, name) for name in sorted(set(_members(kind)), key=_order(kind)))
    return f"\n### {_name(kind)}\n\n{prose(kind.__doc__)}{_inherited(kind)}{_fields(kind)}{members}"


def _inherited(kind: type) -> str:
    """Return the attributes that a base class tells, of a class that tells none."""
    if "Attributes:" in (kind.__doc__ or ""):
        return ""
    docs = (inspect.cleandoc(base.__doc__ or "") for base in kind.__mro__[1:] if base.__module__.startswith("logstore"))
    found = next((doc for doc in docs if "\nAttributes:" in doc), None)
    return "" if found is None else "\n" + prose(found[found.index("\nAttributes:") :])


def _fields(kind: type) -> str:
    """Return the fields of a tuple or dataclass that its docstring does not tell, or the values of an enum."""
    if issubclass(kind, Enum):
        return "\nValues:\n\n" + "".join(f"- `{one.name}`: `{one.value!r}`\n" for one in kind)
    is_plain = hasattr(kind, "_fields") or is_dataclass(kind)
    if not is_plain or "Attributes:" in (kind.__doc__ or ""):
        return ""
    fields = inspect.get_annotations(kind)
    return "\nFields:\n\n" + "".join(
        f"- `{name}`: `{getattr(one, '__forward_arg__', one)}`\n" for name, one in fields.items()
    )


def _members(kind: type) -> Iterator[str]:
    """Yield public names that this product defines."""
    inner = _INNER.get(kind.__name__, set())
    unknown = {name for name in inner if not hasattr(kind, name)}
    assert not unknown, f"{kind.__name__} has no {unknown}"
    for base in kind.__mro__:
        if base.__module__.startswith("logstore"):
            for name, value in vars(base).items():
                is_code = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
                if is_code and not name.startswith("_") and name not in inner:
                    yield name


def _order(kind: type) -> Callable[[str], tuple[bool, str]]:
    return lambda name: (not isinstance(inspect.getattr_static(kind, name), property), name)


def _member(kind: type, name: str) -> str:
    value = inspect.getattr_static(kind, name)
    if isinstance(value, property):
        return f"\n#### {kind.__name__}.{name}\n\nProperty. {prose(value.__doc__)}"
    return _function(getattr(kind, name), f"{kind.__name__}.{name}", 4)


def _function(function: Callable[..., Any], name: str, level: int) -> str:
    signature = _signature(function, name.rpartition(".")[2])
    return f"\n{'#' * level} {name}\n\n```text\n{signature}\n```\n\n{prose(function.__doc__)}"


def _signature(function: Callable[..., Any], name: str) -> str:
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(_parameter(parameter))
    returned = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parts)}){returned}"
    return line if len(line) <= _WIDTH else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = ("*" if parameter.kind is parameter.VAR_POSITIONAL else "") + "**" * (
        parameter.kind is parameter.VAR_KEYWORD
    )
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {parameter.annotation}"
    if parameter.default is parameter.empty:
        return text
    default = parameter.default
    shown = str(default) if isinstance(default, Enum) else "..." if callable(default) else repr(default)
    return f"{text} = {shown}"


def _spark() -> str:
    """Return the section of `spark_dumps`, read without importing PySpark."""
    source = ast.get_docstring(ast.parse((_ROOT / "spark_dumps" / "source.py").read_text())) or ""
    source = "\n".join(source.splitlines()[1:]).strip("\n")
    session = ast.parse((_ROOT / "spark_dumps" / "session.py").read_text())
    functions = [
        node for node in session.body if isinstance(node, ast.FunctionDef) and node.name in ("session", "register")
    ]
    told = "".join(
        f"\n### spark_dumps.{one.name}\n\n```text\n{one.name}({ast.unparse(one.args)})\n```\n\n"
        f"{prose(ast.get_docstring(one))}"
        for one in sorted(functions, key=lambda one: one.name)
    )
    about = "The data source `kafka_segments`, in the package `spark_dumps`."
    return f"\n## Spark\n\n{about}\n{told}\n### Tables and options\n\n{source}\n"
