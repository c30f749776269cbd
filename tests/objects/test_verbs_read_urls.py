"""Every verb that reads prints of a URL what it prints of the local copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore_tools.commands import logstore
from tests.conformance.dumping import answer
from tests.support.golden import Golden
from tests.support.object_store import ObjectStore

LOG = "orders-0/00000000000000000000.log"
NOW = ["--now", "1760000000000"]
DUMPS = [
    ["--files", f"{{}}/{LOG}"],
    ["--print-data-log", "--files", f"{{}}/{LOG},{{}}/orders-0/00000000000000000000.timeindex"],
    ["{}"],
    ["{}/orders-0", "--deep-iteration"],
    ["{}/orders-*"],
    ["--isolation-level", "read_committed", "{}/orders-0"],
    ["--transactional-id", "billing-1", "{}/orders-0"],
    ["--format", "jsonl", "--offset", "10:20", "{}/orders-0"],
    ["{}/orders-0/00000000000000000009.log"],
    ["{}/nothing-*"],
]
VERBS = [
    ["topics", "{}"],
    ["segments", "{}"],
    ["segments", "{}/orders-0"],
    ["groups", "{}"],
    ["producers", "{}"],
    ["producers", "{}/orders-0"],
    ["verify", "{}"],
    ["verify", "--checksums-only", "{}/orders-0", "{}/payments-0"],
    ["audit", "{}", *NOW],
    ["txns", "list", "{}", *NOW],
    ["txns", "hanging", "{}", *NOW],
    ["txns", "explain", "{}/orders-0", *NOW],
    ["diff", "{}/orders-0", "{}/orders-0"],
    ["verify", "{}/orders-*"],
    ["segments", "{}/orders-0", "{}/orders-0/"],
    ["topics", "{}/orders-0"],
    ["verify", "{}/ordres-0"],
]


@pytest.mark.parametrize("words", DUMPS, ids=" ".join)
def test_a_dump_of_a_url_is_the_dump_of_the_copy(
    words: list[str], store: ObjectStore, demo: str, golden: Golden
) -> None:
    local = str(golden("demo"))
    expected, found = (answer([word.format(place, place) for word in words]) for place in (local, demo))
    if expected[0] == 0:
        assert tuple(str(part).replace(demo, local) for part in found) == tuple(map(str, expected))
    else:  # the reason is the store's
        assert (found[0], found[1].replace(demo, local)) == expected[:2]
        assert demo in found[2]
        assert found[2].count("\n") == 1


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_prints_of_a_url_what_it_prints_of_the_copy(
    words: list[str], store: ObjectStore, demo: str, golden: Golden
) -> None:
    local = str(golden("demo"))
    results = [
        CliRunner().invoke(logstore, [*(word.format(place) for word in words), "--format", "csv"])
        for place in (local, demo)
    ]
    expected, found = ((result.exit_code, result.stdout.replace(demo, local)) for result in results)
    assert found == expected, results[1].output
    if expected[0] < 2:
        assert results[1].stderr.replace(demo, local) == results[0].stderr


def test_a_report_of_a_url_is_the_page_of_the_copy(
    store: ObjectStore, demo: str, golden: Golden, tmp_path: Path
) -> None:
    local, pages = str(golden("demo")), []
    for place in (local, demo):
        page = tmp_path / "page.html"
        result = CliRunner().invoke(logstore, ["report", place, "--output", str(page), *NOW])
        assert result.exit_code == 0, result.output
        pages.append(page.read_text().replace(demo, local))
    assert pages[1] == pages[0]
