"""Imports run one way, and every dangerous thing has one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house import sources
from tests.house.sources import Module, product_modules, sample

# A layer of logstore may import itself and what stands to its left.
LAYERS = [
    *("errors", "model", "clock", "calls", "cached_property", "threads", "called_packages", "rows", "layout", "config"),
    *("native", "kernels", "codec", "columns", "folds", "disk", "messages", "topics", "view", "replay", "log"),
    *("coordinator", "store", "client"),
]
MAY_IMPORT = {layer: set(LAYERS[: index + 1]) for index, layer in enumerate(LAYERS)}
MAY_IMPORT["audit"] = {*LAYERS[: LAYERS.index("replay") + 1], "audit"}
MAY_IMPORT["spark_dumps"] = {*LAYERS[: LAYERS.index("replay") + 1], "audit", "spark_dumps"} - {
    "native",
    "kernels",
    "codec",
}
MAY_IMPORT["pyspark_kafka_segments"] = {"spark_dumps"}
MODULES_MAY_IMPORT = {  # what single modules may import besides
    "logstore.native.build": {"kernels"},  # it compiles all of them
    "spark_dumps.writing": {"log", "coordinator", "client", "logstore"},  # a job is a producer in a store
}
MAY_IMPORT["logstore_tools"] = {*LAYERS, "audit", "spark_dumps", "logstore", "logstore_tools"}
MAY_IMPORT["__main__"] = {"logstore_tools"}  # `python -m logstore` is the command line
MAY_IMPORT["logstore"] = {*LAYERS, "audit"}  # logstore/__init__.py: the public names

# What only one place may touch: modules, and calls by the end of their dotted name.
MODULES_OF = {
    "numba": ("native", "kernels"),
    "llvmlite": ("native", "kernels"),
    "pyspark": ("spark_dumps",),
    "click": ("logstore_tools",),
    "mmap": ("disk",),
    "time": ("clock",),
    "obstore": ("disk",),
}
OS_CALLS = (
    "open fdopen fsync fdatasync write pwrite ftruncate truncate replace rename unlink remove mkdir makedirs rmdir "
    "utime"
)
CALLS_OF = {
    **{f"os.{name}": "disk" for name in OS_CALLS.split()},
    **dict.fromkeys(["open", "io.open", "read_bytes", "write_bytes", "read_text", "write_text"], "disk"),
    **dict.fromkeys(["datetime.now", "datetime.utcnow", "date.today"], "clock"),
}
BUILTINS = {"open"}  # a method of that name is something else, such as the seam's
EXCEPTIONS = {
    ("logstore/native/fingerprint.py", "open"): "hashes its sources, which are no data",
    ("logstore/native/cpu.py", "open"): "asks Linux for the processor",
    ("logstore/native/library.py", "open"): "checks the compiled kernels, which are no data",
    **dict.fromkeys(
        [("logstore/native/build.py", name) for name in ("open", "os.open", "os.fdopen", "os.makedirs", "os.replace")],
        "keeps the compiled kernels",
    ),
    ("tools/endings.py", "os.open"): "puts /dev/null in the place of standard streams that nobody reads or gives",
    ("tools/dump/command.py", "read_text"): "reads a text of its own package",
    ("logstore/audit/checks/__init__.py", "read_text"): "reads a text of its own package",
}


def layer_of(name: str) -> str:
    """`logstore.disk.names` is of disk; other packages are a layer each."""
    package, _, rest = name.partition(".")
    return rest.partition(".")[0] if package == "logstore" and rest else package


def imported(module: Module) -> Iterator[tuple[int, str]]:
    """(line, name) of every import; of the package itself the module that is taken from it."""
    for line, name, member in sources.imported(module):
        yield line, f"{name}.{member}" if name == "logstore" and member else name


def dotted(node: ast.expr) -> str:
    """`os.path.join` as written; a call in the middle is left out."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *reversed(parts)])


