"""`logstore doctor`."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib import metadata

import click

_PACKAGES = (
    *("logstore-kafka", "numpy", "numba", "llvmlite", "xxhash", "click", "cramjam", "isal", "zstandard", "rich"),
    *("pyspark", "pyarrow"),
)
_OPTIONAL = {"pyspark": "needed for Spark only", "pyarrow": "needed for Arrow, Parquet and Spark only"}


@click.command("doctor")
def command() -> None:
    """Say what logstore runs on: versions, compiled kernels, processor, Java."""
    from .tables import print_table

    rows = [("python", platform.python_version(), platform.platform())]
    rows += [(name, *_version(name)) for name in _PACKAGES]
    rows += [("kernels", *_kernels()), ("processor", *_processor()), ("java", *_java())]
    print_table(("what", "found", "note"), rows)


def _version(name: str) -> tuple[str, str]:
    try:
        return metadata.version(name), ""
    except metadata.PackageNotFoundError:
        return "none", _OPTIONAL.get(name, f"missing: pip install {name}")


def _kernels() -> tuple[str, str]:
    from logstore.kernels import native

    missing = native.missing_modules()
    if not missing:
        return "compiled", str(native.object_files()[0].parent)
    return "not compiled", f"{', '.join(missing)}: `logstore kernels` does it, else the first call that needs them"


def _processor() -> tuple[str, str]:
    from logstore.kernels import native

    name, has_crc = native.processor()
    return name, "CRC-32C by an instruction" if has_crc else "CRC-32C by tables: several times slower"


def _java() -> tuple[str, str]:
    path = shutil.which("java")
    if path is None:
        return "none", "needed for Spark, and to compare with the real Kafka in tests"
    answer = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    return answer.stderr.partition("\n")[0] or "does not run", path
