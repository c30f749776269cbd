"""`make release`: builds what is uploaded, twice, and tries it as its users will.

    python -m tests.stories.release DIRECTORY

The source archive comes from the checkout, the wheel from the source archive, as pip builds it for a user without a
wheel. Both are built twice and must be the same bytes. Then the wheel is installed into an environment of its own,
without numba, a compiler, Java or a home, its files are given to another user, and it verifies a directory that a real
broker wrote. The upload is left to whoever releases.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIZE_MAX = 140 << 20  # bytes, of all that pip installs for the wheel
DEMO = ROOT / "tests" / "golden" / "demo"  # a real broker wrote it
OTHER_USER = 4242

_ARCHIVE = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"


def run(*words: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command with no environment but `variables`, and return its standard output.

    Raises:
        RuntimeError: it failed; the message has what it printed.
    """
    done = subprocess.run([*map(str, words)], cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def time_of_release() -> str:
    """Return the time of the last commit in seconds, which all files of the archives get."""
    return run("git", "log", "-1", "--format=%ct", PATH=os.environ["PATH"]).strip()


def source_archive(folder: Path) -> Path:
    """Build the source archive of the checkout into a folder, and return its path."""
    variables = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": time_of_release()}
    lines = run(sys.executable, "-c", _ARCHIVE, folder, **variables).splitlines()
    return folder / lines[-1]


def wheel(archive: Path, folder: Path) -> Path:
    """Build the wheel of a source archive into a folder, with the compilers that are here, and return its path."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "SOURCE_DATE_EPOCH": time_of_release()}
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", folder]
    run(sys.executable, "-m", "pip", "wheel", *options, archive, cwd=folder, **variables)
    return next(folder.glob("*.whl"))


def installed(path: Path, folder: Path) -> Path:
    """Install a wheel into an environment of its own, and return its folder of programs."""
    environment = folder / "environment"
    # registries are set in pip's own configuration, below the home
    variables = {name: os.environ[name] for name in os.environ if name.startswith("PIP_") or name in ("PATH", "HOME")}
    run(sys.executable, "-m", "venv", environment, **variables)
    run(environment / "bin" / "pip", "install", "--quiet", "--no-cache-dir", path, **variables)
    return environment / "bin"


def check(programs: Path) -> str:
    """Use an installed wheel as users do, and return what was found, in lines."""
    packages = next(programs.parent.glob("lib/python3*/site-packages"))
    names = {path.name.partition("-")[0] for path in packages.iterdir()}
    if names & {"numba", "llvmlite", "pyspark", "pyarrow"}:
        raise RuntimeError(f"the wheel brings more than it needs: {sorted(names)}")
    ours = {path.name for path in packages.iterdir()} - {"pip", "setuptools", "_distutils_hack"}
    size = sum(path.lstat().st_size for name in ours for path in (packages / name).rglob("*") if path.is_file())
    if size > SIZE_MAX:
        raise RuntimeError(f"the wheel and what it needs take {size >> 20} MiB, more than {SIZE_MAX >> 20}")
    if os.geteuid() == 0:  # the files of another user, as in a container that runs under an id of its own
        for path in (packages / "logstore").rglob("*"):
            os.chown(path, OTHER_USER, OTHER_USER)
    for command in ([programs / "logstore"], [programs / "python", "-m", "logstore"]):  # without a home and a PATH
        answer = run(*command, "doctor", cwd=Path("/"))
        if "shared library" not in answer or str(packages) not in answer:
            raise RuntimeError(f"the library of the wheel is not loaded:\n{answer}")
        run(*command, "verify", DEMO, cwd=Path("/"))
    return f"{size / (1 << 20):.0f} MiB installed"


def twice(build: Callable[[Path], Path]) -> Path:
    """Build a file twice, in folders of its own, and return one of the two.

    Raises:
        RuntimeError: their bytes differ.
    """
    first, second = build(Path(tempfile.mkdtemp())), build(Path(tempfile.mkdtemp()))
    if first.read_bytes() != second.read_bytes():
        raise RuntimeError(f"two builds of {first.name} differ: {first} {second}")
    return first


def main(folder: Path) -> None:
    """Build, compare and try a release; leave both archives in the folder."""
    archive = twice(source_archive)
    built = twice(partial(wheel, archive))
    with tempfile.TemporaryDirectory() as room:
        print(check(installed(built, Path(room))))
    folder.mkdir(parents=True, exist_ok=True)
    for path in (archive, built):
        print(shutil.copy(path, folder / path.name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
