"""What pyproject.toml cannot say: a wheel has the libraries of the kernels, and a source archive is reproducible.

A build needs numba and llvmlite, an installed wheel does not. An editable installation builds no library here:
`logstore doctor --compile` does, or the first call that needs one.
"""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # a build by pip does not have it there

from logstore.native.library import build_release

EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"  # seconds since 1970; setuptools gives it to the files of a wheel


class BuildKernels(build_py):
    """Builds the kernels for each level of this architecture's processors beside the modules."""

    def run(self) -> None:
        """Copy the modules, then compile the kernels: some 45 seconds of a processor for each level."""
        super().run()
        if not self.editable_mode:
            build_release(os.path.join(os.path.abspath(self.build_lib), "logstore", "native", "lib"))


class PlatformDistribution(Distribution):
    """A distribution with machine code, although no extension module of Python is in it."""

    def has_ext_modules(self) -> bool:
        """Make setuptools install it as one of a platform."""
        return True


class TaggedWheel(bdist_wheel):
    """A wheel for one architecture and every Python: ctypes loads its libraries, which call nothing but memcpy."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag; the libraries run wherever the glibc 2.17 of manylinux2014 does."""
        platform = super().get_tag()[2]
        if platform.startswith("linux_"):
            platform = platform.replace("linux_", "manylinux2014_", 1)
        return "py3", "none", platform


class ReproducibleArchive(sdist):
    """A source archive that is the same for the same sources: no owners, one time for all files."""

    def make_archive(self, base_name: str, *_: object, base_dir: str = "", **__: object) -> str:
        """Write BASE_NAME.tar.gz from the folder of the release, and return its path."""
        seconds = int(os.environ.get(EPOCH_VARIABLE, "0"))

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = seconds
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            return member

        path = f"{base_name}.tar.gz"
        with gzip.GzipFile(path, "wb", mtime=seconds) as file, tarfile.open(fileobj=file, mode="w") as archive:
            for each in sorted(Path(base_dir).rglob("*")):
                archive.add(each, recursive=False, filter=plain)
        return path


setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildKernels, "bdist_wheel": TaggedWheel, "sdist": ReproducibleArchive},
)
