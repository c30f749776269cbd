"""Private behaviour of PySpark that this package uses: reused worker processes. Without it, nothing is done."""

from __future__ import annotations

import gc
import os
import sys

_SET_IN_WORKERS = "SPARK_REUSE_WORKER"  # set by Spark in the processes that its Python daemon keeps for later tasks


class _Frozen:
    """The number of modules at the last `gc.freeze`."""

    module_count = 0


def freeze_imports() -> None:
    """Exclude imported modules from garbage collection in a Spark worker; call again when there may be new ones.

    A worker runs the garbage collector after each task, and the next task waits for it. The collector takes as long for
    the objects of PySpark, PyArrow and this package as a task for some tens of MiB. The first task imports more of
    them: decoders, and the compiler if the kernels are not compiled yet.
    """
    # `gc.get_freeze_count` is no help: it walks through all frozen objects
    if _SET_IN_WORKERS in os.environ and len(sys.modules) != _Frozen.module_count:
        _Frozen.module_count = len(sys.modules)
        gc.freeze()
