"""An interrupt ends each `with` block that a later call waits for, on each Python that is here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import gaps
from tests.house.sources import INSTALLED_AS, ROOT
from tests.stories.fresh_wheel import interpreters

LOOP = "def f(names):\n    with lock:\n        for name in names:\n            if name:\n                forget(name)\n"


def test_no_loop_under_a_lock_ends_with_a_condition() -> None:
    found = [
        subprocess.check_output([python, str(Path(gaps.__file__)), *INSTALLED_AS], cwd=ROOT, text=True)
        for python in interpreters()
    ]
    assert "".join(found) == ""


@pytest.mark.skipif(not (3, 12) <= sys.version_info < (3, 14), reason="this Python compiles such loops otherwise")
def test_a_loop_under_a_lock_that_ends_with_a_condition_is_caught() -> None:
    assert gaps.gaps(LOOP) == [4]
    assert gaps.gaps(LOOP.replace("lock", "file")) == []
