"""The golden files are the ones that PROVENANCE.md speaks of."""

from __future__ import annotations

import pytest

from tests.golden.archive import GOLDEN, NAMES, answers, read_rows, stored, unpack
from tests.golden.provenance import PROVENANCE, hashes, recorded_hashes

MOST_BYTES = 3_000_000


def test_every_stored_file_has_its_recorded_hash() -> None:
    assert recorded_hashes() == hashes()


def test_every_directory_is_described() -> None:
    text = PROVENANCE.read_text()
    assert [name for name in NAMES if f"\n| `{name}` |" not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_directory_has_answers_about_its_files(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = unpack(name, tmp_path_factory.mktemp("golden"))
    files = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    asked = {word for row in read_rows(answers(name)) for word in row["argv"]}
    assert files
    assert files - asked == set()
    assert stored(name).exists()


def test_the_golden_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < MOST_BYTES
