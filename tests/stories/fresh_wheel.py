"""`make test-wheel`: tries a wheel as a new user does, on each Python that is here.

    python -m tests.stories.fresh_wheel WHEEL [PYTHON …]

For each Python the wheel is installed into an environment of its own. Another user, who has no home, no PATH, and so no
compiler and no Java, then reads a directory that a real broker wrote, and writes a transaction. The page
docs/how-to/install.md has the sizes and the processor times of these first calls.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "tests" / "golden" / "demo"  # a real broker wrote it
PYTHONS = ["python3.11", "python3.12", "python3.13", "python3.14"]
PYENV = Path(
    os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"
)  # its programs on the PATH are those of one version
OTHER_USER = 4242
SIZE_MAX = 140 << 20  # bytes, of all that pip installs for the wheel
SECONDS = 600  # only a fault takes longer

STORE = """
import sys
import logstore
from logstore.model import FetchIsolation
with logstore.open(sys.argv[1]) as store:
    store.create_topic("orders", 1)
    with store.producer(transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", value=b"paid")
        producer.commit_transaction()
    records = store.log("orders", 0).records(isolation=FetchIsolation.READ_COMMITTED)
    print(sum(len(chunk.to_records()) for chunk in records.chunks()))
"""


class Tried(NamedTuple):
    """What was found with one Python.

    Attributes:
        version: of the Python, as 3.14.8.
        size: bytes of all that pip installed.
        seconds: processor time of each call, by its name.
    """

    version: str
    size: int
    seconds: dict[str, float]

    def __str__(self) -> str:
        times = " | ".join(f"{seconds:.2f}" for seconds in self.seconds.values())
        return f"| {self.version} | {self.size >> 20} | {times} |"


def interpreters() -> list[str]:
    """Return this Python and the others on the PATH or of pyenv that answer, one a version."""
    found = {version_of(sys.executable): sys.executable}
    for name in [*PYTHONS, *map(str, sorted(PYENV.glob("versions/3.1[1-9].*/bin/python")))]:
        version = version_of(name)
        if version is not None:
            found.setdefault(version, name)
    return list(found.values())


def version_of(python: str) -> str | None:
    """Return the version of an interpreter, as 3.14; None if it does not answer."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def installed(wheel: Path, folder: Path, python: str = sys.executable) -> Path:
    """Install a wheel into an environment of its own, and return its folder of programs."""
    environment = folder / "environment"
    # registries are set in pip's own configuration, below the home
    variables = {
        name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "PYENV_")) or name in ("PATH", "HOME")
    }
    subprocess.run([python, "-m", "venv", str(environment)], check=True, env=variables)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run([*pip, "--only-binary=:all:", str(wheel)], check=True, env=variables)
    return environment / "bin"


def check(programs: Path, room: Path) -> Tried:
    """Use an installed wheel as a new user, in a folder that takes files.

    Raises:
        RuntimeError: it brings more than it needs, takes more room, or a call fails.
    """
    packages = next(programs.parent.glob("lib/python3*/site-packages"))
    names = {path.name.partition("-")[0] for path in packages.iterdir()}
    if names & {"numba", "llvmlite", "pyspark", "pyarrow"}:
        raise RuntimeError(f"the wheel brings more than it needs: {sorted(names)}")
    ours = {path.name for path in packages.iterdir()} - {"pip", "setuptools", "_distutils_hack"}
    size = sum(path.lstat().st_size for name in ours for path in (packages / name).rglob("*") if path.is_file())
    if size > SIZE_MAX:
        raise RuntimeError(f"the wheel and what it needs take {size >> 20} MiB, more than {SIZE_MAX >> 20}")
    demo = room / "demo"
    shutil.copytree(DEMO, demo)
    room.chmod(0o777)
    programs.parent.chmod(0o755)
    python, logstore = str(programs / "python"), str(programs / "logstore")
    user = OTHER_USER if os.geteuid() == 0 and is_open(python) else None
    if os.geteuid() == 0:  # the files of a user who is neither root nor the one that calls
        for path in (packages / "logstore").rglob("*"):
            os.chown(path, OTHER_USER + 1, OTHER_USER + 1)
    answer, _ = called(user, python, "-m", "logstore", "doctor")
    if "shared library" not in answer or str(packages) not in answer:
        raise RuntimeError(f"the library of the wheel is not loaded:\n{answer}")
    log = demo / "orders-0" / f"{0:020}.log"
    seconds = {
        "dump": called(user, logstore, "dump", "--files", str(log), expected="baseOffset: 0 ")[1],
        "verify": called(user, logstore, "verify", str(demo), expected="no findings")[1],
        "audit": called(user, logstore, "audit", str(demo), expected="no findings")[1],
        "store": called(user, python, "-c", STORE, str(room / "store"), expected="1")[1],
    }
    version = called(user, python, "-c", "import platform; print(platform.python_version())")[0].strip()
    return Tried(version, size, seconds)


def is_open(python: str) -> bool:
    """Return whether the other user may run an interpreter: not if it lies in somebody's home."""
    try:
        subprocess.run(
            [python, "-c", ""], user=OTHER_USER, group=OTHER_USER, extra_groups=[], check=True, cwd="/", env={}
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def called(user: int | None, *words: str, expected: str = "") -> tuple[str, float]:
    """Call a program without any variable, and return its output and the seconds of a processor that it took."""
    before = children_seconds()
    groups: list[int] | None = None if user is None else []
    done = subprocess.run(
        words,
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        user=user,
        group=user,
        extra_groups=groups,
    )
    if done.returncode != 0 or expected not in done.stdout:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, children_seconds() - before


def children_seconds() -> float:
    """Return the processor time of all programs that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(wheel: Path, pythons: list[str]) -> None:
    """Try a wheel on the given interpreters, else on those that are here, and print a table."""
    print("| Python | MiB | dump | verify | audit | store |")
    for python in pythons or interpreters():
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            place.chmod(0o755)
            room = place / "room"
            room.mkdir()
            print(check(installed(wheel, place, python), room), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
