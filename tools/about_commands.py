"""`logstore doctor` and `formats`: the environment of logstore, and the formats of Kafka's files."""

from __future__ import annotations

import importlib
import pkgutil
import platform
import shutil
import subprocess
from importlib import metadata

import click

from logstore import layout

from .rows import JsonField, RowType, TypedRows, VerbAnswer
from .verbs import Verb, hint

_PACKAGES = (
    *("logstore-kafka", "numpy", "numba", "llvmlite", "xxhash", "click", "cramjam", "isal", "zstandard"),
    *("pyspark", "pyarrow", "obstore"),
)
_OPTIONAL = {
    **dict.fromkeys(("numba", "llvmlite"), "needed to compile kernels only, where no wheel brings them"),
    "pyspark": "needed for Spark only",
    "pyarrow": "needed for Arrow, Parquet and Spark only",
    "obstore": "needed for URLs only",
}


COMPONENT = RowType(
    "component",
    "What logstore runs on.",
    (
        JsonField("what", "string", "its name", "what"),
        JsonField("found", "string", "its version, or what it is", "found"),
        JsonField("note", "string", "where it is, or what it is needed for", "note"),
    ),
)
FORMAT = RowType(
    "format",
    "A format of Kafka's files.",
    (
        JsonField("name", "string", "its name", "name"),
        JsonField("about", "string", "what it is", "what it is"),
        JsonField("page", "string", "what its bytes mean"),
    ),
)


@click.command("doctor", cls=Verb, prints=[COMPONENT], example="logstore doctor --compile")
@click.option("--compile", "compiles", is_flag=True, help="Compile the kernels for this machine first.")
def doctor(compiles: bool) -> VerbAnswer:
    """Say what logstore runs on: versions, the library of kernels and where it is, processor, open files, Java."""
    if compiles:
        from logstore.native import library

        library.library_path()
    rows = [("python", platform.python_version(), platform.platform())]
    rows += [(name, *_version(name)) for name in _PACKAGES]
    rows += [("kernels", *_kernels()), ("processor", *_processor()), ("open files", *_open_files()), ("java", *_java())]
    return VerbAnswer([TypedRows(COMPONENT, [dict(zip(("what", "found", "note"), row, strict=True)) for row in rows])])


def _version(name: str) -> tuple[str, str]:
    try:
        return metadata.version(name), ""
    except metadata.PackageNotFoundError:
        return "none", _OPTIONAL.get(name, f"missing: pip install {name}")


def _kernels() -> tuple[str, str]:
    from logstore.native import library
    from logstore.native.kernel import INTERPRETED

    if INTERPRETED:
        return "interpreted", "NUMBA_DISABLE_JIT is set: hundreds of times slower"
    path = library.find()
    if path is not None:
        return "loaded by LLVM" if path.endswith(library.OBJECT_SUFFIX) else "shared library", path
    reasons = "; ".join(library.distrusted()) or f"none in {' or '.join(library.directories())}"
    return "not built", f"{reasons}: `logstore doctor --compile` builds it, else the first call that needs it"


def _processor() -> tuple[str, str]:
    from logstore.native import cpu

    level = cpu.level()
    return level.name, "CRC-32C by an instruction" if "crc" in level.features else "CRC-32C by tables: slow"


def _open_files() -> tuple[str, str]:
    from logstore.config.broker import OPEN_FILES_MAX
    from logstore.disk.open_files import half_of_limit

    return str(half_of_limit()), f"of logs stay open: half of `ulimit -n`, unless {OPEN_FILES_MAX} says otherwise"


def _java() -> tuple[str, str]:
    path = shutil.which("java")
    if path is None:
        return "none", "needed for Spark, and to compare with the real Kafka in tests"
    answer = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    return answer.stderr.partition("\n")[0] or "does not run", path


@click.command("formats", cls=Verb, prints=[FORMAT], example="logstore formats time_index")
@click.argument("name", required=False)
def formats(name: str | None) -> VerbAnswer:
    """Print what the bytes of Kafka's files mean: the page of the format NAME, or the list of all."""
    names = sorted(module.name for module in pkgutil.iter_modules(layout.__path__))
    if name is not None and name not in names:
        raise click.UsageError(f"There is no format {name!r}. {hint(name, names, '`logstore formats` lists them.')}")
    chosen = names if name is None else [name]
    pages = {one: (importlib.import_module(f"{layout.__name__}.{one}").__doc__ or "").strip() for one in chosen}
    rows = [{"name": one, "about": page.partition("\n")[0], "page": page} for one, page in pages.items()]
    return VerbAnswer([TypedRows(FORMAT, rows)], lines=None if name is None else pages[name].split("\n"))
