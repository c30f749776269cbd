"""What a Python worker of Spark has imported, out of the garbage collector's way."""

from __future__ import annotations

import gc
import os
import sys

_SET_IN_WORKERS = "SPARK_REUSE_WORKER"  # by Spark, for the processes that its Python daemon keeps for the next task


class _Heap:
    """What was there when the collector was told the last time."""

    module_count = 0


def leave_to_stay() -> None:
    """Tell the garbage collector in a worker, when there are new modules, that all of them stay; elsewhere nothing.

    Spark's daemon has a worker collect all garbage after each task, and the next task waits for it. Walking through
    everything that PySpark, PyArrow and this package have imported takes as long as reading some tens of MiB. Some
    of it is imported by the first task only: decoders, and the compiler where the kernels are not compiled yet.
    """
    # asking the collector what it was told walks through all of that as well
    if _SET_IN_WORKERS in os.environ and len(sys.modules) != _Heap.module_count:
        _Heap.module_count = len(sys.modules)
        gc.freeze()
