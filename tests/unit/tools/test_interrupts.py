"""A command that is interrupted or terminated says so in a line, with the exit code that a shell gives."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore_tools import listing_commands
from logstore_tools.commands import logstore
from tests.support.encoder import Batch, Rec

MAIN = "from logstore_tools.main import main; main()"


def test_an_interrupted_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(listing_commands, "data_directory", interrupt)
    result = CliRunner().invoke(logstore, ["topics", str(tmp_path)])
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "logstore: interrupted\n")


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGTERM, 143, "logstore: terminated\n"), (signal.SIGINT, 130, "logstore: interrupted\n")],
)
def test_a_dump_that_is_ended_says_so(number: int, code: int, line: str, tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(Batch(0, [Rec()]).to_bytes())
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "dump", "--follow", str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Dumping ")
        process.send_signal(number)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (code, line)
