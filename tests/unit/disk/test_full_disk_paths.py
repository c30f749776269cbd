"""Errors of calls on an open file name it: a full disk is told with its path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from logstore.disk.seam import SEAM
from logstore.errors import DataDirectoryError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the path of a descriptor")


def test_a_write_that_the_disk_does_not_take_names_the_file() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(DataDirectoryError, match="No space left on device; at /dev/full"):
        SEAM.write(descriptor, b"x")
    os.close(descriptor)


def test_a_size_that_cannot_be_set_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(DataDirectoryError, match=f"at {tmp_path}/file"):
        SEAM.truncate(descriptor, 10)
    os.close(descriptor)
