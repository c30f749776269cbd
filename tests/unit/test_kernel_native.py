"""Where the compiled kernels are kept, and when they are made again."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from logstore.kernels import compiler, fingerprint, native
from logstore.kernels.kernel import KERNELS, Kernel


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two places where object files are looked for: beside a copy of the sources, and the user's cache."""
    package = tmp_path / "logstore"
    for folder in ("kernels", "layout"):
        (package / folder).mkdir(parents=True)
        for path in (Path(fingerprint.SOURCES).parent / folder).glob("*.py"):
            (package / folder / path.name).write_bytes(path.read_bytes())
    for module in (fingerprint, native):
        monkeypatch.setattr(module, "SOURCES", str(package / "kernels"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "compile_module", lambda module: f"machine code of {module}".encode())
    return package / "kernels" / "__pycache__", tmp_path / "cache" / "logstore"


def _edit(name: str) -> None:
    path = Path(name)
    path.write_bytes(path.read_bytes() + b"\n")
    fingerprint.read_source.cache_clear()


def test_a_module_is_compiled_once_and_kept_beside_the_sources(places: tuple[Path, Path]) -> None:
    path = native.object_file("scan")
    assert (path.parent, path.read_bytes()) == (places[0], b"machine code of scan")
    path.write_bytes(b"found again")
    assert native.object_file("scan").read_bytes() == b"found again"
    assert [each.name for each in places[0].iterdir()] == [path.name]


def test_the_users_cache_takes_them_where_sources_cannot_be_written(places: tuple[Path, Path]) -> None:
    places[0].write_bytes(b"a file where the directory should be")
    assert native.object_file("scan").parent == places[1]
    assert native.object_file("scan").read_bytes() == b"machine code of scan"


def test_no_place_at_all_is_told_with_both_reasons(places: tuple[Path, Path]) -> None:
    places[0].write_bytes(b"")
    places[1].parent.write_bytes(b"")
    with pytest.raises(OSError, match=r"no place to keep the compiled kernels: .*__pycache__.*; .*cache/logstore"):
        native.object_file("scan")


@pytest.mark.usefixtures("places")
def test_any_change_of_what_a_module_is_made_of_asks_for_it_anew() -> None:
    sources = fingerprint.sources_of("dump_text")
    names = {native.object_file("dump_text")}
    for path in sources:
        _edit(path)
        names.add(native.object_file("dump_text"))
    assert len(names) == 1 + len(sources)


@pytest.mark.usefixtures("places")
def test_a_change_leaves_alone_what_is_not_made_of_it() -> None:
    scan, text = native.object_file("scan"), native.object_file("dump_text")
    _edit(f"{fingerprint.SOURCES}/dump_lines.py")
    assert native.object_file("scan") == scan
    assert native.object_file("dump_text") != text


@pytest.mark.parametrize("module", fingerprint.kernel_modules())
def test_a_module_is_made_of_all_that_it_imports(module: str) -> None:
    sources = {Path(path) for path in fingerprint.sources_of(module)}
    package = Path(fingerprint.SOURCES).parent
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                within = [folder / name.name for name in node.names] if folder.is_dir() else [folder]
                assert {each.with_suffix(".py") for each in within} <= sources
    assert {path.parent for path in sources} <= {package / "kernels", package / "layout"}


def test_all_that_is_missing_is_compiled_at_once(places: tuple[Path, Path]) -> None:
    modules = fingerprint.kernel_modules()
    for module in modules[1:]:
        native.object_file(module)
    assert [path.parent for path in native.object_files()] == [places[0]] * len(modules)
    assert len(list(places[0].iterdir())) == len(modules) >= 8


def test_every_kernel_has_an_address_of_its_own() -> None:
    import logstore.kernels.dump_text  # noqa: F401  # the last of the modules, it imports the others

    addresses = {native.function_address(kernel.module, kernel.name) for kernel in KERNELS.values()}
    assert len(addresses) == len(KERNELS) >= 8
    assert 0 not in addresses


def test_a_kernel_that_is_not_in_its_file_is_not_called() -> None:
    with pytest.raises(RuntimeError, match=r"scan-.*\.o has no kernel no_such_kernel"):
        native.function_address("scan", "no_such_kernel")


def test_another_processor_or_another_compiler_asks_for_all_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    here = fingerprint.fingerprint("scan")
    told = fingerprint._linux_processor()
    fingerprint._machine.cache_clear()
    monkeypatch.setattr(fingerprint, "_linux_processor", lambda: told + b" and an instruction more")
    elsewhere = fingerprint.fingerprint("scan")
    fingerprint._machine.cache_clear()
    monkeypatch.setattr(fingerprint, "_llvmlite_version", lambda: b"of tomorrow")
    assert len({here, elsewhere, fingerprint.fingerprint("scan")}) == 3
    fingerprint._machine.cache_clear()


def test_the_processor_is_known_by_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    told = b"processor\t: 0\nmodel\t\t: 1\nmodel name\t: X\ncpu MHz\t: 2.1\nflags\t\t: sse4_2 avx2\n\nmodel\t: 2\n"
    monkeypatch.setattr(fingerprint, "_read", lambda path, size: told)
    assert fingerprint._linux_processor() == b"model\t\t: 1\nflags\t\t: sse4_2 avx2"
    monkeypatch.setattr(fingerprint, "_read", lambda path, size: b"processor\t: 0\nmodel name\t: X\n")
    assert fingerprint._linux_processor() == b""  # then LLVM is asked
    assert b"\n" in fingerprint._llvm_processor()


def test_the_version_of_llvmlite_is_read_without_importing_it() -> None:
    import llvmlite

    assert str(llvmlite.__version__).encode() in fingerprint._llvmlite_version()


def test_nothing_large_is_imported_to_run_a_kernel() -> None:
    native.object_files()
    script = (
        "import ctypes, sys; from logstore.kernels.crc32c import crc32c_range;"
        "text = ctypes.create_string_buffer(b'123456789');"
        "print(crc32c_range(ctypes.addressof(text), 0, 9));"
        "print(sorted({'numpy', 'numba', 'llvmlite', 'multiprocessing', 'concurrent'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment, text=True)
    number, modules = done.stdout.splitlines()
    assert int(number) == 0xE3069283
    assert modules == "[]" or not sys.platform.startswith("linux")


def test_threads_that_define_a_kernel_at_once_have_the_same_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps its address: of two one would be let go while its function is called."""
    both_ask = threading.Barrier(4)

    def address(module: str, name: str) -> int:
        both_ask.wait(60)
        return 1

    monkeypatch.setattr(native, "function_address", address)
    kernel = Kernel(lambda: 0, "")
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(kernel.definition())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert set(found) == {kernel.definition()}
