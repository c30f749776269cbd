"""What all tests share: the golden directories, unpacked once each, and `tests` as an importable package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent.parent))

from logstore.audit import stable_reading
from tests.golden.archive import unpack

# Properties are not timed: a machine may be slow, and a first call may compile. They try the same cases each time,
# so that a commit does not pass today and fail tomorrow; `--hypothesis-profile=explore` tries others.
settings.register_profile("logstore", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("logstore")


@pytest.fixture(autouse=True)
def at_rest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits do not wait for directories that a test has only just made, but beside a real broker."""
    if request.node.get_closest_marker("kafka") is None:
        monkeypatch.setattr(stable_reading, "MOMENT_S", 0.0)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`golden(NAME)` is the golden directory NAME, unpacked for this session; not to be written to."""
    place = tmp_path_factory.mktemp("golden").resolve()
    return cache(lambda name: unpack(name, place))
