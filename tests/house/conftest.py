"""The parsed sources are forgotten behind the last test here: the heap of others stays small."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.house import sources


@pytest.fixture(scope="package", autouse=True)
def parsed() -> Iterator[None]:
    """Keep what is parsed for the tests of this folder alone."""
    yield
    sources.forget()
