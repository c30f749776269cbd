"""How long a real broker takes to load the logs of a data directory, by its own words."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

from benchmarks.measured import Side
from benchmarks.peers.local_broker import default_broker

_LOADED = re.compile(r"Loaded (\d+) logs in (\d+)ms")


def broker_loading(directory: Path, log_count: int) -> Side:
    """Seconds for all logs of a copy of `directory`, which a store has closed and each round closes in order again.

    Only what `LogManager` measures: not the start of the JVM, not the metadata, not the network.
    """
    copy = directory.with_name("of-the-broker")

    def side() -> float:
        if not copy.exists():
            shutil.copytree(directory, copy)
        broker = default_broker(copy, is_formatted=True)
        with broker.running(signal.SIGTERM):
            pass
        found = _LOADED.search(broker.log.read_text())
        if found is None or int(found[1]) != log_count:
            raise RuntimeError(f"the broker loaded {found and found[0]}, not {log_count} logs")
        return int(found[2]) / 1000

    return side
