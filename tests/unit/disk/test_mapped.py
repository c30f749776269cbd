"""Mapped files: no memory for one, and another process that cuts one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.disk import mapped
from logstore.disk.mapped import MappedFile, copied_file
from logstore.errors import DataDirectoryError

WITHOUT_MEMORY = """
import resource, sys
from logstore.disk.mapped import MappedFile

with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
try:
    MappedFile(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error.java_class, error)
"""


def test_a_lack_of_memory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.touch()
    os.truncate(path, 1 << 30)
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("DataDirectoryError java.io.IOException Map failed: Cannot allocate memory")
    assert str(path) in done.stdout
    assert "vm.max_map_count" in done.stdout


def test_a_file_that_is_cut_while_it_is_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"12345")
    monkeypatch.setattr(mapped, "_checked_size", lambda status, path: status.st_size + 4)
    with pytest.raises(DataDirectoryError, match=r"became shorter .*expected 9 bytes, found 5"):
        MappedFile(str(path))


def test_a_copied_file_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"12345")
    (tmp_path / "1.log").symlink_to(path)
    copied = copied_file(str(tmp_path / "1.log"))
    os.truncate(path, 0)
    assert (copied.data.tobytes(), copied.size) == (b"12345", 5)
    with pytest.raises(DataDirectoryError, match="Is a directory"):
        copied_file(str(tmp_path))
