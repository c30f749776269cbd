"""The report as a person sees it, in a real browser: bars as long as what they stand for, nothing over something else,
nothing outside of the window, by day and by night; and whatever is in a log, it stays text."""

from __future__ import annotations

import os
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from logstore.audit.directory_audit import AuditedDirectory, audit_directory
from logstore_tools.report import page
from logstore_tools.report.partitions import ROW_COUNT_MAX
from logstore_tools.report.scale import time_span
from tests.stories.browser import Browser, browser
from tests.support.audit_story import EMPTY, Story
from tests.support.audit_twenty_faults import plant_in_coordinators, plant_in_files, plant_in_logs
from tests.support.golden import AFTER_GOLDEN_MS, Golden
from tests.support.offset_ranges import each_range
from tests.support.sampling import sampled

__all__ = ["browser"]

MANY = 2000  # partitions
WIDTHS = [340, 720, 1300]
LONG_TOPIC = "a-topic-name-that-is-as-long-as-kafka-lets-it-be." * 5
HOSTILE = [
    "<script>document.title=1</script>",
    '"><img src=x onerror=document.title=1>',
    "a" * 5000,
    "\u202eevil",
    "\0&amp;",
]


def written(root: Path, now_ms: int, place: Path) -> tuple[Path, AuditedDirectory]:
    audited = audit_directory(str(root), now_ms)
    path = place / "report.html"
    path.write_text(page(str(root), audited, now_ms))
    return path, audited


def twenty_faults(root: Path) -> tuple[Path, int]:
    story = Story()
    plant_in_logs(story)
    plant_in_coordinators(story)
    for topic in ("rotten", "indexed", "epochs"):
        for _ in range(3):
            story.plain(f"{topic}-0", 2)
    story.write(root)
    plant_in_files(root)
    return root, story.now_ms + 1000


def many_partitions(root: Path, count: int, topic: str) -> tuple[Path, int]:
    """Transactions in each, of producers with hostile names; in every seventh one hangs."""
    story = Story()
    for number in range(count):
        name, producer = f"{topic}-{number}", (100 + number % len(HOSTILE), 0)
        story.plain(name, 3)
        for index in range(4):
            story.data(name, producer, index * 2, 2)
            story.marker(name, producer, commit=index % 2 == 0)
        if number % 7 == 0:
            story.data(name, (1000 + number, 0), 0, 3)
            story.plain(name, 4)
    for index, transactional_id in enumerate(HOSTILE):
        story.state(transactional_id, (100 + index, 0), EMPTY)
    return story.write(root), story.now_ms + 1000


def assert_is_in_order(seen: dict[str, Any]) -> None:
    """Nothing outside, nothing over something else, no script but the page's own."""
    assert seen["scrollWidth"] <= seen["width"]
    assert seen["outside"] == []
    assert seen["overlaps"] == []
    assert seen["misaligned"] == 0
    assert (seen["foreign"], seen["handlers"], seen["scripts"]) == (0, 0, 1)
    assert all(link.startswith("#") for link in seen["links"])


