"""`make release`: builds what is uploaded, twice, and tries it as its users will.

    python -m tests.stories.release DIRECTORY

The source archive comes from the checkout, the wheel from the source archive, as pip builds it for a user without a
wheel. Both are built twice and must be the same bytes. Then `fresh_wheel` tries the wheel as a new user does. The
upload is left to whoever releases.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from tests.stories import fresh_wheel

ROOT = Path(__file__).parents[2]
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


@cache
def time_of_release() -> str:
    """Return the time of the last commit in seconds, which all files of the archives get: of one, though more come."""
    return run("git", "log", "-1", "--format=%ct", PATH=os.environ["PATH"]).strip()


def source_archive(folder: Path) -> Path:
    """Build the source archive of the checkout into a folder, and return its path."""
    variables = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": time_of_release()}
    lines = run(sys.executable, "-c", _ARCHIVE, folder, **variables).splitlines()
    return folder / lines[-1]


def wheel(archive: Path, folder: Path) -> Path:
    """Build the wheel of a source archive into a folder, with the compilers that are here, and return its path."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "SOURCE_DATE_EPOCH": time_of_release()}
    options: list[str | Path] = [
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-cache-dir",
        "--wheel-dir",
        folder,
    ]
    run(sys.executable, "-m", "pip", "wheel", *options, archive, cwd=folder, **variables)
    return next(folder.glob("*.whl"))


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
    fresh_wheel.main(built, [])
    folder.mkdir(parents=True, exist_ok=True)
    for path in (archive, built):
        print(shutil.copy(path, folder / path.name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
