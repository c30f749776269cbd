"""Rows of named types, which verbs print as a table for people, as CSV, or as JSON with an object for each line.

Each type of row has a schema: that of `logstore.rows`, or its own where only the command line has such rows. The
reference is generated from the schemas. A JSON object begins with the name of its type. The first line of CSV has the
names of the fields; lists and objects are JSON there, and control characters are escaped. Times are ISO 8601 in UTC. A
missing value is null in JSON, empty in CSV, and a dash in a table.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from logstore.disk.names import file_name
from logstore.rows.schema import Kind, fields_of, iso_text, json_name, json_row

from .tables import print_lines, print_table, visible

Row = dict[str, Any]

FORMATS = ("table", "csv", "jsonl")


class JsonField(NamedTuple):
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


class Column(NamedTuple):
    """The column of a field in a table, as `JsonField` has it; without a heading there is none."""

    heading: str | None
    cell: Callable[[Row], Any] | None = None
    is_minor: bool = False


class RowType(NamedTuple):
    """A type of row: its name in JSON, its meaning, and its members in order."""

    name: str
    about: str
    fields: tuple[JsonField, ...]

    @classmethod
    def of(cls, row_type: type, name: str, columns: Mapping[str, str | Column]) -> RowType:
        """Make the type of rows of `logstore.rows`.

        Args:
            columns: by field, the heading of its column in a table, or the column; fields without one are left out.
        """
        fields = []
        for field in fields_of(row_type):
            column = columns.get(field.name, Column(None))
            heading, cell, is_minor = Column(column) if isinstance(column, str) else column
            kind = field.kind.json_type + "?" * field.is_nullable
            fields.append(JsonField(json_name(field.name), kind, field.about, heading, cell, is_minor))
        return cls(name, (row_type.__doc__ or "").partition("\n")[0], tuple(fields))

    def plain(self, rows: Iterable[Any]) -> Iterator[Row]:
        """Yield rows as JSON has them: with the members of the type only, and with text for times in milliseconds."""
        names = [field.name for field in self.fields]
        times = [field.name for field in self.fields if field.type.startswith(Kind.TIME.json_type)]
        for row in rows:
            if not isinstance(row, dict):
                yield json_row(row)
                continue
            found = {name: row[name] for name in names}
            for name in times:
                found[name] = iso_text(found[name])
            yield found


TOPIC = JsonField("topic", "string", "name of the topic")
PARTITION = JsonField("partition", "integer", "number of the partition")
PATH = JsonField("path", "string", "the directory")
PARTITION_COLUMN = Column("partition", lambda row: f"{row['topic']}-{row['partition']}")
# by the directory's name, because a stray or future directory shares topic and number with the partition
DIRECTORY_COLUMN = Column("partition", lambda row: file_name(row["path"]))


def members(*sources: Any) -> Row:
    """Return the attributes of named tuples and dataclasses under their names in JSON.

    >>> members(JsonField("topicId", "string?", "its id"))["isMinor"]
    False
    """
    names = [(one, name) for one in sources for name in getattr(one, "_fields", None) or one.__dataclass_fields__]
    return {json_name(name): getattr(one, name) for one, name in names}


def print_rows(of: RowType, rows: Iterable[Any], form: str) -> None:
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


def print_row(of: RowType, row: Any, form: str) -> None:
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
