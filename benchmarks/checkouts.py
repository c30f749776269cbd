"""Two commits side by side: each in a work tree of its own with its own kernels, both asked by the same benchmarks."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

QUESTIONS = ("benchmarks", "tests")  # what asks, which must be the same for both
KERNELS = Path("logstore", "jit", "lib")
COMPILE = "from logstore_tools.commands import logstore; logstore(['kernels'])"
WHERE = "import logstore, logstore_tools; print(logstore.__file__, logstore_tools.__file__)"


@dataclass(frozen=True)
class Checkout:
    """A commit in a folder of its own."""

    commit: str
    path: Path

    def run(self, *words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Python in this work tree, which comes before anything that is installed."""
        own = {"PYTHONPATH": str(self.path), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            env={**os.environ, **own, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )


def git(root: Path, *words: str) -> str:
    """What git says; RuntimeError with its words when it refuses."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of(root: Path, name: str | None) -> str:
    """A commit's hash; None: the checkout as it is now, changes of tracked files included."""
    if name is None:
        return git(root, "stash", "create") or git(root, "rev-parse", "HEAD")
    return git(root, "rev-parse", "--verify", f"{name}^{{commit}}")


@contextmanager
def checkouts(root: Path, place: Path, base: str, head: str | None) -> Iterator[tuple[Checkout, Checkout]]:
    """Work trees of both below `place`, removed at the end.

    Raises:
        RuntimeError: no such commit, or its kernels do not compile.
    """
    commits = {"base": commit_of(root, base), "head": commit_of(root, head)}
    made = []
    try:
        for name, commit in commits.items():
            git(root, "worktree", "add", "--quiet", "--detach", str(place / name), commit)
            made.append(Checkout(commit, place / name))
        for checkout in made:
            _ask_as(root, commits["head"], checkout)
            _compile(root, checkout)
        yield made[0], made[1]
    finally:
        for checkout in made:
            git(root, "worktree", "remove", "--force", str(checkout.path))


def _ask_as(root: Path, commit: str, checkout: Checkout) -> None:
    for folder in QUESTIONS:
        shutil.rmtree(checkout.path / folder, ignore_errors=True)
    archive = subprocess.run(["git", "archive", commit, *QUESTIONS], cwd=root, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(checkout.path, filter="data")
    (checkout.path / "logstore_tools").symlink_to("tools")


def _compile(root: Path, checkout: Checkout) -> None:
    """Kernels whose sources are the same as here are taken from here: their names hold a hash of the sources."""
    if (root / KERNELS).exists() and (checkout.path / KERNELS.parent).exists():
        shutil.copytree(root / KERNELS, checkout.path / KERNELS)
    done = checkout.run("-c", COMPILE)
    where = checkout.run("-c", WHERE)
    if done.returncode != 0:
        raise RuntimeError(f"the kernels of {checkout.commit} do not compile:\n{done.stderr}")
    if where.stdout.count(str(checkout.path)) != 2:
        raise RuntimeError(f"another logstore than that of {checkout.path} is imported: {where.stdout}{where.stderr}")