def merged(bars: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Neighbours of one name made one."""
    groups = [list(group) for _, group in groupby(bars, key=lambda bar: bar[0])]
    return [(group[0][0], group[0][1], group[-1][2]) for group in groups]


def section_of(seen: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in seen["sections"] if one["name"] == name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(("demo", "compacted", "killed", "records"), ("demo",)))
def test_the_report_of_a_brokers_directory_is_in_order_at_any_width(
    name: str, golden: Golden, browser: Browser, tmp_path: Path
) -> None:
    path, audited = written(golden(name), AFTER_GOLDEN_MS, tmp_path)
    for seen in browser.measure(path, WIDTHS):
        assert_is_in_order(seen)
        assert seen["verdict"] == "verdict fine"
        assert "Nothing is wrong." in seen["text"]
        assert seen["findings"] == []
        assert len(seen["sections"]) == seen["rows"] == len(audited.partitions)
    assert browser.load(path).console == []


@pytest.mark.slow
def test_bars_are_as_long_as_what_they_stand_for(golden: Golden, browser: Browser, tmp_path: Path) -> None:
    path, audited = written(golden("transactions"), AFTER_GOLDEN_MS, tmp_path)
    (seen,) = browser.measure(path, [1300])
    assert any(history.transactions for history in audited.transactions.histories.values())
    for one in audited.partitions:
        key = (one.partition.files.topic, one.partition.files.partition)
        view, history = audited.groups.view(*key), audited.transactions.histories[key]
        section = section_of(seen, one.partition.name)
        expected_map = merged([(r.label.value, r.start / view.end, r.end / view.end) for r in each_range(view.ranges)])
        drawn_map = [(bar["name"], bar["x"], bar["x"] + bar["width"]) for bar in section["map"]]
        assert [bar[0] for bar in drawn_map] == [bar[0] for bar in expected_map]
        assert [bar[1:] for bar in drawn_map] == [pytest.approx(bar[1:], abs=0.002) for bar in expected_map]
        assert section["stable"] == ([pytest.approx(view.stable_end / view.end, abs=0.002)] if view.end else [])
        assert all(bar["color"] == section["mapColors"][bar["name"]] for bar in section["map"])
        timed = history.transactions
        assert len(section["tracks"]) == len(timed)
        assert len(section["waits"]) == len(history.open_transactions)
        if timed:
            start, end = time_span([time for part in timed for time in (part.first_timestamp, part.end_timestamp)])
            is_cut = end < max(part.end_timestamp for part in timed)
            span = (end if is_cut else max(end, history.largest_timestamp)) - start
            expected = sorted(min(max((part.first_timestamp - start) / span, 0), 1) for part in timed)
            assert sorted(bar["x"] for bar in section["tracks"]) == [pytest.approx(x, abs=0.003) for x in expected]
            assert all(bar["pixels"] >= 3 and bar["x"] + bar["width"] < 1.01 for bar in section["tracks"])
            assert all(wait["x"] + wait["width"] == pytest.approx(1, abs=0.01) for wait in section["waits"])
        sizes = [
            sum(os.path.getsize(path) for path in (s.log, s.offset_index, s.time_index, s.transaction_index) if path)
            for s in one.partition.files.segments
        ]
        drawn = [sum(part["width"] for part in bar) for bar in section["sizes"]]
        assert drawn == [pytest.approx(size / max(*sizes, 1), abs=0.01) for size in sizes]


@pytest.mark.slow
def test_axes_are_read_with_their_units(golden: Golden, browser: Browser, tmp_path: Path) -> None:
    path, _ = written(golden("demo"), AFTER_GOLDEN_MS, tmp_path)
    narrow, wide = (section_of(seen, "orders-0")["ticks"] for seen in browser.measure(path, [340, 1300]))
    assert wide[:5] == ["10", "20", "30", "offset 0", "38"]
    assert narrow[:2] == ["offset 0", "38"]
    assert all(re.fullmatch(r"0|\+[\d.]+ (ms|s)", tick) for tick in wide[5:])
    assert len(wide[5:]) > 3


@pytest.mark.parametrize("is_dark", sampled([False, True], [True]), ids=["light", "dark"])
def test_findings_are_seen_first_and_read_by_day_and_by_night(is_dark: bool, browser: Browser, tmp_path: Path) -> None:
    root, now_ms = twenty_faults(tmp_path / "data")
    path, audited = written(root, now_ms, tmp_path)
    for seen in browser.measure(path, WIDTHS, is_dark=is_dark):
        assert_is_in_order(seen)
        assert seen["verdict"] == "verdict error"
        assert "15 errors and 5 warnings found." in seen["text"]
        shown = {one["rule"]: one for one in seen["findings"]}
        assert shown.keys() == {finding.rule for finding in audited.findings}
        for finding in audited.findings:
            words = re.sub(r"\s+", " ", shown[finding.rule]["text"])
            assert finding.advice.replace("`", "") in words
            assert finding.found in words
            assert shown[finding.rule]["height"] > 50
        wrong = {f"{finding.where.topic}-{finding.where.partition}" for finding in audited.findings}
        assert {one["name"] for one in seen["sections"][: len(wrong)]} == wrong
        assert all(section_of(seen, name)["isOpen"] for name in wrong)
        paper, ink = (sum(map(int, re.findall(r"\d+", seen[name])[:3])) / 3 for name in ("paper", "ink"))
        assert (paper < 60 and ink > 200) if is_dark else (paper > 200 and ink < 60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "topic"), [(1, "orders"), (30, LONG_TOPIC), pytest.param(MANY, "orders", marks=pytest.mark.long)]
)
def test_one_partition_or_many_with_names_as_long_as_can_be(
    count: int, topic: str, browser: Browser, tmp_path: Path
) -> None:
    root, now_ms = many_partitions(tmp_path / "data", count, topic)
    path, audited = written(root, now_ms, tmp_path)
    assert path.stat().st_size < 5_000_000
    hanging = (count + 6) // 7
    for seen in browser.measure(path, [1300] if count == MANY else WIDTHS):
        assert_is_in_order(seen)
        assert f"{len(audited.findings)} error" in seen["text"]
        assert len(audited.findings) == hanging
        assert f"--topic {topic} --partition 0 --start-offset 15" in seen["text"]  # to be copied, whole
        assert len(seen["sections"]) == min(count + 1, 200)
        assert [one["isOpen"] for one in seen["sections"][:hanging]] == [True] * min(hanging, 200)


SHOWN = """
  const shown = () => all("#partitions tbody tr").filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
  const sort = (name) => all("#partitions .sort").find((one) => one.textContent === name).click();
  const type = (words) => { search.value = words; search.dispatchEvent(new Event("input")); };
"""


@pytest.mark.slow
def test_tables_are_searched_and_sorted_by_the_pages_own_script(browser: Browser, tmp_path: Path) -> None:
    root, now_ms = many_partitions(tmp_path / "data", 60, "orders")
    path, _ = written(root, now_ms, tmp_path)
    folded = browser.ask(path, f"{SHOWN} return shown();")
    assert len(folded) == ROW_COUNT_MAX
    up, down = browser.ask(
        path, f"{SHOWN} sort('partition'); const up = shown(); sort('partition'); return [up, shown()];"
    )
    assert up[:3] == ["__transaction_state-0", "orders-0", "orders-1"]
    assert down[:3] == ["orders-59", "orders-58", "orders-57"]  # what was folded too, by number and not by letter
    ends = browser.ask(path, f"{SHOWN} sort('log end'); return [shown()[0], shown().at(-1)];")
    assert ends[0] == "__transaction_state-0"
    found, findings, pictures, after = browser.ask(
        path,
        f"""{SHOWN} type("Orders-5"); const found = shown();
        const findings = all(".finding tbody tr").filter((row) => !row.hidden).length;
        const pictures = all("details.partition").filter((one) => !one.hidden).length;
        type(""); return [found, findings, pictures, shown().length];""",
    )
    assert sorted(found) == ["orders-5", *(f"orders-{number}" for number in range(50, 60))]
    assert (findings, pictures, after) == (1, 11, ROW_COUNT_MAX)  # orders-56 hangs
    everything = browser.ask(path, f'{SHOWN} document.querySelector("#partitions .show").click(); return shown();')
    assert len(everything) == 61


@pytest.mark.long
def test_the_page_says_the_same_without_a_script(browser: Browser, tmp_path: Path) -> None:
    root, now_ms = many_partitions(tmp_path / "data", 60, "orders")
    path, _ = written(root, now_ms, tmp_path)
    (seen,) = browser.measure(path, [1300])
    path.write_text(re.sub("<script>.*?</script>", "<script></script>", path.read_text(), flags=re.DOTALL))
    (bare,) = browser.measure(path, [1300])
    assert_is_in_order(bare)
    assert [one["rule"] for one in bare["findings"]] == [one["rule"] for one in seen["findings"]]
    assert len(bare["sections"]) == len(seen["sections"]) == 61
    assert "logstore txns explain" in bare["text"]


@pytest.mark.slow
def test_a_command_is_copied_by_a_button(browser: Browser, tmp_path: Path) -> None:
    root, now_ms = many_partitions(tmp_path / "my data", 1, "orders")
    path, _ = written(root, now_ms, tmp_path)
    script = 'const line = document.querySelector(".command"); line.querySelector(".copy").click();'
    assert browser.ask(path, f"{script} return String(getSelection());") == f"logstore txns explain '{root}/orders-0'"


def test_names_from_disk_stay_text_in_the_report(browser: Browser, tmp_path: Path) -> None:
    root, now_ms = many_partitions(tmp_path / "<b onclick=x>&", len(HOSTILE), "orders")
    for name in ('<img src=x onerror="document.title=1">-0', os.fsdecode(b"\xff\xfe-0")):
        (root / name).mkdir()
        (root / name / "partition.metadata").write_text("version: 0\n")  # without an id: a finding
    path, audited = written(root, now_ms, tmp_path)
    assert len(audited.findings) > 1
    for seen in browser.measure(path, [1300]):
        assert_is_in_order(seen)
        for words in (*HOSTILE[:2], r"\u202eevil", r"\u0000&amp;", "<b onclick=x>&", "a" * 20):
            assert words in seen["text"]
        assert "\u202e" not in seen["text"]
    assert browser.load(path).console == []
    assert "\u202e" not in path.read_text()


def test_a_script_that_got_in_would_not_run(browser: Browser, golden: Golden, tmp_path: Path) -> None:
    path, _ = written(golden("demo"), 0, tmp_path)
    script = (
        "<script>document.title = 'it ran'</script><img src=http://127.0.0.1:9/x onerror=\"document.title='it ran'\">"
    )
    path.write_text(path.read_text().replace("</body>", f"{script}</body>"))
    loaded = browser.load(path)
    assert "<title>it ran" not in loaded.markup
    assert len(loaded.console) >= 2
    assert all("Content Security Policy" in line for line in loaded.console)
