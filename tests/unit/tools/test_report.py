"""The report is one page of well-formed markup with a picture for all there is, and nothing that leads out of it."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

from click.testing import CliRunner

from logstore.audit.directory_audit import audit_directory
from logstore.audit.facts.offsets import Label, OffsetRange, ReadableOffsets
from logstore.audit.facts.transactions import PartitionTransaction
from logstore_tools.check_commands import report as command
from logstore_tools.report import page
from logstore_tools.report.findings import FOLDED_COUNT_MAX, PLACE_COUNT_MAX
from logstore_tools.report.pictures import BAR_COUNT_MAX, Placed, columns, legend, mini_map, offset_map, timeline
from logstore_tools.report.scale import offset_axis, time_axis
from tests.support.audit_story_faults import clean, hanging_unknown
from tests.support.golden import Golden


class Outline(HTMLParser):
    """Checks that elements close in order, and keeps their names and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def outline_of(text: str) -> Outline:
    outline = Outline()
    outline.feed(text)
    outline.close()
    assert outline.open == []
    return outline


def test_a_page_shows_each_partition_and_leads_nowhere(golden: Golden) -> None:
    root = str(golden("demo"))
    audited = audit_directory(root, 0)
    outline = outline_of(page(root, audited, 0))
    names = {one.partition.name for one in audited.partitions}
    assert names <= set(outline.texts)
    assert outline.seen.count("details") == len(names)
    assert {link[:2] for link in outline.links} == {"#p"}
    assert "script" not in outline.seen
    assert "Nothing is wrong." in outline.texts
    assert {"billing-1", "left-open"} <= set(outline.texts)


def test_findings_come_with_advice_and_are_escaped(tmp_path: Path) -> None:
    story = hanging_unknown()
    root = str(story.write(tmp_path / "<b>&"))
    audited = audit_directory(root, story.now_ms)
    text = page(root, audited, story.now_ms)
    outline = outline_of(text)
    assert text.count("<b>") == text.count("<b>What to do:</b>") == 2
    assert "transaction-hanging ×1" in outline.texts
    for part in re.split("`", audited.findings[0].advice):
        assert any(part in words for words in outline.texts)


def test_many_places_of_a_rule_are_folded_and_some_are_left_out(tmp_path: Path) -> None:
    story = clean()
    for number in range(FOLDED_COUNT_MAX + 7):
        story.data("orders-0", (1000 + number, 0), 0)
    root = str(story.write(tmp_path / "data"))
    audited = audit_directory(root, story.now_ms)
    text = page(root, audited, story.now_ms)
    assert f"{FOLDED_COUNT_MAX + 7} errors found." in text
    assert f"{FOLDED_COUNT_MAX + 7 - PLACE_COUNT_MAX} more places" in text
    assert f"{FOLDED_COUNT_MAX - PLACE_COUNT_MAX} more places" not in text
    assert text.count("7 more are left out here") == text.count("7 younger ones are left out") == 1
    assert text.count("a coordinator that knows of it") == FOLDED_COUNT_MAX


def test_an_offset_map_starts_where_the_log_starts_and_hides_no_alarm() -> None:
    committed, aborted = Label.COMMITTED, Label.ABORTED
    ranges = tuple(OffsetRange(i, i + 1, aborted if i % 10 == 0 else committed, 1) for i in range(20_000))
    view = ReadableOffsets(0, 15_000, 20_000, ranges)
    outline_of(offset_map(view))
    assert columns(view, 1000) == [(0, 1000, "committed")]  # a column is twenty offsets, most of each are committed
    lost = (ranges[0]._replace(end=500_000), OffsetRange(500_000, 500_001, Label.LOST, 0))
    lost = (*lost, OffsetRange(500_001, 10**6, committed, 499_999))
    assert columns(ReadableOffsets(0, 10**6, 10**6, lost), 100)[1] == (50, 51, "lost")
    halves = (OffsetRange(0, 50, Label.RETENTION, 0), OffsetRange(50, 75, committed, 25))
    late = ReadableOffsets(50, 75, 100, (*halves, OffsetRange(75, 100, Label.OPEN, 25)))
    assert columns(late, 1000) == [(0, 500, "committed"), (500, 1000, "open")]
    assert "offset 50<" in offset_map(late)
    assert "retention" not in legend(late)
    assert "No record" in offset_map(ReadableOffsets(100, 100, 100, halves))
    assert mini_map(late).count("<rect") == 2


