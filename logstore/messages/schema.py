"""Message schemas as tables of text, such as `topics/tables/*.txt`, which are parsed on first use.

A table says what Kafka's message definitions (`*.json`) say, with one line for each field:

    # a comment
    Name: type 3, versions 0-4, flexible 4+      a message; `type` only where records carry one
      field: []int32?, versions 2+               an array that may be null, from version 2 on
      other: int64, versions 1+, tag 0, default -1, ignorable
      members: []Member                          a struct that is defined here, indented ...
        name: string
      struct Endpoint                            ... or once for the whole message
        port: uint16

Types are `int8 int16 int32 int64 uint16 bool float64 uuid string bytes`, a struct's name, or `[]` before
either; `?` behind the type: null is allowed wherever the field exists. Without `versions` a field is in all
versions. A field with a `tag` is an optional tagged field. `ignorable`: a writer drops the value where the version
does not have the field. `since 4.4`: an older Kafka does not know the message or the field. Fields stand in the order
of Kafka's definitions, which is the order on disk (tagged fields behind all others) and in JSON. A shared struct is
defined above the structs that use it.

>>> marker = parse_table("EndTxnMarker: type 0, versions 0\\n  coordinatorEpoch: int32")["EndTxnMarker"]
>>> marker.versions, marker.flexible, [(f.name, f.kind) for f in marker.root.fields]
(Versions(low=0, high=0), None, [('coordinatorEpoch', 'int32')])
>>> parse_table("Log: versions 0-1, flexible 1+\\n  id: int64, versions 1+, tag 0, default -1")["Log"].root.fields[0]
... # doctest: +NORMALIZE_WHITESPACE
Field(name='id', kind='int64', is_array=False, is_nullable=False, struct=None,
      versions=Versions(low=1, high=1), tag=0, default=-1, is_ignorable=False)
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..config.kafka_version import NEWEST, KafkaVersion
from ..layout.kafka_uuid import ZERO_UUID, format_uuid

#: A record read by its schema: field name to value. See `reader` for the Python types.
Value = dict[str, Any]

_DEFAULTS: dict[str, Any] = {
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "uint16": 0,
    "bool": False,
    "float64": 0.0,
    "uuid": format_uuid(ZERO_UUID),
    "string": "",
    "bytes": b"",
}


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions from `low` to `high`, both included."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def nearest(self, version: int) -> int:
        """Return the version whose fields Kafka's generated code reads for `version`."""
        return self.low if version < self.low else self.high if version > self.high else version


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a message or struct.

    Attributes:
        kind: the type's name without `[]` and `?`.
        struct: the struct that `kind` names; None for a primitive type.
        default: the value in versions without the field, and of a tagged field that is not on disk.
    """

    name: str
    kind: str
    is_array: bool
    is_nullable: bool
    struct: StructSpec | None
    versions: Versions
    tag: int | None
    default: Any
    is_ignorable: bool


@dataclass(frozen=True, slots=True, eq=False)
class StructSpec:
    """The root of a message, or a struct in it.

    `versions` is None for roots and shared structs. Kafka's generated readers refuse a version above it, but only
    for a struct that is defined inside its field.
    """

    name: str
    versions: Versions | None
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message; `record_type` is its api key, `flexible` its first flexible version, each None if it has none.

    `kafka` is the Kafka that knows it so, by whose rules it is read.
    """

    name: str
    record_type: int | None
    versions: Versions
    flexible: int | None
    root: StructSpec
    kafka: KafkaVersion

    def is_flexible(self, version: int) -> bool:
        """Return whether `version` has compact strings, bytes and arrays, and tagged fields."""
        return self.flexible is not None and version >= self.flexible


def read_table(package: str, name: str, kafka: KafkaVersion = NEWEST) -> dict[str, Message]:
    """Parse the table `tables/<name>.txt` of a package as `kafka` knows it; return its messages by name."""
    table = pkgutil.get_data(package, f"tables/{name}.txt")
    if table is None:
        raise FileNotFoundError(f"tables/{name}.txt")
    return parse_table(table.decode("ascii"), kafka)


