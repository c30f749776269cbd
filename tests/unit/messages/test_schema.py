"""The grammar of the message tables."""

from __future__ import annotations

import pytest

from logstore.messages.schema import Versions, parse_table
from logstore.topics import family, record_types

TABLE = """
# a comment
Spaceship: type 7, versions 1-4, flexible 3+
  name: string   # another
  crew: []Person?, versions 2+, default null
    name: string
    age: int16, versions 3, default -1
  ready: bool, default true
  port: Port, tag 1
  cargo: bytes, versions 2-3, tag 0, ignorable
  struct Port
    dock: uint16
    id: uuid
Empty: versions 0
"""


def test_a_message_states_its_type_versions_and_first_flexible_version() -> None:
    messages = parse_table(TABLE)
    ship, empty = messages["Spaceship"], messages["Empty"]
    assert (ship.record_type, ship.versions, ship.flexible) == (7, Versions(1, 4), 3)
    assert [ship.is_flexible(version) for version in (1, 2, 3, 4)] == [False, False, True, True]
    assert (empty.record_type, empty.versions, empty.flexible) == (None, Versions(0, 0), None)
    assert not empty.is_flexible(0)
    assert empty.root.fields == ()


def test_fields_keep_their_order_and_are_bounded_by_the_message() -> None:
    fields = parse_table(TABLE)["Spaceship"].root.fields
    assert [field.name for field in fields] == ["name", "crew", "ready", "port", "cargo"]
    assert [field.versions for field in fields] == [
        Versions(1, 4),
        Versions(2, 4),
        Versions(1, 4),
        Versions(1, 4),
        Versions(2, 3),
    ]
    assert [field.tag for field in fields] == [None, None, None, 1, 0]
    assert [field.is_ignorable for field in fields] == [False, False, False, False, True]
    assert [field.is_nullable for field in fields] == [False, True, False, False, False]
    assert [field.is_array for field in fields] == [False, True, False, False, False]


def test_a_struct_is_bounded_by_its_field_unless_it_is_shared() -> None:
    name, crew, _, port, _ = parse_table(TABLE)["Spaceship"].root.fields
    assert name.struct is None
    assert (crew.struct.name, crew.struct.versions) == ("Person", Versions(2, 4))
    assert [field.versions for field in crew.struct.fields] == [Versions(2, 4), Versions(3, 3)]
    assert (port.struct.name, port.struct.versions) == ("Port", None)


def test_defaults_are_of_the_field_s_type() -> None:
    fields = parse_table(TABLE)["Spaceship"].root.fields
    assert [field.default for field in fields] == ["", None, True, {"dock": 0, "id": "A" * 22}, b""]
    assert fields[1].struct.fields[1].default == -1


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="field: unknown type int24"):
        parse_table("Message: versions 0\n  field: int24\n")


def test_a_version_beyond_the_ends_is_treated_like_the_nearest() -> None:
    assert [Versions(1, 3).nearest(version) for version in (-1, 0, 1, 2, 3, 4, 99)] == [1, 1, 1, 2, 3, 3, 3]


def test_every_coordinator_record_type_has_a_key_and_a_value() -> None:
    expected = {
        "consumer_offsets": set(range(24)) - {9, 18},
        "transaction_state": {0},
        "share_group_state": {0, 1},
    }
    for table, types in expected.items():
        assert set(record_types(table, "Key")) == types
        assert set(record_types(table, "Value")) == types


def test_a_family_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        family("no_such_topic")
