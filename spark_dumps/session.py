"""A Spark session that knows the data source `kafka_segments`, and `logstore audit --spark` on one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from logstore.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from logstore.audit.directory_audit import AuditedDirectory
    from logstore.audit.evidence import Cluster
    from logstore.audit.partition import Partition
    from logstore.audit.verify import PartitionFacts

JAVA_VERSION_MIN = 17  # of Spark 4
SPARK_VERSION_MIN = (4, 2)  # readers that are told how much to read at most
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"  # what a worker sends takes two thirds of TCP's time
_AUDIT_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_ADVICE = (
    f"install a Java runtime of version {JAVA_VERSION_MIN} or newer (Debian and Ubuntu: apt install "
    f"openjdk-{JAVA_VERSION_MIN}-jre-headless; macOS: brew install openjdk@{JAVA_VERSION_MIN}) and put it on the PATH "
    "or into JAVA_HOME"
)


def session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the data source registered: the one that runs, else a new one.

    Workers run with this Python unless PYSPARK_PYTHON says otherwise. Those of a new session on this machine or on a
    standalone cluster talk to its JVMs over Unix sockets.

    Args:
        master: as for `SparkSession.builder.master`.
        settings: more of Spark's configuration, by its dotted keys.

    Raises:
        UsageError: PySpark is missing or too old, or Java is, with what to install.
    """
    check_pyspark()
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("logstore")
    for key, value in {**settings_of(master), **(settings or {})}.items():
        builder = builder.config(key, value)
    return register(builder.getOrCreate())


def audit_with_spark(master: str, path: str, now_ms: int, *, decodes: bool = True) -> AuditedDirectory:
    """Audit the data directory at `path`, whose paths are absolute then: tasks read partitions, each log once.

    Args:
        master: as for `SparkSession.builder.master`; its executors see the same path.
        now_ms: the time that ages of transactions are counted to.
        decodes: as of `verify_partition`.

    Raises:
        UsageError: PySpark or Java is missing.
    """
    from logstore.audit.directory_audit import audit_directory

    from .findings import facts_of
    from .tables import PARTITIONS_A_TASK

    spark = session(master, _AUDIT_SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")

    def follow(partitions: list[Partition], cluster: Cluster) -> list[PartitionFacts]:
        _ = cluster.image  # read once, for all tasks
        task_count = len(partitions) // PARTITIONS_A_TASK + 1
        tasks = spark.sparkContext.parallelize(partitions, task_count)
        facts = tasks.map(partial(facts_of, cluster=cluster, decodes=decodes)).collect()
        for one in facts:
            one.transactions.evidence.cluster = cluster
        return facts

    try:
        return audit_directory(os.path.abspath(path), now_ms, follow)
    finally:
        spark.stop()


def settings_of(master: str) -> dict[str, str]:
    """What a session sets of itself.

    The temporary directories of other clusters, YARN's above all, may have longer names than a socket can have.
    """
    return {UNIX_SOCKETS: "true"} if master.startswith(("local", "spark:")) else {}


def register(spark: SparkSession) -> SparkSession:
    """Make `spark.read.format("kafka_segments")` known to a session; returns it.

    Raises:
        UsageError: its Spark is too old.
    """
    _check_version("the session's Spark", spark.version)
    from .source import KafkaSegments

    spark.dataSource.register(KafkaSegments)
    return spark


def check_pyspark() -> None:
    """Raise UsageError where PySpark or PyArrow is missing, or PySpark is too old."""
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed", advice="pip install 'logstore-kafka[spark]'") from error
    _check_version("PySpark", pyspark.__version__)


def check_java() -> None:
    """Raise UsageError where Spark would find no Java, or one that is too old."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise UsageError(f"Spark needs Java, and there is none in {where}", advice=_ADVICE)
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if found is None or int(found[1]) < JAVA_VERSION_MIN:
        lines = answer.stderr.splitlines() or [f"exit code {answer.returncode}"]
        raise UsageError(
            f"{java} cannot run Spark", expected=f"Java {JAVA_VERSION_MIN}", found=lines[0], advice=_ADVICE
        )


def _check_version(name: str, version: str) -> None:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < SPARK_VERSION_MIN:
        least = ".".join(map(str, SPARK_VERSION_MIN))
        raise UsageError(f"{name} is too old", expected=f"{least} or newer", found=version)