def called(module: Module) -> Iterator[tuple[int, str]]:
    """(line, key of CALLS_OF) of every call that only one place may make, and of the import of such a function."""
    for node in ast.walk(module.tree):
        names = []
        if isinstance(node, ast.Call):
            names = [dotted(node.func)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            for key in CALLS_OF:
                if name == key or (key not in BUILTINS and name.endswith(f".{key}")):
                    yield node.lineno, key


def violations(module: Module) -> list[str]:
    """What a module imports or calls that is not its business."""
    layer = layer_of(module.name)
    allowed = MAY_IMPORT.get(layer, {layer}) | MODULES_MAY_IMPORT.get(module.name, set())
    found = []
    for line, name in imported(module):
        target = layer_of(name)
        if target in MAY_IMPORT and target not in allowed:
            found.append(f"{module.path}:{line}: {layer} must not import {name}")
        if layer not in MODULES_OF.get(target, (layer,)):
            found.append(f"{module.path}:{line}: only {' and '.join(MODULES_OF[target])} may import {name}")
    for line, name in called(module):
        if CALLS_OF[name] != layer and (module.path, name) not in EXCEPTIONS:
            found.append(f"{module.path}:{line}: only {CALLS_OF[name]} may call {name}")
    return found


def test_nothing_is_imported_or_called_out_of_its_place() -> None:
    assert [line for module in product_modules() for line in violations(module)] == []


def test_every_module_has_a_layer() -> None:
    assert {layer_of(module.name) for module in product_modules()} <= MAY_IMPORT.keys()


def test_every_exception_is_needed() -> None:
    imports = {module.name: {layer_of(name) for _, name in imported(module)} for module in product_modules()}
    assert all(layers <= imports[name] for name, layers in MODULES_MAY_IMPORT.items())
    needed = {(module.path, name) for module in product_modules() for _, name in called(module)}
    assert EXCEPTIONS.keys() <= needed
    assert all(reason.split() for reason in EXCEPTIONS.values())


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("logstore.layout.batch", "from ..kernels import scan"),
        ("logstore.layout.batch", "from logstore.disk.files import read_file"),
        ("logstore.errors", "from . import model"),
        ("logstore.codec.gzip", "def inflate():\n    from ..columns.batch_table import scan"),
        ("logstore.disk.files", "import logstore.messages.reader"),
        ("logstore.disk.files", "import logstore"),
        ("logstore.disk.files", "from logstore import client"),
        ("logstore.audit.txns", "from ..log import append"),
        ("logstore.messages.reader", "from logstore_tools.dump import run"),
        ("spark_dumps.batches", "from logstore.kernels import scan"),
        ("spark_dumps.sink", "from logstore.store.opening import open_directory"),
        ("spark_dumps.writing", "from logstore.kernels import scan"),
        ("logstore.columns.batch_table", "import numba"),
        ("logstore.columns.batch_table", "import llvmlite.binding as llvm"),
        ("logstore.disk.files", "import click"),
        ("logstore_tools.main", "from pyspark.sql import SparkSession"),
        ("logstore.codec.gzip", "import mmap"),
        ("logstore.messages.reader", "open('x')"),
        ("logstore.messages.reader", "import os\nos.open('x', 0)"),
        ("logstore.log.append", "from os import fsync\nfsync(0)"),
        ("logstore.log.append", "import os\nos.replace('x', 'y')"),
        ("logstore_tools.main", "import pathlib\npathlib.Path('x').read_bytes()"),
        ("logstore.disk.files", "import time"),
        ("logstore.disk.files", "from time import monotonic"),
        ("logstore_tools.main", "from datetime import datetime\ndatetime.now()"),
    ],
)
def test_a_bad_import_or_call_is_caught(name: str, source: str) -> None:
    assert violations(sample(name, source))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("logstore.columns.batch_table", "from ..kernels import scan\nfrom . import record_table\nimport numpy"),
        ("logstore.disk.files", "import mmap, os\nos.open('x', 0)\nfrom ..errors import LogstoreError"),
        ("logstore_tools.dump.options", "import click\nfrom .arguments import parse\nfrom logstore.audit import txns"),
        ("logstore.clock", "import time"),
        ("logstore.log.append", "descriptor = seam.open('x')\nos.path.join('x')\nSegment.open('x')"),
    ],
)
def test_a_good_import_or_call_is_let_through(name: str, source: str) -> None:
    assert violations(sample(name, source)) == []
