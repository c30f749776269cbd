"""Where the library of compiled kernels is kept, when it is trusted, and when it is built again."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
import xxhash

from logstore.errors import KernelBuildError
from logstore.native import build, cpu, fingerprint, library
from logstore.native.kernel import KERNELS

_LEVEL = cpu.LEVELS["x86_64"][0]
_FEATURES = "machdep.cpu.features"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which libraries are looked for."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(library, "directories", lambda: [str(folder)])
    monkeypatch.setattr(cpu, "level", lambda: _LEVEL)
    return folder


def _stored(folder: Path, content: bytes = b"machine code", versions: str | None = None) -> Path:
    manifest = library.Manifest(
        _LEVEL.name,
        fingerprint.sources_hash(),
        versions or fingerprint.compiler_versions(),
        xxhash.xxh3_64(content).hexdigest(),
    )
    name = f"{_LEVEL.name}-{manifest.sources}{library.LIBRARY_SUFFIX}"
    return Path(build._store(str(folder), name, content, manifest))


def test_a_library_that_is_as_its_manifest_says_is_found(cache: Path) -> None:
    assert library.find() is None
    path = _stored(cache)
    assert library.find() == str(path)
    assert library.distrusted() == []


def test_a_damaged_library_is_not_loaded(cache: Path) -> None:
    path = _stored(cache)
    path.write_bytes(b"machine c0de")
    assert library.find() is None
    assert "is damaged: its hash is" in str(library.distrust(str(path)))


@pytest.mark.parametrize("manifest", [b"", b"x86-64-v3\n", b"\xff\n" * 5])
def test_a_library_with_a_manifest_of_nothing_is_not_loaded(cache: Path, manifest: bytes) -> None:
    path = _stored(cache)
    Path(f"{path}{library.MANIFEST_SUFFIX}").write_bytes(manifest)
    assert library.find() is None


def test_a_library_without_a_manifest_is_not_loaded(cache: Path) -> None:
    path = _stored(cache)
    Path(f"{path}{library.MANIFEST_SUFFIX}").unlink()
    assert library.find() is None
    assert library.distrust(str(path)) == f"{path}{library.MANIFEST_SUFFIX} is missing"


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
@pytest.mark.parametrize("suffix", ["", library.MANIFEST_SUFFIX])
def test_a_library_that_others_can_write_is_not_loaded(cache: Path, mode: int, suffix: str) -> None:
    path = _stored(cache)
    Path(f"{path}{suffix}").chmod(mode)
    assert library.find() is None
    assert f"can be written by others: mode {mode:o}" in str(library.distrust(str(path)))


def test_a_library_in_a_folder_that_all_can_write_is_not_loaded(cache: Path) -> None:
    _stored(cache)
    cache.chmod(0o777)
    assert library.find() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_library_of_another_user_is_not_loaded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _stored(cache)
    os.chown(path, 4242, 4242)
    assert library.find() is None
    assert "belongs to user 4242" in str(library.distrust(str(path)))


def test_a_library_of_another_compiler_is_built_again_unless_a_wheel_brought_it(cache: Path) -> None:
    path = _stored(cache, versions="llvmlite 0.1, numba 0.1, numpy 0.1")
    assert library.distrust(str(path)) == f"{path} was built by llvmlite 0.1, numba 0.1, numpy 0.1"
    manifest = Path(f"{path}{library.MANIFEST_SUFFIX}")
    manifest.write_text(manifest.read_text().replace("\nno\n", "\nyes\n"))
    assert library.find() == str(path)


def _recorded(cache: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> Path:
    """Store a library as a wheel brings it, in a package of its own, with the RECORD of `content`."""
    package = cache / "logstore"
    monkeypatch.setattr(library, "PACKAGE", str(package))
    monkeypatch.setattr(library, "directories", lambda: [str(package / "native" / "lib")])
    path = _stored(package / "native" / "lib")
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    record = cache / "logstore_kafka-0.1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(f"logstore/__init__.py,,\n{path.relative_to(cache)},sha256={digest},{len(content)}\n")
    return path


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_library_of_a_wheel_is_loaded_whoever_owns_its_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _recorded(cache, monkeypatch, b"machine code")
    for each in (path.parent, path, Path(f"{path}{library.MANIFEST_SUFFIX}")):
        os.chown(each, 4242, 4242)
        each.chmod(0o775)
    assert library.find() == str(path)
    path.write_bytes(b"machine c0de")
    assert library.find() is None
    assert "belongs to user 4242" in str(library.distrust(str(path)))


def test_a_library_that_a_wheel_has_with_other_bytes_needs_a_manifest(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _recorded(cache, monkeypatch, b"other code")
    assert library.find() == str(path)
    path.chmod(0o666)
    assert library.find() is None


def test_without_compilers_and_a_library_one_error_says_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(KernelBuildError, match=r"none in .*cache\), and none can be built without llvmlite"):
        library.library_path()


def test_a_library_that_the_system_does_not_load_is_told(cache: Path) -> None:
    cache.mkdir(exist_ok=True)
    path = cache / "none.so"  # of a file system that is mounted noexec the system says as much
    path.write_bytes(b"no machine code")
    with pytest.raises(KernelBuildError, match=r"cannot be loaded; at .*none\.so; found .*; where .* noexec"):
        library._load(str(path))


def test_a_build_that_fails_says_why_in_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", _fails)
    with pytest.raises(KernelBuildError, match=r"cannot be built for x86-64-v3: no folder .* says more\)$"):
        library.library_path()


def test_a_build_in_a_process_without_standard_error_is_not_announced(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", _fails)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(KernelBuildError, match="no folder"):
        library.library_path()


def _fails(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(command, 1, stdout="", stderr="a trace\nno folder can be written: /x\n")


@pytest.mark.parametrize(
    ("machine", "texts", "level"),
    [
        ("arm64", {}, "aarch64-crc"),
        ("x86_64", {}, "x86-64"),
        (
            "x86_64",
            {"machdep.cpu.features": "SSE3 SSSE3 CX16 SSE4.1 SSE4.2 POPCNT", "machdep.cpu.extfeatures": "LAHF"},
            "x86-64-v2",
        ),
        (
            "x86_64",
            {
                _FEATURES: "SSE3 SSSE3 FMA CX16 SSE4.1 SSE4.2 MOVBE POPCNT XSAVE AVX1.0 F16C",
                "machdep.cpu.leaf7_features": "BMI1 AVX2 BMI2",
                "machdep.cpu.extfeatures": "LAHF LZCNT",
            },
            "x86-64-v3",
        ),
    ],
)
def test_macos_tells_the_level_without_llvm(
    monkeypatch: pytest.MonkeyPatch, machine: str, texts: dict[str, str], level: str
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(cpu, "_sysctl", lambda name: texts.get(name, ""))
    assert cpu.level().name == level


def test_sources_that_were_edited_ask_for_another_library(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "logstore"
    for source in fingerprint.source_paths():
        copy = package / Path(source).relative_to(fingerprint.PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(Path(source).read_bytes())
    before = fingerprint.sources_hash()
    monkeypatch.setattr(fingerprint, "PACKAGE", str(package))
    assert fingerprint.sources_hash() == before
    for folder in fingerprint.FOLDERS:
        source = next((package / folder).glob("[a-z]*.py"))
        source.write_bytes(source.read_bytes() + b"\n")
        assert fingerprint.sources_hash() != before
        before = fingerprint.sources_hash()


def test_the_versions_of_the_compilers_are_those_that_are_installed() -> None:
    import llvmlite
    import numba
    import numpy as np

    found = f"llvmlite {llvmlite.__version__}, numba {numba.__version__}, numpy {np.__version__}"
    assert fingerprint.compiler_versions() == found


def test_without_a_home_directory_there_is_no_relative_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert library.directories() == [f"{fingerprint.PACKAGE}/native/lib"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert library.directories()[1:] == ["/somewhere/logstore"]


def test_the_next_folder_takes_the_library_where_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_object_file", lambda level: b"object")
    monkeypatch.setattr(build, "_linked", lambda content: (content, ".o"))
    (tmp_path / "file").write_bytes(b"")
    path = Path(build.build(_LEVEL, [str(tmp_path / "file" / "lib"), str(tmp_path / "cache")]))
    assert (path.parent, path.read_bytes()) == (tmp_path / "cache", b"object")
    with pytest.raises(KernelBuildError, match=r"no folder to keep the compiled kernels in .*file/lib.*"):
        build.build(_LEVEL, [str(tmp_path / "file" / "lib")])


def test_without_a_linker_the_object_file_is_kept_and_llvm_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_LINKER", ["no-such-linker"])
    source = tmp_path / "answer.c"
    source.write_text("long logstore_answer(void) { return 42; }")
    subprocess.run(["cc", "-c", "-fPIC", "-o", tmp_path / "answer.o", source], check=True)
    content, suffix = build._linked((tmp_path / "answer.o").read_bytes())
    assert suffix == library.OBJECT_SUFFIX
    assert content == (tmp_path / "answer.o").read_bytes()
    script = (
        "import ctypes, sys; from logstore.native import library;"
        f"addresses = library._load({str(tmp_path / 'answer.o')!r})[1];"
        "print(ctypes.CFUNCTYPE(ctypes.c_long)(addresses('logstore_answer'))())"
    )
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout == b"42\n"


def test_a_wheel_brings_a_library_for_each_level(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append([*command[3:], env["NUMBA_CPU_NAME"]])
        return subprocess.CompletedProcess(command, 0, stdout="a path\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(cpu, "levels", lambda: cpu.LEVELS["x86_64"])
    assert library.build_release(str(cache)) == ["a path"] * 2
    assert [words[0] for words in asked] == ["x86-64-v3", "x86-64-v2"]
    assert {(words[1], words[2]) for words in asked} == {("release", str(cache))}


def test_every_kernel_has_an_address_of_its_own() -> None:
    import logstore.kernels.dump.batches  # noqa: F401  # it imports most others

    addresses = {library.function_address(name) for name in KERNELS}
    assert len(addresses) == len(KERNELS) >= 8
    with pytest.raises(RuntimeError, match="has no kernel no_such_kernel"):
        library.function_address("no_such_kernel")


def test_threads_that_need_the_kernels_first_load_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = library._load

    def slow_load(path: str) -> object:
        loads.append(path)
        time.sleep(0.05)
        return load(path)

    monkeypatch.setattr(library, "_loaded", [])
    monkeypatch.setattr(library, "_load", slow_load)
    threads = [threading.Thread(target=library.function_address, args=["scan_batches"]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1


def test_a_child_of_a_fork_loads_the_kernels_though_a_thread_of_its_parent_was_loading_them() -> None:
    program = """
