"""The real Apache Kafka of a release as judge: its jars from Maven Central, run with the Java that is installed.

`LOGSTORE_KAFKA_VERSIONS=4.3.1,4.4.0` are the releases that tests ask. Kept in `$LOGSTORE_ORACLE_CACHE` (default:
`~/.cache/logstore/oracle`), which only its owner may read or write: the classpath, under a name with a hash of
`pom.xml` and the release, and our own classes, with a hash of their sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logstore.config.kafka_version import OF_NEW_STORES, VERSIONS

HERE = Path(__file__).parents[1] / "kafka"
KNOWN = {version.release: version for version in VERSIONS}
RELEASES = tuple((os.environ.get("LOGSTORE_KAFKA_VERSIONS") or ",".join(KNOWN)).split(","))
FIRST = OF_NEW_STORES.release  # is asked where one release is enough
OLDEST_JAVA = 17
MAVEN_SECONDS = 300
BASE = "@BASE@"
#: our own classes beside Kafka's; the ones in `any` compile with every release
SOURCES = (HERE / "java", HERE.parents[1] / "benchmarks" / "peers" / "java")


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
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LOGSTORE_ORACLE_CACHE") or Path(caches, "logstore", "oracle"))


@contextmanager
def filling(cache: Path) -> Iterator[None]:
    """A `with` block that puts something into the cache, of one process at a time: runs of tests may begin together."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Oracle:
    """Runs classes of the real Kafka, and the ones of `SOURCES`, in a JVM of their own.

    For releases that are not `KNOWN` there are only Kafka's own classes, and ours in `any`.

    Raises:
        OracleUnavailableError: java (17 or newer), javac or mvn is missing, Maven cannot resolve the jars,
            or `SOURCES` do not compile.
    """

    def __init__(self, release: str = FIRST) -> None:
        self.cache = oracle_cache()
        self.java = _program("java")
        self.jvm_options: Sequence[str] = ()
        _require_java(self.java)
        with filling(self.cache):
            self.classpath = _classpath(self.cache, release)
            ours = _compiled(self.cache, self.classpath, release)
            self._options = _option_file(ours, self.classpath)

    def command(self, main_class: str, *args: str, options: Sequence[str] = ()) -> list[str]:
        """The command line that runs `main_class` with the real Kafka on its classpath."""
        return [
            self.java,
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-Dfile.encoding=UTF-8"),
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.yaml'}",
            *self.jvm_options,
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

    def lines(self, main_class: str, *args: str, cwd: Path, text: str = "") -> list[str]:
        """Run `main_class` as `run` does; the lines it prints, which only a line feed ends.

        `str.splitlines` would also divide a JSON text at U+0085 and U+2028, which Java writes as they are.
        """
        return self.run(main_class, *args, cwd=cwd, text=text).removesuffix("\n").split("\n")

    def answers(self, main_class: str, *args: str, questions: Sequence[object], cwd: Path) -> list[Any]:
        """Ask `main_class`, in one JVM: lines of JSON, each of which it answers by another."""
        text = "".join(json.dumps(question) + "\n" for question in questions)
        found = [json.loads(line) for line in self.lines(main_class, *args, cwd=cwd, text=text) if line]
        if len(found) != len(questions):
            raise RuntimeError(f"{len(questions)} questions, {len(found)} answers")
        return found

    def dump(self, cwd: Path, argvs: Sequence[Sequence[str]]) -> list[Dump]:
        """What `kafka-dump-log` prints for each of `argvs` in the directory `cwd`, all in one JVM."""
        cwd = cwd.resolve()
        dumps = [Dump(**answer) for answer in self.answers("DumpBatch", questions=list(map(list, argvs)), cwd=cwd)]
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


def resolve_by_maven(pom: Path, found: Path, *properties: str) -> None:
    """Write the classpath of what `pom` depends on into the file `found`, which is there whole or not at all.

    Raises:
        OracleUnavailableError: Maven is missing, fails, or takes too long.
    """
    fresh = found.with_name(f"{found.name}-{os.getpid()}.tmp")
    maven = [_program("mvn"), "-q", "-B", *properties, "-f", str(pom)]
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={fresh}"]
    try:
        done = subprocess.run(maven + goal, capture_output=True, text=True, check=False, timeout=MAVEN_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise OracleUnavailableError(f"Maven has not resolved {pom} in {MAVEN_SECONDS} s") from error
    if done.returncode != 0:
        raise OracleUnavailableError(f"Maven cannot resolve {pom}: {done.stdout.strip()[-500:]}")
    fresh.replace(found)


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _classpath(cache: Path, release: str) -> str:
    pom = HERE / "pom.xml"
    known = cache / f"classpath-{_hash(pom.read_bytes(), release.encode())}.txt"
    if not known.exists() or not all(map(os.path.exists, known.read_text().split(os.pathsep))):
        resolve_by_maven(pom, known, f"-Dkafka.version={release}")
    return known.read_text()


def _compiled(cache: Path, classpath: str, release: str) -> Path:
    """A jar, which is there whole or not at all."""
    folders = (SOURCES[0] / "any", *((*SOURCES, SOURCES[0] / release) if release in KNOWN else ()))
    sources = sorted(source for folder in folders for source in folder.glob("*.java"))
    known = cache / f"ours-{_hash(classpath.encode(), *(source.read_bytes() for source in sources))}.jar"
    if known.exists():
        return known
    with tempfile.TemporaryDirectory(dir=cache) as place:
        options = ["-Xlint:none", "-proc:none", "-encoding", "UTF-8", "-d", place, "-cp", classpath]
        command = [_program("javac"), *options, *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OracleUnavailableError(f"our own classes do not compile:\n{done.stderr}")
        fresh = Path(place, "ours.jar")
        with zipfile.ZipFile(fresh, "w") as jar:
            for compiled in sorted(Path(place).rglob("*.class")):
                jar.write(compiled, compiled.relative_to(place))
        fresh.replace(known)
    return known


def _option_file(ours: Path, classpath: str) -> Path:
    """The classpath is too long for a command line that people read. Kafka's part, which is archived, comes first."""
    known = ours.with_suffix(".options")
    fresh = known.with_name(f"{known.stem}-{os.getpid()}.options")
    fresh.write_text(f'-cp "{classpath}{os.pathsep}{ours}"')
    fresh.replace(known)
    return known
