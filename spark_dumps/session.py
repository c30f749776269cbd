"""A Spark session with the data source `kafka_segments`, and the audit that runs on it (`logstore audit --spark`)."""

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

JAVA_VERSION_MIN = 17  # of Spark 4
SPARK_VERSION_MIN = (4, 2)  # the first with limits for Python stream readers (`ReadLimit`)
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"  # takes two thirds of TCP's time
_AUDIT_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_ADVICE = (
    f"install a Java runtime of version {JAVA_VERSION_MIN} or newer (Debian and Ubuntu: apt install "
    f"openjdk-{JAVA_VERSION_MIN}-jre-headless; macOS: brew install openjdk@{JAVA_VERSION_MIN}) and put it on the PATH "
    "or into JAVA_HOME"
)


def session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running Spark session, or a new one, with the data source registered.

    Workers run this Python unless PYSPARK_PYTHON is set. In a new session on this machine or on a standalone cluster
    they talk to their JVM over Unix sockets.

    Args:
        master: as for `SparkSession.builder.master`.
        settings: more of Spark's configuration, by its dotted keys.

    Raises:
        UsageError: PySpark or Java is missing or too old; the advice says what to install.
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
    """Audit the data directory at `path` with tasks that read partitions, each log once; paths in it are absolute.

    It runs in the session that is there, and leaves it running; else in a session of its own.

    Args:
        master: as for `SparkSession.builder.master`, for a new session; executors see the same path.
        now_ms: reference time for the ages of transactions, ms since 1970.
        decodes: decode the records, see `verify_partition`.

    Raises:
        UsageError: PySpark or Java is missing; the path is no data directory.
        DataDirectoryError: an executor does not see what is there.
    """
    from logstore.audit.directory_audit import audit_directory
    from logstore.disk.recognition import require_data_directory

    from .spread import follow_on_executors

    path = os.path.abspath(path)
    require_data_directory(path)
    is_ours = not _is_session_there()
    spark = session(master, _AUDIT_SETTINGS if is_ours else None)
    try:
        if is_ours:
            spark.sparkContext.setLogLevel("ERROR")
        return audit_directory(path, now_ms, partial(follow_on_executors, spark.sparkContext, decodes=decodes))
    finally:
        if is_ours:
            spark.stop()


def _is_session_there() -> bool:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        SparkSession.active()
    except PySparkRuntimeError:
        return False
    return True


def settings_of(master: str) -> dict[str, str]:
    """Return the settings of a new session.

    On other clusters, such as YARN, the path of a temporary directory may be too long for a Unix socket.
    """
    return {UNIX_SOCKETS: "true"} if master.startswith(("local", "spark:")) else {}


def register(spark: SparkSession) -> SparkSession:
    """Register `kafka_segments` in a session, and return the session.

    Raises:
        UsageError: its Spark is too old.
    """
    _check_version("the session's Spark", spark.version)
    from .source import KafkaSegments

    spark.dataSource.register(KafkaSegments)
    return spark


def check_pyspark() -> None:
    """Raise UsageError if PySpark or PyArrow is missing, or PySpark is too old."""
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed", advice="pip install 'logstore-kafka[spark]'") from error
    _check_version("PySpark", pyspark.__version__)


def check_java() -> None:
    """Raise UsageError if Spark finds no Java, or one that is too old."""
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
