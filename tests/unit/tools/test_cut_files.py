"""Another process cuts the files that a command reads, as a broker does that recovers: one line, and an exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.disk.mapped import MappedFile
from tests.support.encoder import Batch, Rec
from tests.support.golden import Golden

CUT_ONCE_MAPPED = """
import os, sys
from logstore.disk import mapped
from logstore_tools.main import main

opened = mapped.MappedFile.__init__

def cut(self, path):
    opened(self, path)
    os.truncate(path, 0)

mapped.MappedFile.__init__ = cut
main()
"""


def test_a_command_ends_with_a_word_when_its_file_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "t-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(b"".join(Batch(offset, [Rec(value=bytes(1000))]).to_bytes() for offset in range(100)))
    words = ["dump", "--format", "json", "--files", str(log)]
    done = subprocess.run([sys.executable, "-c", CUT_ONCE_MAPPED, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert done.stderr.startswith("logstore: another process cut a file while it was read;")


@pytest.mark.parametrize("ask", [logstore.audit, logstore.verify, logstore.groups, logstore.explain, logstore.segments])
def test_the_library_maps_no_file_of_others(
    ask: Callable[[Path], logstore.Rows[Any]], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a mapped file that is cut ends the program")

    monkeypatch.setattr(MappedFile, "__init__", refuse)
    assert all(ask(golden(name)).problems == () for name in ("demo", "transactions"))
