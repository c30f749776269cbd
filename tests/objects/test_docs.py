"""The page about object stores does what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.pages import ROOT, run_page
from tests.support.golden import Golden
from tests.support.object_store import ObjectStore


@pytest.mark.slow
def test_the_page_does_what_it_shows(
    store: ObjectStore, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_all(golden("demo"), "data")
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / "docs" / "how-to" / "object-stores.md", tmp_path) > 3
