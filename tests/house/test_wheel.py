"""What the wheel installs: all of the product, under names that are its own."""

from __future__ import annotations

import tomllib
from pathlib import PurePosixPath
from typing import Any

from tests.house.sources import INSTALLED_AS, ROOT, product_modules

NOT_INSTALLED = {".py", ".md"}  # modules come by themselves, decisions are for those who have the sources
BUILT_FOR_THE_WHEEL = PurePosixPath("native/lib")  # setup.py compiles the libraries of a wheel into its own folder
OWN_NAMES = {"logstore", "logstore_tools", "pyspark_kafka_segments", "spark_dumps"}


def settings() -> dict[str, Any]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: dict[str, Any] = configuration["tool"]["setuptools"]
    return found


def foreign(packages: list[str]) -> list[str]:
    """Packages that would be installed under a name that is not ours."""
    return [package for package in packages if package.split(".")[0] not in OWN_NAMES]


def missing(packages: list[str], needed: set[str]) -> list[str]:
    """Packages that have modules and would not be installed."""
    return sorted(needed - set(packages))


def test_no_package_of_a_foreign_name_is_installed() -> None:
    assert foreign(settings()["packages"]) == []
    assert settings()["package-dir"] == {installed: folder for folder, installed in INSTALLED_AS.items()}


def test_every_package_is_installed() -> None:
    needed = {module.package for module in product_modules()}
    assert missing(settings()["packages"], needed) == []
    assert len(set(settings()["packages"])) == len(settings()["packages"])


def test_every_listed_package_is_there() -> None:
    folders = settings()["package-dir"]
    for package in settings()["packages"]:
        root, *inside = package.split(".")
        assert ROOT.joinpath(folders[root], *inside, "__init__.py").exists(), package


def test_every_file_that_is_no_module_is_installed() -> None:
    folders, patterns = settings()["package-dir"], settings()["package-data"]
    for package, folder in folders.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix not in NOT_INSTALLED and "__pycache__" not in path.parts:
                name = PurePosixPath(path.relative_to(ROOT / folder))
                if name.is_relative_to(BUILT_FOR_THE_WHEEL):
                    continue
                assert any(name.match(pattern) for pattern in patterns.get(package, [])), path


def test_a_top_level_tools_and_a_forgotten_package_are_caught() -> None:
    assert foreign(["logstore", "logstore.disk", "tools", "tools.dump", "logstore_tools"]) == ["tools", "tools.dump"]
    assert missing(["logstore"], {"logstore", "logstore.disk"}) == ["logstore.disk"]
