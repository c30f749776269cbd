"""The ways to bring the package to a Spark cluster, as docs/how-to/spark-cluster.md gives them, on real processes.

Each way is a function from a `Ground` to the answers of `all_tables.py`. A driver runs in a directory of its own, with
the variables that its way names and no others, so neither it nor the workers know of this checkout.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.spark.all_tables import TABLES
from tests.spark.standalone import SETTINGS
from tests.support.broker import free_ports

PROGRAM = Path(__file__).with_name("all_tables.py")
RUN_SECONDS = 900  # only a fault takes longer
SERVER_SECONDS = 300
CLIENT_NEEDS = ["grpcio", "grpcio-status", "googleapis-common-protos", "pandas", "pyarrow", "zstandard"]
DEPENDENCIES = ["numpy", "xxhash", "click", "cramjam", "isal", "zstandard", "pyarrow"]
CONF = [word for item in SETTINGS.items() for word in ("--conf", "=".join(item))]

Answers = dict[str, Any]


class Ground(NamedTuple):
    """What a way is given.

    Attributes:
        spark: the folder of a PySpark, as installed.
        home: its SPARK_HOME.
        master: address of a cluster of the same version.
        environments: the folder that `make_environments` has filled.
        wheel: the wheel of the package.
        data: a data directory.
        place: an empty directory, the driver's current one.
    """

    spark: Path
    home: Path
    master: str
    environments: Path
    wheel: Path
    data: Path
    place: Path

    def python(self, name: str) -> str:
        """The interpreter of an environment."""
        return str(self.environments / name / "bin" / "python")


def make_environments(folder: Path, wheel: Path) -> None:
    """Make the environments: `workers` and `driver` with the package, `dependencies` and `client` without it."""
    for name, packages in {
        "workers": [f"{wheel}[arrow]"],
        "driver": [f"{wheel}[arrow]"],
        "dependencies": DEPENDENCIES,
        "client": CLIENT_NEEDS,
    }.items():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        pip = [str(folder / name / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)


def quick_spark(spark: Path, folder: Path) -> Path:
    """A SPARK_HOME in an empty folder, whose Python modules are not compiled anew in each process.

    Spark reads PySpark out of a zip without compiled modules, twice the processor time of a Python worker's start, and
    gives a worker on the driver 10 seconds to connect: too few on a machine that does much else. The same modules are
    taken from the folder of PySpark here.
    """
    for path in spark.iterdir():
        if path.name != "python":
            (folder / path.name).symlink_to(path)
    library = folder / "python" / "lib"
    (library / "pyspark.zip").mkdir(parents=True)
    (library / "pyspark.zip" / "pyspark").symlink_to(spark)
    for path in (spark / "python" / "lib").glob("py4j-*.zip"):
        (library / path.name).symlink_to(path)
    return folder


def plain_environment(home: Path, spark: Path | None) -> dict[str, str]:
    """The variables of a process that knows nothing of this checkout, nor of its environment."""
    found = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1", "LC_ALL": "C.UTF-8"}
    java = shutil.which("java")
    if "JAVA_HOME" in os.environ:
        found["JAVA_HOME"] = os.environ["JAVA_HOME"]
    elif java is not None:
        found["PATH"] = f"{Path(java).parent}:{found['PATH']}"
    return found if spark is None else {**found, "SPARK_HOME": str(spark)}


def printed(ground: Ground, words: list[str], variables: dict[str, str]) -> str:
    """Run a driver, and return what it prints.

    Raises:
        RuntimeError: it failed; the message has the end of what it said.
    """
    done = subprocess.run(
        words, cwd=ground.place, env=variables, capture_output=True, text=True, check=False, timeout=RUN_SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-6000:]}")
    return done.stdout


def answered(ground: Ground, words: list[str], variables: dict[str, str]) -> Answers:
    found: Answers = json.loads(printed(ground, words, variables).splitlines()[-1])
    return found


def answers_here(data: Path, place: Path, pyspark: Path | None = None) -> Answers:
    """The answers of `local[2]` in this environment, or with the PySpark below a folder."""
    environment = dict(os.environ)
    if pyspark is not None:
        environment["PYTHONPATH"] = f"{pyspark}{os.pathsep}{os.getcwd()}"
    argv = [sys.executable, str(PROGRAM), "local[2]", str(data), str(place), json.dumps(SETTINGS), "session"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, timeout=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Answers = json.loads(done.stdout.splitlines()[-1])
    return found


def program(ground: Ground, master: str, *register: str) -> list[str]:
    """The words of the program, which is copied to where nothing else lies."""
    path = shutil.copy(PROGRAM, ground.place / "job.py")
    settings = SETTINGS if master == ground.master else {}  # others have those of `spark-submit`, or of their server
    return [str(path), master, str(ground.data), str(ground.place), json.dumps(settings), *register]


def submit(ground: Ground, options: list[str], *register: str, **variables: str) -> Answers:
    words = [str(ground.home / "bin" / "spark-submit"), "--master", ground.master, *CONF, *options]
    environment = {**plain_environment(ground.place, ground.home), **variables}
    return answered(ground, [*words, *program(ground, "-", *register)], environment)


def wheel_by_submit(ground: Ground) -> Answers:
    workers = ground.python("workers")
    return submit(ground, [], PYSPARK_PYTHON=workers, PYSPARK_DRIVER_PYTHON=workers)


def wheel_by_session(ground: Ground) -> Answers:
    """The driver is a program with an environment of its own, to which the user told the workers' Python."""
    variables = plain_environment(ground.place, None)
    variables |= {"PYTHONPATH": pyspark_path(ground.spark), "PYSPARK_PYTHON": ground.python("workers")}
    return answered(ground, [ground.python("driver"), *program(ground, ground.master, "session")], variables)


