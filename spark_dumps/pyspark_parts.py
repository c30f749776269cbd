"""What PySpark does not promise: how its workers live on between tasks; nothing is done where it is not so."""

from __future__ import annotations

import gc
import os
import sys

_SET_IN_WORKERS = "SPARK_REUSE_WORKER"  # by Spark, for the processes that its Python daemon keeps for the next task


class _Frozen:
    """What was imported when the collector was told the last time."""

    module_count = 0


def freeze_imports() -> None:
    """Tell the garbage collector in a worker, when there are new modules, that all of them stay; elsewhere nothing.

    Spark's daemon has a worker collect all garbage after each task, and the next task waits for it. Walking through
    everything that PySpark, PyArrow and this package have imported takes as long as reading some tens of MiB. Some
    of it is imported by the first task only: decoders, and the compiler where the kernels are not compiled yet.
    """
    # asking the collector what it was told walks through all of that as well
    if _SET_IN_WORKERS in os.environ and len(sys.modules) != _Frozen.module_count:
        _Frozen.module_count = len(sys.modules)
        gc.freeze()