def test_a_timeline_has_a_bar_for_each_transaction(golden: Golden) -> None:
    audited = audit_directory(str(golden("demo")), 0)
    history = audited.transactions.histories["orders", 0]
    placed = [Placed("orders-0", one) for one in history.transactions]
    text = timeline(placed, audited.transactions.log.owners)
    outline_of(text)
    assert text.count('height="10"') == len(placed) > 10
    assert {"committed", "aborted", "open", "open wait"} == set(re.findall(r'<rect [^>]*class="([^"]*)"', text))
    assert timeline([], {}) == ""


def test_a_timeline_keeps_what_waits_longest_and_tells_what_it_leaves_out() -> None:
    def transaction(number: int, *marker: int) -> Placed:
        return Placed("t-0", PartitionTransaction(number, 0, number, number, number * 1000, number * 1000, 1, *marker))

    decided = [transaction(n, n, 0, 0, True, n * 1000 + 1) for n in range(100, 100 + BAR_COUNT_MAX)]
    waiting = [transaction(n) for n in range(5)]
    text = timeline([*decided, *waiting], {})
    assert re.findall(r"<bdi>(.*?)</bdi>", text)[:7] == [f"producer {n}" for n in (0, 1, 2, 3, 4, 1599, 1598)]
    assert "Shown are 30 of 1,505 transactions, of 30 producers" in text
    timeless = Placed("t-0", PartitionTransaction(1, 0, 0, 0, -1, -1, 1))
    assert "tell no time" in timeline([timeless], {})


def test_timestamps_of_any_size_are_drawn() -> None:
    ends = [Placed("t-0", PartitionTransaction(1, 0, n, n, time, time, 1)) for n, time in enumerate((0, 2**63 - 1))]
    text = timeline(ends, {})
    outline_of(text)
    assert len(text) < 3000
    assert len(re.findall("<line", offset_axis(2**63 - 10**6, 2**63 - 1))) < 10


def test_ticks_stand_at_round_offsets_and_never_too_close() -> None:
    assert re.findall(r">([^<>]+)</text>", offset_axis(0, 38)) == ["10", "20", "30", "offset 0", "38"]
    assert re.findall(r">([^<>]+)</text>", offset_axis(95, 101)) == ["96", "98", "100", "offset 95", "101"]
    assert "100" not in re.findall(r">([^<>]+)</text>", offset_axis(0, 101))
    assert re.findall(r">([^<>]+)</text>", time_axis(3000)) == ["+1 s", "+2 s", "0", "+3 s"]


def test_the_command_writes_the_page_and_exits_with_what_it_found(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path / "data")
    output = tmp_path / "report.html"
    result = CliRunner().invoke(command, [str(root), "-o", str(output), "--now", str(story.now_ms)])
    assert (result.exit_code, result.output) == (0, f"{output}: 0 findings\n")
    assert outline_of(output.read_text()).texts
    (root / "orders-0" / "leader-epoch-checkpoint").unlink()
    assert CliRunner().invoke(command, [str(root), "-o", str(output), "--now", str(story.now_ms)]).exit_code == 1


def test_a_partition_that_the_cluster_lacks_is_told_and_not_drawn(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("transactions"), tmp_path / "data")
    shutil.copytree(root / "orders-1", root / "orders-9")
    result = CliRunner().invoke(command, [str(root), "-o", str(tmp_path / "page.html")], catch_exceptions=False)
    assert result.exit_code == 1
    assert "partition-unknown" in (tmp_path / "page.html").read_text()
