"""Commands that get a signal at a moment of their work, each in a process of its own.

    with SignalledCommands() as commands:
        whole = commands.run(["recover", "data/orders-0"], directory)  # without a signal; `changes` tells what it did
        commands.run(["recover", "data/orders-0"], directory, SIGINT, change=7)

A process that has imported everything forks for each of them. Its seam waits for no disk; its clock stands still, and
its ids are those of the line that asks for one, so that two runs write the same.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from logstore.disk.seam import SEAM
from logstore.layout import kafka_uuid
from tests.support.golden import AFTER_GOLDEN_MS
from tests.support.seams import UnsyncedSeam

CHANGES = (
    *("create", "open", "open_at", "write", "truncate", "sync", "rename", "set_modified_ms", "unlink"),
    *("make_directory", "remove_directory", "sync_directory"),
)
IMPORTED = (
    *("logstore.native.library", "logstore.codec.gzip", "logstore.codec.zstd", "logstore.audit.directory_audit"),
    *("logstore_tools.salvage.salvage", "logstore_tools.salvage.sample", "logstore_tools.takeover.adoption"),
    *("logstore_tools.takeover.inspection", "logstore.store.opening.start", "logstore.client.store"),
    *("logstore_tools.report.page", "numpy.ma"),
)
CHANGING_EVENTS = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.utime", "os.link", "os.symlink")
ROOT = str(Path(__file__).parents[2])
WORK = f"import sys; sys.path.insert(0, {ROOT!r}); from tests.support.signalled_commands import work; work()"


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        changes: the calls of the seam that it came to, which open files to write, change or sync them.
        others: what it opened to write or changed without the seam.
    """

    code: int
    stdout: str
    stderr: str
    changes: list[str]
    others: list[str]


class SignalledCommands:
    """The process that forks for each command."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(
        self,
        words: list[str],
        directory: Path,
        number: int | None = None,
        *,
        change: int | None = None,
        opened: int | None = None,
    ) -> Ended:
        """Run a command in `directory`; its output is in files beside that.

        Args:
            number: the signal, sent at one of the moments that the others choose.
            change: an even number 2n: before change n, a call of the seam; 2n + 1: when that was made.
            opened: when it opens so manieth file below the directory, the first being 1.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"words": words, "directory": str(directory), "number": number}
        asked |= {"change": change, "opened": opened}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        stdout, stderr, noted = ((directory.parent / name).read_text() for name in ("stdout", "stderr", "noted"))
        return Ended(code, stdout, stderr, *json.loads(noted))


# -- in the process -------------------------------------------------------------------------------------------------


def work() -> None:
    """Answer each line with the exit code of the command that it asks for."""
    commands = importlib.import_module("logstore_tools.commands")
    for name in commands.COMMANDS:
        commands.logstore.get_command(None, name)
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()  # else the collection at the end of each child copies what it shares: 100 ms of 130
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    for line in sys.stdin:
        if os.fork() == 0:
            _run(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)


def _run(directory: str, words: list[str], **moment: Any) -> None:
    """Run the command, in the child; does not return."""
    os.chdir(directory)
    sys.argv = ["logstore", *words]
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"../{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    time.time_ns = lambda: AFTER_GOLDEN_MS * 1_000_000
    vars(kafka_uuid)["urandom"] = lambda size: bytes(size - 2) + sys._getframe(2).f_lineno.to_bytes(2)
    os.urandom = bytes
    noted = _Signaller(directory, **moment)
    noted.watch()
    try:
        importlib.import_module("logstore_tools.main").main()
    finally:
        noted.number, noted.is_inside.value = None, True
        Path(f"{directory}/../noted").write_text(json.dumps([noted.changes, noted.others]))


class _Signaller:
    """Counts what the command does, and sends the signal when it comes to the moment."""

    def __init__(self, directory: str, number: int | None, change: int | None, opened: int | None) -> None:
        self.directory, self.number = directory, number
        self.change, self.opened = change, opened
        self.changes: list[str] = []
        self.others: list[str] = []
        self.opened_count = 0
        self.is_inside = threading.local()  # a call of the seam

    def watch(self) -> None:
        seam = type("CountedSeam", (UnsyncedSeam,), {name: self._counted(name) for name in CHANGES})
        SEAM.__class__ = seam
        sys.addaudithook(self._note)

    def _counted(self, name: str) -> Callable[..., Any]:
        real = getattr(UnsyncedSeam, name)

        @functools.wraps(real)
        def call(seam: UnsyncedSeam, *arguments: Any) -> Any:
            if getattr(self.is_inside, "value", False):
                return real(seam, *arguments)
            number = len(self.changes)
            names = [os.path.basename(one) for one in arguments if isinstance(one, str)]
            self.changes.append(" ".join([name, *names]))
            self._send_if(self.change == 2 * number)
            self.is_inside.value = True
            try:
                answer = real(seam, *arguments)
            finally:
                self.is_inside.value = False
            self._send_if(self.change == 2 * number + 1)
            return answer

        return call

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGING_EVENTS and not getattr(self.is_inside, "value", False):
            self.others.append(f"{event} {arguments[0]}")
        if event != "open" or not isinstance(arguments[0], str):
            return
        if os.path.abspath(arguments[0]).startswith(self.directory):
            is_written = isinstance(arguments[2], int) and bool(arguments[2] & os.O_ACCMODE)
            if is_written and not getattr(self.is_inside, "value", False):
                self.others.append(f"open {os.path.basename(arguments[0])}")
            self.opened_count += 1
            self._send_if(self.opened == self.opened_count)

    def _send_if(self, is_moment: bool) -> None:
        """Send the signal to this process, whose main thread gets it, as Ctrl-C would."""
        if is_moment and self.number is not None:
            number, self.number = self.number, None
            os.kill(os.getpid(), number)
