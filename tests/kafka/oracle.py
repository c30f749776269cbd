"""The real Apache Kafka 4.3.1 as judge: its jars from Maven Central, run with the Java that is installed.

The classpath is resolved once and kept in `$LOGSTORE_ORACLE_CACHE` (default: `logstore-oracle` in the
temporary directory), together with the compiled classes of `java/`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KAFKA_VERSION = "4.3.1"
OLDEST_JAVA = 17
BASE = "@BASE@"
SOURCES = (HERE / "java", HERE.parents[1] / "benchmarks" / "peers" / "java")  # our own classes beside Kafka's


class OracleUnavailableError(RuntimeError):
    """Java, Maven or the jars are not there; the message says which."""


@dataclass(frozen=True)
class Dump:
    """What `kafka-dump-log` answered; the absolute working directory is written `@BASE@`."""

    argv: list[str]
    rc: int
    stdout: str
    stderr: str


def oracle_cache() -> Path:
    return Path(os.environ.get("LOGSTORE_ORACLE_CACHE") or Path(tempfile.gettempdir(), "logstore-oracle"))


@contextmanager
def filling(cache: Path) -> Iterator[None]:
    """A `with` block that puts something into the cache, of one process at a time: runs of tests may begin together."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Oracle:
    """Runs classes of the real Kafka, and the ones of `SOURCES`, in a JVM of their own.

    Raises:
        OracleUnavailableError: java (17 or newer), javac or mvn is missing, Maven cannot resolve the jars,
            or `SOURCES` do not compile.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self.cache = oracle_cache() if cache is None else cache
        self.java = _program("java")
        _require_java(self.java)
        with filling(self.cache):
            self.classpath = _classpath(self.cache)
            self.classes = _compiled(self.cache, self.classpath)
            self._options = _option_file(self.cache, f"{self.classes}{os.pathsep}{self.classpath}")

    def command(self, main_class: str, *args: str, options: Sequence[str] = ()) -> list[str]:
        """The command line that runs `main_class` with the real Kafka on its classpath."""
        return [
            self.java,
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-Dfile.encoding=UTF-8"),
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.yaml'}",
            *options,
            f"@{self._options}",
            main_class,
            *args,
        ]

    def run(self, main_class: str, *args: str, cwd: Path, text: str = "") -> str:
        """stdout of `main_class` run in `cwd` with `text` as its stdin; CalledProcessError when it fails."""
        return subprocess.run(
            self.command(main_class, *args),
            cwd=cwd,
            input=text,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        ).stdout

    def dump(self, cwd: Path, argvs: Sequence[Sequence[str]]) -> list[Dump]:
        """What `kafka-dump-log` prints for each of `argvs` in the directory `cwd`, all in one JVM."""
        cwd = cwd.resolve()
        answers = self.run("DumpBatch", cwd=cwd, text="".join(json.dumps(list(argv)) + "\n" for argv in argvs))
        dumps = [Dump(**json.loads(line)) for line in answers.split("\n") if line]
        if len(dumps) != len(argvs):
            raise RuntimeError(f"{len(argvs)} questions, {len(dumps)} answers")
        here = str(cwd)
        return [
            Dump(dump.argv, dump.rc, dump.stdout.replace(here, BASE), dump.stderr.replace(here, BASE)) for dump in dumps
        ]


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise OracleUnavailableError(f"{name} is not installed")
    return path


def _require_java(java: str) -> None:
    banner = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', banner)
    if found is None or int(found[1]) < OLDEST_JAVA:
        raise OracleUnavailableError(f"java {OLDEST_JAVA} or newer is needed, found: {banner.splitlines()[:1]}")


def _classpath(cache: Path) -> str:
    known = cache / f"classpath-{KAFKA_VERSION}.txt"
    if known.exists() and all(map(os.path.exists, known.read_text().split(os.pathsep))):
        return known.read_text()
    fresh = cache / f"classpath-{os.getpid()}.tmp"
    maven = [_program("mvn"), "-q", "-B", "-f", str(HERE / "pom.xml")]
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={fresh}"]
    done = subprocess.run(maven + goal, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OracleUnavailableError(f"Maven cannot resolve Kafka {KAFKA_VERSION}: {done.stdout.strip()[-500:]}")
    fresh.replace(known)
    return known.read_text()


def _option_file(cache: Path, classpath: str) -> Path:
    """The classpath is too long for a command line that anybody wants to read."""
    known = cache / "classpath.options"
    text = f'-cp "{classpath}"'
    if not known.exists() or known.read_text() != text:
        fresh = cache / f"classpath-{os.getpid()}.options"
        fresh.write_text(text)
        fresh.replace(known)
    return known


def _compiled(cache: Path, classpath: str) -> Path:
    sources = sorted(source for folder in SOURCES for source in folder.glob("*.java"))
    classes = cache / "classes"
    stamp = classes / ".compiled"
    newest = max(source.stat().st_mtime for source in sources)
    if stamp.exists() and stamp.stat().st_mtime >= newest and stamp.read_text() == str(sources):
        return classes
    classes.mkdir(exist_ok=True)
    options = ["-Xlint:none", "-proc:none", "-encoding", "UTF-8", "-d", str(classes), "-cp", classpath]
    done = subprocess.run(
        [_program("javac"), *options, *map(str, sources)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise OracleUnavailableError(f"our own classes do not compile:\n{done.stderr}")
    stamp.write_text(str(sources))
    return classes
