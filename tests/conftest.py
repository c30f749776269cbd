"""What all tests share: the golden directories, unpacked once each, how much is tried, and who runs what."""

from __future__ import annotations

import gc
import os
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

sys.path.insert(0, str(Path(__file__).parent.parent))

from logstore.audit import stable_reading
from logstore.disk import open_files
from tests.golden.archive import unpack
from tests.support.golden import Golden
from tests.support.sampling import IS_LONG, examples

# Properties are not timed: a machine may be slow, and a first call may compile. The sample tries the same cases each
# time; the whole draws others, and `--hypothesis-profile=explore` many others.
settings.register_profile("sample", deadline=None, derandomize=True, max_examples=examples(100))
settings.register_profile("whole", deadline=None, print_blob=True, max_examples=examples(100))
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("whole" if IS_LONG else "sample")

# Files of these folders share what is dear: a session of Spark, the parsed sources.
ONE_PROCESS = ("tests/spark/", "tests/house/")

# What takes longest begins first, so that no process of pytest-xdist is left with it in the end.
BEGIN = ("tests/spark/", "tests/kafka/", "tests/crash/", "tests/stories/", "tests/properties/")


# A shell starts what goes on behind it with Ctrl-C ignored, which programs of tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest."""
    place_of = {prefix: place for place, prefix in enumerate(BEGIN)}
    items.sort(key=lambda item: place_of.get("/".join(item.nodeid.split("/")[:2]) + "/", len(BEGIN)))


class ByFile(LoadFileScheduling):
    """A file of tests goes to one process of pytest-xdist, and so does a folder of `ONE_PROCESS`."""

    def _split_scope(self, nodeid: str) -> str:
        shared = [folder for folder in ONE_PROCESS if nodeid.startswith(folder)]
        return shared[0] if shared else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Schedule what runs side by side."""
    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """Let garbage collections of the tests look only at what the tests made."""
    gc.collect()
    gc.freeze()


# A budget so small that logs are closed and opened again all the time; the tests of the budget itself set their own.
if "LOGSTORE_OPEN_FILES" in os.environ:
    open_files.OPEN_FILES._count_max = int(os.environ["LOGSTORE_OPEN_FILES"])


@pytest.fixture(autouse=True)
def at_rest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits do not wait for directories that a test has only just made, but beside a real broker."""
    if request.node.get_closest_marker("kafka") is None:
        monkeypatch.setattr(stable_reading, "MOMENT_S", 0.0)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """`golden(NAME)` is the golden directory NAME, unpacked for this session; not to be written to."""
    place = tmp_path_factory.mktemp("golden").resolve()
    return cache(lambda name: unpack(name, place))
