"""`logstore doctor` and `formats`: what logstore runs on, and what it reads."""

from __future__ import annotations

import importlib
import pkgutil
import platform
import shutil
import subprocess
from difflib import get_close_matches
from importlib import metadata

import click

from logstore import layout

from .audit_options import Row, listing
from .tables import print_table

_PACKAGES = (
    *("logstore-kafka", "numpy", "numba", "llvmlite", "xxhash", "click", "cramjam", "isal", "zstandard"),
    *("pyspark", "pyarrow"),
)
_OPTIONAL = {"pyspark": "needed for Spark only", "pyarrow": "needed for Arrow, Parquet and Spark only"}


_COLUMNS = ("what", "found", "note")


@click.command("doctor")
@click.option("--compile", "compiles", is_flag=True, help="Compile the kernels for this machine first.")
@listing(_COLUMNS, lambda row: tuple(row.values()))
def doctor(compiles: bool) -> tuple[list[Row], int]:
    """Say what logstore runs on: versions, the library of kernels and where it is, processor, Java."""
    if compiles:
        from logstore.jit import library

        library.library_path()
    rows = [("python", platform.python_version(), platform.platform())]
    rows += [(name, *_version(name)) for name in _PACKAGES]
    rows += [("kernels", *_kernels()), ("processor", *_processor()), ("java", *_java())]
    return [dict(zip(_COLUMNS, row, strict=True)) for row in rows], 0


def _version(name: str) -> tuple[str, str]:
    try:
        return metadata.version(name), ""
    except metadata.PackageNotFoundError:
        return "none", _OPTIONAL.get(name, f"missing: pip install {name}")


def _kernels() -> tuple[str, str]:
    from logstore.jit import library
    from logstore.jit.kernel import INTERPRETED

    if INTERPRETED:
        return "interpreted", "NUMBA_DISABLE_JIT is set: hundreds of times slower"
    path = library.find()
    if path is not None:
        return "loaded by LLVM" if path.endswith(library.OBJECT_SUFFIX) else "shared library", path
    reasons = "; ".join(library.distrusted()) or f"none in {' or '.join(library.directories())}"
    return "not built", f"{reasons}: `logstore doctor --compile` builds it, else the first call that needs it"


def _processor() -> tuple[str, str]:
    from logstore.jit import cpu

    level = cpu.level()
    if "vpclmulqdq" in level.features:
        return level.name, "CRC-32C by folding vectors"
    return level.name, "CRC-32C by an instruction" if "crc" in level.features else "CRC-32C by tables: slow"


def _java() -> tuple[str, str]:
    path = shutil.which("java")
    if path is None:
        return "none", "needed for Spark, and to compare with the real Kafka in tests"
    answer = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    return answer.stderr.partition("\n")[0] or "does not run", path


@click.command("formats")
@click.argument("name", required=False)
def formats(name: str | None) -> None:
    """Print what the bytes of Kafka's files mean: the page of the format NAME, or the list of all."""
    names = sorted(module.name for module in pkgutil.iter_modules(layout.__path__))
    if name is None:
        print_table(("name", "what it is"), [(one, _page(one).partition("\n")[0]) for one in names])
        return
    if name not in names:
        close = get_close_matches(name, names, n=1)
        hint = f"Did you mean {close[0]}?" if close else "`logstore formats` lists them."
        raise click.UsageError(f"There is no format {name!r}. {hint}")
    click.echo(_page(name))


def _page(name: str) -> str:
    page = importlib.import_module(f"logstore.layout.{name}").__doc__
    return "" if page is None else page.strip()
