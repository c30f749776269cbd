"""Rows of named types, which verbs print as a table for people, as CSV, or as JSON with an object for each line.

Each type of row has a schema; the reference is generated from the schemas. A JSON object begins with the name of its
type. The first line of CSV has the names of the fields; lists and objects are JSON there, and control characters are
escaped. Times are ISO 8601 in UTC. A missing value is null in JSON, empty in CSV, and a dash in a table.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from logstore.disk.names import file_name

from .tables import print_lines, print_table, visible
from .timestamps import iso_text

Row = dict[str, Any]

FORMATS = ("table", "csv", "jsonl")


class RowField(NamedTuple):
    """A member of a row.

    Attributes:
        type: string, integer, boolean, time, array or object; with `?` if it may be null.
        about: explanation in the reference.
        heading: the name of its column in a table; None: no column.
        cell: makes the cell of a row; None: the cell is the value.
        is_minor: a narrow terminal leaves the column out.
    """

    name: str
    type: str
    about: str
    heading: str | None = None
    cell: Callable[[Row], Any] | None = None
    is_minor: bool = False


class RowType(NamedTuple):
    """A type of row: its name in JSON, its meaning, and its members in order."""

    name: str
    about: str
    fields: tuple[RowField, ...]

    def plain(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with the members of the type only, and with text for their times in milliseconds."""
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
# by the directory's name, because a stray or future directory shares topic and number with the partition
PLACE_OF_DIRECTORY = (TOPIC, PARTITION._replace(heading="partition", cell=lambda row: file_name(row["path"])), PATH)
PLACE_BY_PATH = (TOPIC, PARTITION, PATH._replace(heading="partition"))


def members(*sources: Any) -> Row:
    """Return the attributes of named tuples and dataclasses under their names in JSON.

    >>> members(RowField("topicId", "string?", "its id"))["isMinor"]
    False
    """
    names = [(one, name) for one in sources for name in getattr(one, "_fields", None) or one.__dataclass_fields__]
    return {json_name(name): getattr(one, name) for one, name in names}


def json_name(name: str) -> str:
    """Return the name of an attribute in JSON.

    >>> json_name("base_offset")
    'baseOffset'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def unless_missing(number: int | None) -> int | None:
    """Return the number, or None for -1, by which Kafka means no number."""
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
    """Print a single row; a table has a line for each member that is not None, and for each value of a list."""
    if form != "table":
        print_rows(of, [row], form)
        return
    for name, value in next(of.plain([row])).items():
        if isinstance(value, list):
            print_lines(f"{name}: {len(value)}", *(f"  {_members(one, ' ')}" for one in value))
        elif value is not None:
            print_lines(f"{name}: {_members(value, ', ')}")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return visible(value) if isinstance(value, str) else value


def _members(value: Any, separator: str) -> str:
    return separator.join(f"{name}: {one}" for name, one in value.items()) if isinstance(value, dict) else str(value)
