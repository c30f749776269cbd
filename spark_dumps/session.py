"""A Spark session with the data source `kafka_segments`, and the audit that runs on it (`logstore audit --spark`)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from logstore.errors import UsageError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from logstore.audit.directory_audit import AuditedDirectory

JAVA_VERSION_MIN = 17  # of Spark 4
CONNECT = "sc:"  # scheme of a Spark Connect server's address
_NAME = "logstore"  # of the application, in Spark's user interface
_IN_SUBMIT = "PYSPARK_GATEWAY_PORT"  # set by `spark-submit` for the program that it starts, whose JVM has the settings
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"  # takes two thirds of TCP's time
_AUDIT_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_LOCAL_AUDIT_SETTINGS = {  # the JVM hands facts on, and takes processors from tasks: the second compiler only costs
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"
}
_ADVICE = (
    f"install a Java runtime of version {JAVA_VERSION_MIN} or newer (Debian and Ubuntu: apt install "
    f"openjdk-{JAVA_VERSION_MIN}-jre-headless; macOS: brew install openjdk@{JAVA_VERSION_MIN}) and put it on the PATH "
    "or into JAVA_HOME"
)


def session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running Spark session, or a new one, with the data source registered.

    What the user set stands: PYSPARK_PYTHON, `spark.pyspark.python`, what `spark-submit` was given. Else workers run
    this Python. In a new session on this machine or on a standalone cluster they talk to their JVM over Unix sockets.

    Args:
        master: as for `SparkSession.builder.master`, or `sc://host` for Spark Connect, which needs no Java here; by
            default that of `spark-submit`, else `local[*]`.
        settings: more of Spark's configuration, by its dotted keys.

    Raises:
        UsageError: PySpark or Java is missing or too old; the advice says what to install.
    """
    check_pyspark()
    if master is not None and master.startswith(CONNECT):
        return register(_connected(master, settings or {}))
    settings = settings or {}
    _prepare_jvm(settings)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(_NAME)
    if master is None and _IN_SUBMIT not in os.environ:
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
        settings = {**settings_of(master), **settings}
    return register(builder.config(map=dict(settings)).getOrCreate())


def _connected(address: str, settings: Mapping[str, str]) -> SparkSession:
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        advice = "pip install 'pyspark-client', or 'pyspark[connect]'"
        raise UsageError(f"Spark Connect needs {error.name or error}", advice=advice) from error
    return cast("SparkSession", ConnectSession.builder.remote(address).config(map=dict(settings)).getOrCreate())


def audit_with_spark(master: str, path: str, now_ms: int, *, decodes: bool = True) -> AuditedDirectory:
    """Audit the data directory at `path` with tasks that read partitions, each log once; paths in it are absolute.

    It runs in the Spark context that is there, and leaves it running; else in a context of its own.

    Args:
        master: as for `SparkSession.builder.master`, for a new context; executors see the same path.
        now_ms: reference time for the ages of transactions, ms since 1970.
        decodes: decode the records, see `verify_partition`.

    Raises:
        UsageError: PySpark or Java is missing; the path is no data directory.
        DataDirectoryError: an executor does not see what is there.
    """
    from logstore.audit.directory_audit import audit_directory
    from logstore.disk.names import normal_path
    from logstore.disk.recognition import require_data_directory

    from .spread import follow_on_executors, without_collection

    if master.startswith(CONNECT):
        raise UsageError(
            "an audit collects facts of partitions from executors, which Spark Connect does not do",
            expected="a master such as local[*] or spark://host:7077",
            found=master,
            advice="read table findings there, or run the audit where the master can be reached",
        )
    path = normal_path(path)
    require_data_directory(path)
    context, is_ours = _context(master)
    try:
        with without_collection():
            return audit_directory(path, now_ms, partial(follow_on_executors, context, decodes=decodes))
    finally:
        if is_ours:
            context.stop()


def _context(master: str) -> tuple[SparkContext, bool]:
    """Return the Spark context that is there, or a new one; True for a new one.

    Without a session, which an audit does not need, it is there in half the time.
    """
    check_pyspark()
    is_local = master.startswith("local")
    settings = {**settings_of(master), **_AUDIT_SETTINGS, **(_LOCAL_AUDIT_SETTINGS if is_local else {})}
    _prepare_jvm(settings)
    from pyspark import SparkConf, SparkContext

    try:
        context = SparkContext(conf=SparkConf().setMaster(master).setAppName(_NAME).setAll([*settings.items()]))
    except ValueError:  # there is one, and Spark has no other way to ask
        return SparkContext.getOrCreate(), False
    context.setLogLevel("ERROR")
    return context, True


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
    from .versions import require_spark

    require_spark("the session's Spark", spark.version)
    from pyspark.errors import AnalysisException

    from .source import KafkaSegments

    try:
        spark.dataSource.register(KafkaSegments)
    except AnalysisException as error:
        if "already exists" not in str(error):  # Spark found it in `pyspark_kafka_segments`
            raise
    return spark


def check_pyspark() -> None:
    """Raise UsageError if PySpark or PyArrow is missing, or PySpark is too old."""
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed", advice="pip install 'logstore-kafka[spark]'") from error
    from .versions import require_spark

    require_spark("PySpark", pyspark.__version__)


def _prepare_jvm(settings: Mapping[str, str]) -> None:
    """Check that Spark can start here, and name the Python of its workers; raises UsageError."""
    _require_jvm_classes()
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))


def _require_jvm_classes() -> None:
    """Raise UsageError if PySpark is `pyspark-client`, which only speaks to a Spark Connect server."""
    from pyspark.util import is_remote_only

    if is_remote_only():
        raise UsageError(
            "pyspark-client has no Spark of its own",
            expected="a master such as sc://host:15002",
            advice="pip install pyspark for local[*] or spark://host:7077",
        )


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