import os, threading
from logstore.native import library
load, is_loading = library._load, threading.Event()
library._load = lambda path: (is_loading.set(), threading.Event().wait())
threading.Thread(target=library.function_address, args=["scan_batches"], daemon=True).start()
is_loading.wait()
child = os.fork()
if child:
    os._exit(os.waitpid(child, 0)[1])
library._load = load
os._exit(0 if library.function_address("scan_batches") else 1)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_nothing_large_is_imported_to_run_a_kernel() -> None:
    library.library_path()
    script = (
        "import ctypes, sys; from logstore.kernels.scan.crc32c import crc32c_range;"
        "print(crc32c_range(b'123456789', 0, 9));"
        "print(sorted({'numpy', 'numba', 'llvmlite', 'multiprocessing', 'concurrent'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment, text=True)
    number, modules = done.stdout.splitlines()
    assert int(number) == 0xE3069283
    assert modules == "[]"


def _zipped(path: Path, *, change: str = "") -> str:
    """Pack the package; return the hash of the kernels' sources that Python finds when it runs from there."""
    root = Path(fingerprint.PACKAGE)
    with zipfile.ZipFile(path, "w") as package:
        for source in sorted(root.rglob("*.py")):
            name = source.relative_to(root.parent).as_posix()
            content = source.read_text() + (change if name.startswith("logstore/kernels/") else "")
            package.writestr(name, content)
    program = f"""
import sys
sys.path.insert(0, {str(path)!r})
from logstore.native import fingerprint
assert fingerprint.PACKAGE.startswith({str(path)!r})
print(fingerprint.sources_hash())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    return done.stdout.strip() or done.stderr


def test_a_library_of_a_zip_goes_by_the_sources_in_it(tmp_path: Path) -> None:
    assert _zipped(tmp_path / "same.zip") == fingerprint.sources_hash()
    assert _zipped(tmp_path / "other.zip", change="\n# newer\n") != fingerprint.sources_hash()


def test_without_sources_no_library_is_taken_for_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in (tmp_path / "stripped", tmp_path / "nowhere.zip" / "logstore"):
        monkeypatch.setattr(fingerprint, "PACKAGE", str(package))
        with pytest.raises(RuntimeError, match=r"sources are not in .*install a wheel"):
            library.find()
        (tmp_path / "stripped").mkdir(exist_ok=True)


def test_a_zip_brings_the_library_beside_its_sources(tmp_path: Path) -> None:
    """As in `--py-files`, where no compiler and no home directory is."""
    built, root = Path(library.library_path()), Path(fingerprint.PACKAGE)
    archive = tmp_path / "logstore.zip"
    with zipfile.ZipFile(archive, "w") as package:
        for path in root.rglob("*"):
            if path.suffix in (".py", ".txt"):
                package.write(path, path.relative_to(root.parent))
        package.write(built, f"logstore/native/lib/{built.name}")
    script = (
        "import sys; sys.path = [path for path in sys.path if path != sys.argv[1]]; sys.path.insert(0, sys.argv[2]);"
        "sys.modules['numba'] = sys.modules['llvmlite'] = None;"
        "from logstore.kernels.scan.crc32c import crc32c_range; from logstore.native import library;"
        "print(crc32c_range(b'123456789', 0, 9), library._loaded[0][0])"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "none"), "PYTHONSAFEPATH": "1"}
    argv = [sys.executable, "-c", script, str(root.parent), str(archive)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.stdout.split() == [str(0xE3069283), f"{archive}/logstore/native/lib/{built.name}"], done.stderr
    assert not (tmp_path / "none").exists()
