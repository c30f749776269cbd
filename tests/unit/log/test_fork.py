"""A log that is open without a store is its process's alone too: the child of a fork is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.logs import open_partition_log, records_of

_SCRIPT = """
import os, sys
from logstore.disk.lock import data_directory_lock
from logstore.disk.seam import SEAM
from logstore.errors import KafkaStorageError
from logstore.config.topic import parse_config
from logstore.log.load.loader import LoadSettings
from logstore.log.load.opening import PlannedLog
from logstore.log.state import LogHost

root = sys.argv[1]
with data_directory_lock(root):
    settings = LoadSettings(False, 0, 0, 0, parse_config({}))
    log, closed = (
        PlannedLog(f"{root}/{name}-0", settings, seam=SEAM).open(LogHost(lambda: 0)) for name in ("t", "closed")
    )
    closed.close()
    for number in range(3):
        log.append_records([b"before %d" % number])
    child = os.fork()
    if child == 0:
        for call in (lambda: log.append_records([b"child"]), log.roll, log.flush, lambda: log.delete_records(1)):
            try:
                call()
            except KafkaStorageError as error:
                assert "was opened by another process, of which this one was forked" in str(error), error
            else:
                raise AssertionError(call)
        log.close()
        closed.close()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    log.append_records([b"after"])
    log.close()
"""


def test_a_child_is_refused_and_its_parent_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    done = subprocess.run(
        [sys.executable, "-Wignore::DeprecationWarning", "-c", _SCRIPT, str(tmp_path)],
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    log = open_partition_log(tmp_path / "t-0", was_clean=False)
    values = [record.value for record in records_of(log)]
    log.close()
    assert values == [b"before 0", b"before 1", b"before 2", b"after"]
