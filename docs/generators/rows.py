"""The page of the rows: the schema of each type, as the verbs that print it have it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from logstore.rows.batches import RecordRow
from logstore.rows.dumped import DUMPED
from logstore_tools.commands import logstore
from logstore_tools.rows import RowType
from logstore_tools.verbs import Verb

from .markdown import table

_HEAD = """\
# Rows of the commands

Written by `python -m docs.generators` from the schemas that the commands print by; do not edit.

`--format jsonl` prints a JSON object a line. It begins with `type`, the name of its schema, and has all members of that
in their order. `--format csv` has the same members as columns, with their names in the first line, lists and objects as
JSON, and escapes for what a terminal would obey; where a command prints rows of several types, those of the last one.
Times are ISO 8601 in UTC to the millisecond; one beyond the years 1 to 9999 is its number of milliseconds. `?` is a
member that may be missing: null in JSON, empty in CSV. Rows in Python,
their `to_arrow()` and Spark's tables have the same members in snake_case: `baseOffset` is `base_offset`; the table
`records` has the columns of Spark's own Kafka source. `logstore dump` has the types at the end, and other formats, see
[Dump](../how-to/dump.md#for-programs); members that its options leave out are not there.
"""


def verbs(group: click.Group = logstore, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Verb]]:
    """Yield each command that prints rows, behind the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*words, name))
        elif isinstance(command, Verb):
            yield (*words, name), command


def page() -> str:
    """Return the page."""
    printed: dict[str, tuple[RowType, list[str]]] = {}
    for words, verb in verbs():
        for of in verb.prints:
            printed.setdefault(of.name, (of, []))[1].append(f"`logstore {' '.join(words)}`")
    sections = [_section(of, calls) for _, (of, calls) in sorted(printed.items())]
    sections += [_section(RowType.of(row, name, {}), ["`logstore dump`"]) for name, row in DUMPED.items()]
    sections.append(_section(RowType.of(RecordRow, "record", {}), ["`logstore dump --records`"]))
    return _HEAD + "".join(sections)


def _section(of: RowType, calls: list[str]) -> str:
    members = [(f"`{field.name}`", field.type, field.about) for field in of.fields]
    about = f"{of.about} Printed by {', '.join(calls)}."
    return f"\n## {of.name}\n\n{about}\n\n{table(['member', 'type', 'what it is'], members)}"