def wheel_by_setting(ground: Ground) -> Answers:
    """`spark.pyspark.python` alone: Spark's look-up does not see it, a session of ours needs none."""
    options = ["--conf", f"spark.pyspark.python={ground.python('workers')}"]
    options += ["--conf", f"spark.pyspark.driver.python={ground.python('driver')}"]
    return submit(ground, options, "session")


def archives(ground: Ground) -> Answers:
    archive = ground.place / "environment.tar.gz"
    subprocess.run(["tar", "-czf", str(archive), "-C", str(ground.environments / "workers"), "."], check=True)
    (ground.place / "environment").mkdir()
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(ground.place / "environment")], check=True)
    try:
        return submit(
            ground,
            ["--archives", f"{archive.name}#environment"],
            PYSPARK_PYTHON="./environment/bin/python",
            PYSPARK_DRIVER_PYTHON=ground.python("driver"),
        )
    finally:
        shutil.rmtree(ground.place / "environment")
        archive.unlink()


def py_files(ground: Ground) -> Answers:
    archive = shutil.copy(ground.wheel, ground.place / "logstore.zip")
    dependencies = ground.python("dependencies")
    variables = {"PYSPARK_PYTHON": dependencies, "PYSPARK_DRIVER_PYTHON": dependencies, "PYTHONPATH": str(archive)}
    return submit(ground, ["--py-files", "logstore.zip"], **variables)


def connect(ground: Ground) -> Answers:
    """The client has neither the package nor a Java."""
    with connect_server(ground) as address:
        return answered(ground, [ground.python("client"), *program(ground, address)], client_variables(ground))


def connect_by_session(ground: Ground) -> Answers:
    """The client has the package, and no Java."""
    variables = client_variables(ground)
    needs = next((ground.environments / "client" / "lib").glob("python*")) / "site-packages"
    variables["PYTHONPATH"] += f":{needs}"
    with connect_server(ground) as address:
        return answered(ground, [ground.python("driver"), *program(ground, address, "session")], variables)


def client_variables(ground: Ground) -> dict[str, str]:
    return {"HOME": str(ground.place), "PATH": "/nowhere", "PYTHONPATH": pyspark_path(ground.spark)}


def pyspark_path(spark: Path) -> str:
    """What `pip install pyspark` would bring to an environment."""
    return ":".join(map(str, [spark.parent, *sorted((spark / "python" / "lib").glob("py4j-*.zip"))]))


@contextlib.contextmanager
def connect_server(ground: Ground) -> Iterator[str]:
    """The address of a server whose Python is that of the workers."""
    (port,) = free_ports(1)
    words = [str(ground.home / "bin" / "spark-submit"), "--master", ground.master, *CONF]
    words += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    variables = {**plain_environment(ground.place, ground.home), "PYSPARK_PYTHON": ground.python("workers")}
    log = ground.place / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(words, cwd=ground.place, env=variables, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + SERVER_SECONDS
        while "Spark Connect server started at" not in log.read_text(errors="replace"):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(SERVER_SECONDS)


def sql(ground: Ground) -> Answers:
    """The number of rows of each table, by views of `spark-sql`."""
    lines = []
    for table in TABLES:
        options = f"path '{ground.data}', table '{table}', now '1900000000000'"
        lines.append(f"CREATE TEMPORARY VIEW {table}_rows USING kafka_segments OPTIONS ({options});")
        lines.append(f"SELECT '{table}', count(*) FROM {table}_rows;")
    (ground.place / "views.sql").write_text("\n".join(lines))
    words = [str(ground.home / "bin" / "spark-sql"), "--master", ground.master, *CONF, "-f", "views.sql"]
    variables = {**plain_environment(ground.place, ground.home), "PYSPARK_PYTHON": ground.python("workers")}
    rows = [line.split("\t") for line in printed(ground, words, variables).splitlines()]
    return {row[0]: [int(row[1])] for row in rows if len(row) == 2 and row[0] in TABLES}


WAYS: dict[str, Callable[[Ground], Answers]] = {
    "wheel, `spark-submit`": wheel_by_submit,
    "wheel, `spark_dumps.session()`": wheel_by_session,
    "wheel, setting `spark.pyspark.python`": wheel_by_setting,
    "`--archives`": archives,
    "`--py-files`": py_files,
    "Spark Connect, a client without the package": connect,
    "Spark Connect, a client with it": connect_by_session,
    "`spark-sql`": sql,
}