def parse_table(text: str, kafka: KafkaVersion = NEWEST) -> dict[str, Message]:
    """Return the messages of a table by name, as `kafka` knows them; raises ValueError for a type that is not known."""
    messages = (_message(block, kafka) for block in _blocks(_lines(text, kafka)))
    return {message.name: message for message in messages}


@dataclass(slots=True)
class _Line:
    indent: int
    head: str
    clauses: dict[str, str]
    children: list[_Line]


def _lines(text: str, kafka: KafkaVersion) -> Iterator[_Line]:
    unknown_indent: int | None = None  # of a line that `kafka` does not know: those below it belong to it
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].rstrip()
        if line:
            head, _, rest = line.strip().partition(":")
            clauses = dict(_clause(part.strip()) for part in rest.split(",")) if rest else {}
            indent = len(line) - len(line.lstrip())
            if unknown_indent is not None and indent > unknown_indent:
                continue
            unknown_indent = None if kafka.knows(clauses.get("since")) else indent
            if unknown_indent is None:
                yield _Line(indent, head, clauses, [])


def _clause(part: str) -> tuple[str, str]:
    word, space, rest = part.partition(" ")
    return (word, rest) if space or word == "ignorable" else ("kind", word)


def _blocks(lines: Iterator[_Line]) -> list[_Line]:
    """Make each line a child of the nearest line above it that is indented less; return the outermost lines."""
    top = _Line(-1, "", {}, [])
    stack = [top]
    for line in lines:
        while stack[-1].indent >= line.indent:
            stack.pop()
        stack[-1].children.append(line)
        stack.append(line)
    return top.children


def _message(line: _Line, kafka: KafkaVersion) -> Message:
    versions = _versions(line.clauses["versions"], Versions(0, 0x7FFF))
    shared: dict[str, StructSpec] = {}
    for child in line.children:
        if child.head.startswith("struct "):
            name = child.head.removeprefix("struct ")
            shared[name] = StructSpec(name, None, _fields(child, versions, shared))
    record_type = line.clauses.get("type")
    flexible = line.clauses.get("flexible")
    return Message(
        line.head,
        None if record_type is None else int(record_type),
        versions,
        None if flexible is None else int(flexible.removesuffix("+")),
        StructSpec(line.head, None, _fields(line, versions, shared)),
        kafka,
    )


def _fields(line: _Line, versions: Versions, shared: dict[str, StructSpec]) -> tuple[Field, ...]:
    return tuple(_field(child, versions, shared) for child in line.children if not child.head.startswith("struct "))


def _field(line: _Line, within: Versions, shared: dict[str, StructSpec]) -> Field:
    written_kind = line.clauses["kind"]
    kind = written_kind.removesuffix("?").removeprefix("[]")
    is_array = written_kind.startswith("[]")
    versions = _versions(line.clauses.get("versions", "0+"), within)
    struct = StructSpec(kind, versions, _fields(line, versions, shared)) if line.children else shared.get(kind)
    if struct is None and kind not in _DEFAULTS:
        raise ValueError(f"{line.head}: unknown type {kind}")
    tag = line.clauses.get("tag")
    return Field(
        name=line.head,
        kind=kind,
        is_array=is_array,
        is_nullable=written_kind.endswith("?"),
        struct=struct,
        versions=versions,
        tag=None if tag is None else int(tag),
        default=_default(line.clauses.get("default"), kind, is_array, struct),
        is_ignorable="ignorable" in line.clauses,
    )


def _default(written: str | None, kind: str, is_array: bool, struct: StructSpec | None) -> Any:
    if written == "null":
        return None
    if is_array:
        return []
    if struct is not None:
        return {field.name: field.default for field in struct.fields}
    if written is None:
        return _DEFAULTS[kind]
    return written == "true" if kind == "bool" else int(written)


def _versions(written: str, within: Versions) -> Versions:
    low, dash, high = written.removesuffix("+").partition("-")
    last = within.high if written.endswith("+") else int(high if dash else low)
    return Versions(max(int(low), within.low), min(last, within.high))
