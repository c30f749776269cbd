"""Another process cuts the files that a command reads, as a broker does that recovers: one line, and an exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.encoder import Batch, Rec

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


@pytest.mark.parametrize("words", [["verify"], ["dump", "--format", "json", "--files"]], ids=lambda words: words[0])
def test_a_command_ends_with_a_word_when_its_file_is_cut(words: list[str], tmp_path: Path) -> None:
    log = tmp_path / "t-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(b"".join(Batch(offset, [Rec(value=bytes(1000))]).to_bytes() for offset in range(100)))
    (tmp_path / ".kafka_cleanshutdown").touch()  # the logs of a running broker are not mapped by an audit
    path = log if words[0] == "dump" else log.parent
    done = subprocess.run(
        [sys.executable, "-c", CUT_ONCE_MAPPED, *words, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert done.stderr.startswith("logstore: another process cut a file while it was read;")
