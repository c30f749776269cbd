"""The schema of a row, read from the annotations of its NamedTuple.

>>> class Planet(NamedTuple):
...     "A planet."
...     name: Annotated[str, "how it is called"]
...     seen_at: Annotated[TimeMs | None, "when it was seen first"]
>>> [(field.name, field.kind.name, field.is_nullable, field.about) for field in fields_of(Planet)]
[('name', 'STRING', False, 'how it is called'), ('seen_at', 'TIME', True, 'when it was seen first')]
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints


class Kind(Enum):
    """The type of a field: its name in JSON, and what tells it from others of that name."""

    STRING = "string", "text"
    BINARY = "string", "bytes"
    BOOLEAN = "boolean", ""
    INT32 = "integer", "32 bits"
    INT64 = "integer", "64 bits"
    TIME = "time", "milliseconds since 1970, which JSON and CSV have as text"
    LIST = "array", ""
    OBJECT = "object", "a row"
    MAP = "object", "texts by name"

    @property
    def json_type(self) -> str:
        """The type in JSON."""
        return self.value[0]


R = TypeVar("R")
Int32 = Annotated[int, Kind.INT32]
TimeMs = Annotated[int, Kind.TIME]

_EPOCH = datetime(1970, 1, 1)
_KINDS: dict[Any, Kind] = {str: Kind.STRING, bool: Kind.BOOLEAN, int: Kind.INT64, bytes: Kind.BINARY}


class RowField(NamedTuple):
    """A member of a row.

    Attributes:
        about: what it is, for the reference.
        item: of a list the type of its items, of an object its row type; None for others.
    """

    name: str
    kind: Kind
    is_nullable: bool
    about: str
    item: Any = None


@cache
def fields_of(row_type: Any) -> tuple[RowField, ...]:
    """Return the fields of a NamedTuple, in order."""
    hints = get_type_hints(row_type, include_extras=True)
    return tuple(_field(name, *get_args(hints[name])) for name in row_type._fields)


def _field(name: str, hint: Any, *notes: Any) -> RowField:
    about = next(note for note in notes if isinstance(note, str))
    kind = next((note for note in notes if isinstance(note, Kind)), None)  # `Annotated` of `Annotated` is one
    is_nullable = get_origin(hint) in (Union, types.UnionType)
    if is_nullable:
        (hint,) = (one for one in get_args(hint) if one is not type(None))
    found, item = kind_of(hint)
    return RowField(name, kind or found, is_nullable, about, item)


def selection(name: str, about: str, names: str, *sources: type) -> type:
    """Return a row type with some fields of other row types; where several have a field, the last one counts.

    `about` is its docstring; `names` are its fields, in order, with blanks between them.
    """
    hints: dict[str, Any] = {}
    for source in sources:
        hints |= get_type_hints(source, include_extras=True)
    make: Any = NamedTuple
    row_type: type = make(name, [(field, hints[field]) for field in names.split()])
    row_type.__doc__, row_type.__module__ = about, sources[-1].__module__
    return row_type


def kind_of(hint: Any) -> tuple[Kind, Any]:
    """Return the kind of an annotation, and the type of its items or members."""
    if get_origin(hint) is Annotated:
        return get_args(hint)[1], None
    if get_origin(hint) is tuple:
        return Kind.LIST, get_args(hint)[0]
    if get_origin(hint) is Mapping:
        return Kind.MAP, None
    if hint in _KINDS:
        return _KINDS[hint], None
    return Kind.OBJECT, hint


def json_name(name: str) -> str:
    """Return the name of a field in JSON, CSV and Parquet of the command line, as Kafka writes names.

    >>> json_name("base_offset")
    'baseOffset'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def json_row(row: Any) -> dict[str, Any]:
    """Return a row as JSON has it: its members by their names there, times as text, and so in the rows within it."""
    return {json_name(field.name): _json_value(field, getattr(row, field.name)) for field in fields_of(row.__class__)}


def _json_value(field: RowField, value: Any) -> Any:
    if field.kind is Kind.TIME:
        return iso_text(value)
    if field.kind is Kind.LIST and value is not None:
        return [json_row(item) if hasattr(item, "_fields") else item for item in value]
    if field.kind is Kind.OBJECT and value is not None:
        return json_row(value)
    return dict(value) if isinstance(value, Mapping) else value


def iso_text(timestamp_ms: int | None) -> str | None:
    """Return the time in UTC to the millisecond, None for no time, or the number itself beyond the years 1 to 9999.

    >>> iso_text(1700000000020), iso_text(-1), iso_text(2**62)
    ('2023-11-14T22:13:20.020Z', None, '4611686018427387904')
    """
    if timestamp_ms is None or timestamp_ms == -1:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds") + "Z"


def row_of(row_type: type[R], *things: object, **values: Any) -> R:
    """Return a row of `values` and, for its other fields, of the attributes of `things` with the same name."""
    for name in row_type._fields:  # type: ignore[attr-defined]
        if name not in values:
            values[name] = next(getattr(one, name) for one in things if hasattr(one, name))
    return row_type(**values)


def unless_missing(number: int | None) -> int | None:
    """Return the number, or None for -1, by which Kafka means no number."""
    return None if number == -1 else number
