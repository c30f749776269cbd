"""A name means one thing, and a folder is no drawer."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.house.sources import Module, product_modules, sample

FOLDER_FILES_MAX = 25
LARGER_FOLDERS = {"logstore/audit", "spark_dumps"}  # to be divided, or to shrink


def repeated_classes(modules: Iterable[Module]) -> list[str]:
    """Names that two classes have, private ones too, with the modules."""
    places = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.path)
    return [f"{name}: {', '.join(paths)}" for name, paths in places.items() if len(paths) > 1]


def crowded_folders(modules: Iterable[Module]) -> list[str]:
    """Folders with more files of their own than one looks through, `__init__` aside."""
    counts = Counter(path.rpartition("/")[0] for path in (module.path for module in modules) if "__init__" not in path)
    return [f"{folder} has {count} files" for folder, count in counts.items() if count > FOLDER_FILES_MAX]


def test_no_two_classes_of_the_product_share_a_name() -> None:
    assert repeated_classes(product_modules()) == []


def test_a_name_that_two_classes_have_is_caught() -> None:
    modules = [
        sample("logstore.disk.one", "class Place: ..."),
        sample("tools.two", "class Place: ...\nclass Other: ..."),
    ]
    assert repeated_classes(modules) == ["Place: logstore/disk/one.py, tools/two.py"]


def test_folders_have_few_files() -> None:
    crowded = {line.partition(" ")[0] for line in crowded_folders(product_modules())}
    assert crowded - LARGER_FOLDERS == set()


def test_a_crowded_folder_is_caught() -> None:
    modules = [sample(f"logstore.disk.file_{number}", "") for number in range(FOLDER_FILES_MAX + 1)]
    assert crowded_folders(modules) == ["logstore/disk has 26 files"]
    assert crowded_folders(modules[1:]) == []
