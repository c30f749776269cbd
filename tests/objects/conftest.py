"""An S3 server for these tests, with the golden directory `demo` in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logstore.disk import objects
from tests.support.golden import Golden
from tests.support.object_store import Faults, ObjectStore, store_or_skip


@pytest.fixture(scope="session")
def server() -> Iterator[ObjectStore]:
    with store_or_skip() as store:
        yield store


@pytest.fixture
def store(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """The server, whole, and the environment by which this process reads from it."""
    server.faults = Faults()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    objects.configure({"aws_region": "eu-central-1"})
    objects.forget_all()
    yield server
    objects.configure({})


@pytest.fixture(scope="session")
def demo(server: ObjectStore, golden: Golden) -> str:
    """The URL of a copy of the golden directory `demo`."""
    return server.put_all(golden("demo"), "demo")
