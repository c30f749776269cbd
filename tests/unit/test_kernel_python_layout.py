"""Lists and bytes are read without calls only where they are as they are taken to be."""

from __future__ import annotations

import sys

import pytest

from logstore.kernels import python_layout

is_known = python_layout.is_known.__wrapped__
PLACES = ("TYPE_PLACE", "SIZE_PLACE", "ITEMS_PLACE", "ROOM_PLACE", "DATA_PLACE")


@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.version_info >= (3, 14), reason="known up to 3.13")
def test_this_python_is_known() -> None:
    assert is_known() == getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("other", [0, 8, 16, 24, 32, 40])
def test_whatever_is_elsewhere_is_noticed(name: str, other: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if other != getattr(python_layout, name):
        monkeypatch.setattr(python_layout, name, other)
        assert not is_known()
    else:
        assert is_known()


def test_another_implementation_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.implementation, "name", "other")
    assert not is_known()
