"""What verbs print: rows of named types, as a table for people, as CSV, or as JSON, an object a line.

Each type of row has a schema, of which the reference is written. In JSON an object begins with the name of its type. In
CSV the names of the fields stand in the first line, lists and objects are JSON, and what a terminal would obey is
escaped. Times are ISO 8601 in UTC, and what is missing is null in JSON, empty in CSV, and a dash in a table.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from logstore.disk.names import file_name

from .tables import print_table, visible
from .timestamps import iso_text

Row = dict[str, Any]

FORMATS = ("table", "csv", "jsonl")


class RowField(NamedTuple):
    """A member of a row.

    Attributes:
        type: string, integer, boolean, time, array or object; with `?` where it may be null.
        about: what it is, for the reference.
        heading: of its column in a table; None: it has none.
        cell: the cell of a row; None: the value.
        is_minor: a terminal that is too narrow goes without the column.
    """

    name: str
    type: str
    about: str
    heading: str | None = None
    cell: Callable[[Row], Any] | None = None
    is_minor: bool = False


class RowType(NamedTuple):
    """A type of row: its name in JSON, what a row stands for, and its members in order."""

    name: str
    about: str
    fields: tuple[RowField, ...]

    def plain(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the members of the type out of rows, whose times are milliseconds."""
        names = [field.name for field in self.fields]
        times = [field.name for field in self.fields if field.type.startswith("time")]
        for row in rows:
            found = {name: row[name] for name in names}
            for name in times:
                found[name] = iso_text(found[name])
            yield found


TOPIC = RowField("topic", "string", "name of the topic")
PARTITION = RowField("partition", "integer", "number of the partition")
PATH = RowField("path", "string", "the directory")
PLACE = (TOPIC, PARTITION._replace(heading="partition", cell=lambda row: f"{row['topic']}-{row['partition']}"))
# by its name: a stray or future directory only shares topic and number with the partition
PLACE_OF_DIRECTORY = (TOPIC, PARTITION._replace(heading="partition", cell=lambda row: file_name(row["path"])), PATH)
PLACE_BY_PATH = (TOPIC, PARTITION, PATH._replace(heading="partition"))


def members(*sources: Any) -> Row:
    """Return what named tuples and dataclasses have, under JSON's names.

    >>> members(RowField("topicId", "string?", "its id"))["isMinor"]
    False
    """
    names = [(one, name) for one in sources for name in getattr(one, "_fields", None) or one.__dataclass_fields__]
    return {json_name(name): getattr(one, name) for one, name in names}


def json_name(name: str) -> str:
    """Return the name of an attribute as JSON has it.

    >>> json_name("base_offset")
    'baseOffset'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def unless_missing(number: int | None) -> int | None:
    """Return the number, or None for -1, which Kafka has where there is none."""
    return None if number == -1 else number


def print_rows(of: RowType, rows: Iterable[Row], form: str) -> None:
    """Print rows of a type in one of FORMATS; a table has the fields with a heading."""
    plain = of.plain(rows)
    if form == "jsonl":
        sys.stdout.writelines(f"{json.dumps({'type': of.name} | row)}\n" for row in plain)
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([field.name for field in of.fields])
        writer.writerows(map(_csv_cell, row.values()) for row in plain)
    else:
        shown = [field for field in of.fields if field.heading is not None]
        cells = [[row[one.name] if one.cell is None else one.cell(row) for one in shown] for row in plain]
        minor = [field.heading for field in shown if field.is_minor]
        print_table([str(field.heading) for field in shown], cells, minor)


def print_row(of: RowType, row: Row, form: str) -> None:
    """Print the only row; for people a line a member that there is, and below a list's count a line for each value."""
    if form != "table":
        print_rows(of, [row], form)
        return
    for name, value in next(of.plain([row])).items():
        if value is not None:
            values = value if isinstance(value, list) else []
            count = len(value) if isinstance(value, list) else visible(_members(value, ", "))
            sys.stdout.writelines([f"{name}: {count}\n", *(f"  {visible(_members(one, ' '))}\n" for one in values)])


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return visible(value) if isinstance(value, str) else value


def _members(value: Any, separator: str) -> str:
    return separator.join(f"{name}: {one}" for name, one in value.items()) if isinstance(value, dict) else str(value)
