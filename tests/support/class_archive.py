"""JVMs of tests start from an archive of Kafka's classes (AppCDS), which a broker leaves that starts and stops once.

Most of the seconds of a short JVM go into reading and verifying classes from some hundred jars: with the archive a
broker starts in half of the processor time, and one question to the dump tool takes two thirds of it. Benchmarks do
without, as users of Kafka's tools do. Where the archive cannot be made, JVMs start as before.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.support.broker import Broker
from tests.support.oracle import Oracle, filling


def with_class_archive(oracle: Oracle) -> Oracle:
    """The same oracle, whose JVMs start from the archive of its release; the first call makes it, in some 15 s.

    An empty archive says that making it failed once: it is not tried again for this Java and these jars.
    """
    archive = oracle.cache / f"classes-{_key(oracle)}.jsa"
    with filling(oracle.cache):
        if not archive.exists():
            _make(oracle, archive)
    if archive.stat().st_size:
        # quiet, since a JVM that cannot use the archive after all says so on the stdout that tests compare
        oracle.jvm_options = (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable")
    return oracle


def _key(oracle: Oracle) -> str:
    """A JVM uses an archive only with the same Java and with jars of the same sizes and times."""
    java = subprocess.run([oracle.java, "-version"], capture_output=True, check=True).stderr
    jars = [(path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in oracle.classpath.split(os.pathsep)]
    return hashlib.sha256(java + repr(jars).encode()).hexdigest()[:16]


def _make(oracle: Oracle, archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=oracle.cache) as place:
        fresh = Path(place, archive.name)
        options = [f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:disable"]
        try:
            with Broker(oracle, Path(place, "data"), {}, [], jvm_options=options).running(signal.SIGTERM):
                pass
        except (RuntimeError, subprocess.SubprocessError):
            fresh.write_bytes(b"")
        fresh.touch()  # a JVM may have ended without it
        fresh.replace(archive)
