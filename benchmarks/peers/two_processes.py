"""Our own decoding on one thread, by two processes with a half each: what two threads of one process might win at most.

Two virtual processors are seldom twice one. What this peer does not win either is the machine's, the rest is ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.support.logs import decode_all
from benchmarks.support.measure import Side
from benchmarks.support.page_cache import held, read_again
from logstore.columns.batch_table import scan

PROCESS_COUNT = 2
CALL_COUNT = 5  # of one ask, whose mean counts: the first one may find a processor that was idle


@contextmanager
def two_processes(path: Path, record_count: int) -> Iterator[Side]:
    """Seconds until both have decoded their half of the segment's batches, in a file of its own.

    Files and processes are made when they are first asked for; the processes run until the context ends.
    """
    halves: list[Path] = []
    with ExitStack() as files, ProcessPoolExecutor(PROCESS_COUNT, mp_context=get_context("spawn")) as pool:

        def side() -> float:
            if not halves:
                halves.extend(_halves(path))
                files.enter_context(held(halves))
            start_s = time.perf_counter()
            counts = [sum(pool.map(decode_all, halves)) for _ in range(CALL_COUNT)]
            seconds = time.perf_counter() - start_s
            for count in counts:
                if count != record_count:
                    raise RuntimeError(f"two processes decoded {count} records instead of {record_count}")
            return seconds / CALL_COUNT

        yield side


def _halves(path: Path) -> list[Path]:
    data = np.fromfile(path, np.uint8)
    positions = scan(data).position
    middle = int(positions[positions.size // 2])
    halves = []
    for number, part in enumerate((data[:middle], data[middle:])):
        (path.parent.parent / f"half{number}").mkdir(exist_ok=True)
        halves.append(path.parent.parent / f"half{number}" / path.name)
        part.tofile(halves[-1])
        read_again(halves[-1])
    return halves
