"""Generators of the pages in `docs/reference/`, each from what the product itself says, and of the figures in pages.

    python -m docs.generators              # write the pages anew: `make reference`

A page is stale when its generator would write something else; `tests/stories/test_docs.py` fails then.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"


def pages() -> dict[Path, Callable[[], str]]:
    """Return the text of each generated page, by its path."""
    from . import api, benchmarks, commands, configurations, errors, findings, rows

    makers = {
        "api": api.page,
        "commands": commands.page,
        "configurations": configurations.page,
        "errors": errors.page,
        "findings": findings.page,
        "rows": rows.page,
    }
    return {REFERENCE / f"{name}.md": make for name, make in makers.items()} | benchmarks.pages()
