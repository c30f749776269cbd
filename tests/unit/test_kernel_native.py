"""Where the compiled kernels are kept, and when they are made again."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from logstore.kernels import compiler, native
from logstore.kernels.kernel import KERNELS

NAME = "kernels-test.o"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two places where object files are looked for: beside a copy of the sources, and the user's cache."""
    sources = tmp_path / "kernels"
    sources.mkdir()
    for path in native.SOURCES.glob("*.py"):
        (sources / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(native, "SOURCES", sources)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "compile_kernels", lambda: b"machine code")
    return sources / "__pycache__", tmp_path / "cache" / "logstore"


def test_kernels_are_compiled_once_and_kept_beside_the_sources(places: tuple[Path, Path]) -> None:
    path = native.object_file()
    assert (path.parent, path.read_bytes()) == (places[0], b"machine code")
    path.write_bytes(b"found again")
    assert native.object_file().read_bytes() == b"found again"
    assert [each.name for each in places[0].iterdir()] == [path.name]


def test_the_users_cache_takes_them_where_sources_cannot_be_written(places: tuple[Path, Path]) -> None:
    places[0].write_bytes(b"a file where the directory should be")
    assert native.object_file().parent == places[1]
    assert native.object_file().read_bytes() == b"machine code"


def test_no_place_at_all_is_told_with_both_reasons(places: tuple[Path, Path]) -> None:
    places[0].write_bytes(b"")
    places[1].parent.write_bytes(b"")
    with pytest.raises(OSError, match=r"no place to keep the compiled kernels: .*__pycache__.*; .*cache/logstore"):
        native.object_file()


def test_any_change_of_a_source_asks_for_new_kernels(places: tuple[Path, Path]) -> None:
    names = {native.object_file()}
    for path in sorted(native.SOURCES.glob("*.py")):
        path.write_bytes(path.read_bytes() + b"\n")
        names.add(native.object_file())
    assert len(names) == 1 + len(list(native.SOURCES.glob("*.py")))


def test_a_change_of_the_layout_asks_for_new_kernels(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = native.object_file()
    changed = tmp_path / "batch.py"
    changed.write_bytes(native.CONSTANTS[0].read_bytes() + b"\n")
    monkeypatch.setattr(native, "CONSTANTS", [changed])
    assert native.object_file() != before


def test_every_module_that_kernels_take_numbers_from_is_watched() -> None:
    package = native.SOURCES.parent
    taken = set()
    for path in native.SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                taken.add(package.joinpath(*(node.module or "").split(".")).with_suffix(".py"))
    assert taken == set(native.CONSTANTS)


def test_every_kernel_has_an_address_of_its_own() -> None:
    import logstore.kernels.dump_text  # noqa: F401  # the last of the modules, it imports the others

    addresses = {native.function_address(name) for name in KERNELS}
    assert len(addresses) == len(KERNELS) >= 8
    assert 0 not in addresses
