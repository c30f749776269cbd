"""Each row is declared once: Arrow, Spark, JSON and CSV have its members with the same names, types and nulls."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from typing import Any

import pytest

from logstore import rows
from logstore.rows.dumped import DUMPED
from logstore.rows.schema import Kind, RowField, fields_of, json_name
from logstore_tools.commands import logstore
from logstore_tools.rows import RowType
from logstore_tools.verbs import Verb

pa = pytest.importorskip("pyarrow")

from logstore.rows.arrow import schema_of  # noqa: E402

ROW_TYPES = [
    found
    for module in pkgutil.iter_modules(rows.__path__)
    for found in vars(importlib.import_module(f"{rows.__name__}.{module.name}")).values()
    if isinstance(found, type) and found.__module__ == f"{rows.__name__}.{module.name}" and hasattr(found, "_fields")
    if found.__name__.startswith("Dumped") or found.__name__.endswith("Row")
]
# Two things of one name, which no reader has side by side: the widest number, and the name of a header.
OTHERWISE = {"size": {Kind.INT32}, "recordCount": {Kind.INT32}, "key": {Kind.STRING}}


def printed(group: Any = logstore) -> list[RowType]:
    commands = [group.get_command(None, name) for name in group.list_commands(None)]
    found = [of for command in commands if isinstance(command, Verb) for of in command.prints]
    return found + [of for command in commands if hasattr(command, "list_commands") for of in printed(command)]


@pytest.mark.parametrize("row_type", ROW_TYPES, ids=lambda row_type: row_type.__name__)
def test_arrow_spark_and_json_have_the_same_members(row_type: type) -> None:
    declared = fields_of(row_type)
    schema = schema_of(row_type)
    assert [(column.name, column.nullable) for column in schema] == [
        (field.name, field.is_nullable) for field in declared
    ]
    members = RowType.of(row_type, "row", {}).fields
    assert [(member.name, member.type) for member in members] == [
        (json_name(field.name), field.kind.json_type + "?" * field.is_nullable) for field in declared
    ]
    if {field.kind for field in declared} & {Kind.OBJECT, Kind.MAP}:
        return  # no table of Spark has such a row
    schemas = pytest.importorskip("spark_dumps.schemas")
    columns = schemas.columns_of(row_type)
    assert list(columns) == schema.names
    for name, kind in columns.items():
        spark, arrow = schemas.arrow_type(kind), schema.field(name).type
        assert without_details(spark) == without_details(arrow), name


def without_details(kind: Any) -> str:
    """An Arrow type, without the unit of times, which is Spark's own, and the nulls in lists, which Spark allows."""
    return str(kind).replace("[us", "[ms").replace(" not null", "").replace("element:", "item:")


def test_a_name_means_the_same_in_every_row() -> None:
    """As in the objects of a dump, which has no types of its own for what stands in the rows."""
    kinds: defaultdict[str, dict[Kind, str]] = defaultdict(dict)
    for row_type in ROW_TYPES:
        for field in fields_of(row_type):
            if field.kind not in OTHERWISE.get(json_name(field.name), ()):
                kinds[json_name(field.name)].setdefault(field.kind, row_type.__name__)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}
    for of in [*printed(), *(RowType.of(row_type, name, {}) for name, row_type in DUMPED.items())]:
        for member in of.fields:
            for kind in kinds.get(member.name, ()):
                assert member.type.rstrip("?") == kind.json_type, (of.name, member.name)


def test_the_group_of_an_offset_has_kafkas_name_everywhere() -> None:
    """`group.id`, as Spark's column is called."""
    named: list[RowField] = [field for row in ROW_TYPES for field in fields_of(row) if "group" in field.name]
    assert {field.name for field in named} == {"group_id", "group_offset_count"}
    assert {member.name for of in printed() for member in of.fields if "roup" in member.name} == {
        "groupId",
        "groupOffsetCount",
    }
