"""Private behaviour of PySpark that this package uses: its worker processes. Without it, nothing is done."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any, TextIO, cast

_SET_IN_WORKERS = "SPARK_REUSE_WORKER"  # set by Spark in the processes that its Python daemon keeps for later tasks


class _Frozen:
    """The number of modules at the last `gc.freeze`."""

    module_count = 0


def prepare_worker() -> None:
    """Let a Spark worker start tasks quickly, and print nothing about pipes that Spark closes; call it in each task."""
    if _SET_IN_WORKERS in os.environ:
        _freeze_imports()
        _leave_out_broken_pipes()


def _freeze_imports() -> None:
    """Exclude imported modules from garbage collection in a Spark worker; call again when there may be new ones.

    A worker runs the garbage collector after each task, and the next task waits for it. The collector takes as long for
    the objects of PySpark, PyArrow and this package as a task for some tens of MiB. The first task imports more of
    them: decoders, and the compiler if the kernels are not compiled yet.
    """
    # `gc.get_freeze_count` is no help: it walks through all frozen objects
    if len(sys.modules) != _Frozen.module_count:
        _Frozen.module_count = len(sys.modules)
        gc.freeze()


class _WithoutBrokenPipes:
    """Standard error that leaves out what is printed while a BrokenPipeError is handled."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if isinstance(sys.exc_info()[1], BrokenPipeError) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _leave_out_broken_pipes() -> None:
    """Print nothing in a Spark worker about a pipe that Spark has closed.

    For `show(n)` and `limit(n)` Spark takes the first rows and closes the pipe. The worker then fails to flush the last
    ones, which is no error, but PySpark's daemon would print it.
    """
    if not isinstance(sys.stderr, _WithoutBrokenPipes):
        sys.stderr = cast(TextIO, _WithoutBrokenPipes(sys.stderr))
