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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.disk.names import file_name, parent
from logstore.rows.schema import Kind, fields_of, iso_text, json_name, json_row

from .tables import print_lines, print_table, visible

if TYPE_CHECKING:
    from logstore.audit.finding import Finding
    from logstore.errors import LogstoreError

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
        """Make the type of rows of `logstore.rows`; `columns` are those of a table, or their headings, by field."""
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


def members(source: Any) -> Row:
    """Return the attributes of a named tuple or a dataclass under their names in JSON.

    >>> members(JsonField("topicId", "string?", "its id"))["isMinor"]
    False
    """
    names = getattr(source, "_fields", None) or source.__dataclass_fields__
    return {json_name(name): getattr(source, name) for name in names}


class TypedRows(NamedTuple):
    """Rows of a type; a table of a single row (`is_one`) has a line for each of its members."""

    of: RowType
    rows: Sequence[Any]
    is_one: bool = False


class Cells(NamedTuple):
    """A table for people alone; see `print_table`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    minor: Sequence[str] = ()


class VerbAnswer(NamedTuple):
    """What a verb answers.

    Attributes:
        rows: for programs; CSV has the last ones alone.
        code: the exit code.
        lines: for people; None for the rows.
        notes: what is told on standard error behind that.
        verdict: what CSV leaves out, which is told there too.
    """

    rows: Sequence[TypedRows]
    code: int = 0
    lines: Sequence[str | Cells | TypedRows] | None = None
    notes: Sequence[str | LogstoreError | Finding] = ()
    verdict: Sequence[str] = ()


def one_row(of: RowType, row: Any) -> TypedRows:
    """Return a single row."""
    return TypedRows(of, [row], is_one=True)


def by_directory(rows: TypedRows) -> list[str | TypedRows] | None:
    """Return a table for each data directory, below its path; None where the rows, with a `path`, are of one."""
    found = groupby(rows.rows, lambda row: parent(row.path))
    tables = [("", f"{root}:", rows._replace(rows=list(those))) for root, those in found]
    return None if len(tables) < 2 else [part for table in tables for part in table][1:]


def show(answer: VerbAnswer, form: str) -> None:
    """Print an answer in one of FORMATS: what is said on standard output, and of CSV the verdict."""
    if form == "csv":
        of, rows, _ = answer.rows[-1]
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([field.name for field in of.fields])
        writer.writerows(map(_csv_cell, row.values()) for row in of.plain(rows))
        sys.stderr.writelines(f"{visible(line)}\n" for line in answer.verdict)
    elif form == "jsonl":
        for of, rows, _ in answer.rows:
            sys.stdout.writelines(f"{json.dumps({'type': of.name} | row)}\n" for row in of.plain(rows))
    else:
        for part in answer.rows if answer.lines is None else answer.lines:
            if isinstance(part, str):
                print_lines(part)
            elif isinstance(part, Cells):
                print_table(*part)
            else:
                _print_rows(*part)


def _print_rows(of: RowType, rows: Sequence[Any], is_one: bool) -> None:
    """Print a table of the fields with a heading; of a single row each member that is not None."""
    if is_one:
        (row,) = of.plain(rows)
        for name, value in row.items():
            if isinstance(value, list):
                print_lines(f"{name}: {len(value)}", *(f"  {_members(one, ' ')}" for one in value))
            elif value is not None:
                print_lines(f"{name}: {_members(value, ', ')}")
        return
    shown = [field for field in of.fields if field.heading is not None]
    cells = [[row[one.name] if one.cell is None else one.cell(row) for one in shown] for row in of.plain(rows)]
    minor = [field.heading for field in shown if field.is_minor]
    print_table([str(field.heading) for field in shown], cells, minor)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return visible(value) if isinstance(value, str) else value


def _members(value: Any, separator: str) -> str:
    return separator.join(f"{name}: {one}" for name, one in value.items()) if isinstance(value, dict) else str(value)
