"""A standalone Spark cluster on this machine, of what PySpark ships: a master, and workers of one core each.

Drivers of tests get their settings as JSON, since some of them run where this module is not.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from logstore.errors import UsageError
from spark_dumps.session import check_java
from tests.support.broker import free_ports
from tests.support.judges import skip_without_judge

START_SECONDS = 300  # only a fault takes longer
STOP_SECONDS = 120
PACKAGE = "org.apache.spark.deploy"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"  # tests end before the C2 compiler pays
DAEMONS = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_START, "SPARK_LOCAL_IP": "127.0.0.1"}
#: of a small session, on this machine or on the cluster
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.sql.shuffle.partitions": "1",
    "spark.cores.max": "2",
    "spark.locality.wait": "0",
}


def java_or_skip() -> None:
    """Skip the test where Spark cannot run."""
    try:
        check_java()
    except UsageError as unavailable:
        skip_without_judge(f"no Spark: {unavailable}")


@contextlib.contextmanager
def cluster(
    directory: Path,
    worker_count: int,
    *,
    hidden: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """The address of the master once all workers are there; logs and work lie in `directory`.

    Args:
        hidden: a directory that is empty for the workers, who have mounts of their own.
        variables: all that the processes have in their environment, SPARK_HOME among it; by default that of this one,
            and the installed PySpark.
    """
    port, web_port = free_ports(2)
    given = dict(variables) if variables is not None else {**os.environ, "SPARK_HOME": _installed_spark()}
    address = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        log = directory / "master.log"
        ports = ["--port", str(port), "--webui-port", str(web_port)]
        master = stack.enter_context(_running([f"{PACKAGE}.master.Master", "--host", "127.0.0.1", *ports], log, given))
        _wait_for(log, "I have been elected leader", 1, master)
        for number in range(worker_count):
            place = ["--work-dir", str(directory / f"work-{number}"), "--webui-port", "0", "--host", "127.0.0.1"]
            words = [f"{PACKAGE}.worker.Worker", "--cores", "1", "--memory", "1g", *place, address]
            stack.enter_context(_running(words, directory / f"worker-{number}.log", given, hidden))
        _wait_for(log, "Registering worker", worker_count, master)
        yield address


@contextlib.contextmanager
def _running(
    words: list[str], log: Path, variables: Mapping[str, str], hidden: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    argv = [str(Path(variables["SPARK_HOME"]) / "bin" / "spark-class"), *words]
    if hidden is not None:
        script = 'mount -t tmpfs none "$0" && exec "$@"'
        argv = ["unshare", "--mount", "sh", "-c", script, str(hidden), *argv]
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env={**variables, **DAEMONS})
        try:
            yield process
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _installed_spark() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent)


def _wait_for(log: Path, text: str, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while log.read_text(errors="replace").count(text) < count:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the cluster did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)
