"""What a Python worker of Spark has imported, out of the garbage collector's way."""

from __future__ import annotations

import gc
import os

_SET_IN_WORKERS = "SPARK_REUSE_WORKER"  # by Spark, for the processes that its Python daemon keeps for the next task


def leave_to_stay() -> None:
    """Tell the garbage collector, once in a worker, that what is there now stays; elsewhere nothing.

    Spark's daemon has a worker collect all garbage after each task, and the next task waits for it. Walking through
    everything that PySpark, PyArrow and this package have imported takes as long as reading some tens of MiB.
    """
    if _SET_IN_WORKERS in os.environ and not gc.get_freeze_count():
        gc.freeze()
