"""The report is one page of well-formed markup with a picture for all there is, and nothing that leads out of it."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from itertools import chain, pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from logstore.audit.checks import BY_NAME
from logstore.audit.directory_audit import audit_directory
from logstore.audit.facts.offsets import Label, ReadableOffsets
from logstore.audit.facts.transactions import PartitionTransaction
from logstore.audit.finding import Finding, Where
from logstore_tools.check_commands import report as command
from logstore_tools.commands import logstore
from logstore_tools.report import page
from logstore_tools.report.commands import next_command, shell_quoted
from logstore_tools.report.findings import FOLDED_COUNT_MAX, PLACE_COUNT_MAX, findings_section
from logstore_tools.report.pictures import BAR_COUNT_MAX, Placed, columns, legend, mini_map, offset_map, timeline
from logstore_tools.report.scale import offset_axis, time_axis
from tests.support.audit_story import ONGOING, TIMEOUT_MS, Story
from tests.support.audit_story_faults import AT_A, FAULTS, clean, hanging_unknown
from tests.support.golden import AFTER_GOLDEN_MS, Golden
from tests.support.offset_ranges import MadeRanges, OffsetRange


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
    assert {link[:1] for link in outline.links} == {"#"}
    assert outline.seen.count("script") == 1
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


def test_the_title_says_whose_directory_it_is_and_when_it_was_looked_at(golden: Golden) -> None:
    root = str(golden("demo"))
    text = page(root, audit_directory(root, AFTER_GOLDEN_MS), AFTER_GOLDEN_MS)
    title = f"Cluster bG9nc3RvcmUtZ29sZGVuLQ, node 1, {root}, 2026-11-21 07:43:20.000Z"
    assert re.findall("<title>(.*?)</title>", text)[0] == f"logstore report: {title}"
    assert f"<h1><bdi>{root}</bdi></h1>" in text
    assert "node not known" in page(f"{root}/nowhere", audit_directory(root, 0), 0)


def test_contents_lead_to_all_sections_that_are_there(golden: Golden, tmp_path: Path) -> None:
    story = hanging_unknown()
    root = str(story.write(tmp_path / "data"))
    text = page(root, audit_directory(root, story.now_ms), story.now_ms)
    contents = re.findall('<li><a href="#([^"]*)">([^<]*)</a>', text)
    assert contents == re.findall('<section id="([^"]*)"><h2>([^<]*)<', text)
    assert [name for name, _ in contents] == ["findings", "open", "transactions", "partitions", "pictures"]
    quiet = str(golden("compacted"))
    assert '<a href="#findings">' not in page(quiet, audit_directory(quiet, 0), 0)


def finding(rule: str, path: str, found: str = "nothing", offset: int | None = None) -> Finding:
    known = BY_NAME[rule]
    return Finding(rule, known.severity, Where(path, "orders", 0, None, offset), "it", found, known.advice)


def test_a_finding_names_its_partition_and_file_once() -> None:
    log = "/data/orders-0/00000000000000000000.log"
    text = findings_section([finding("log-unreadable", log, f"{log}: Permission denied")], "/data")
    (row,) = re.findall("<tbody>(.*?)</tbody>", text)
    assert re.findall("<td[^>]*>(.*?)</td>", row) == [
        "<bdi>orders-0</bdi>",
        "<bdi>00000000000000000000.log</bdi>",
        "it",
        "Permission denied",
    ]
    around = findings_section([finding("checkpoint-offset", "/data/recovery-point-offset-checkpoint")], "/data")
    assert re.findall("<bdi>(.*?)</bdi>", around) == ["orders-0", "recovery-point-offset-checkpoint"]
    checkpoint = "/data/cleaner-offset-checkpoint"
    malformed = findings_section(
        [finding("checkpoint-format", checkpoint, f"Malformed line in file [{checkpoint}]: x")], "/data"
    )
    assert "Malformed line in file: x" in malformed


@pytest.mark.parametrize(
    ("rule", "path", "command"),
    [
        ("transaction-hanging", "orders-0", "logstore txns explain '/my data/orders-0'"),
        ("marker-late", "orders-0", "logstore txns explain '/my data/orders-0'"),
        ("log-crc", "orders-0/x.log", "logstore salvage '/my data/orders-0' --dry-run"),
        ("time-index", "orders-0/x.timeindex", "logstore repair '/my data/orders-0' --dry-run"),
        ("offsets-lost", "orders-0/x.log", "logstore diff '/my data/orders-0' …/orders-0"),
        ("sequence-duplicate", "orders-0/x.log", "logstore dump '/my data/orders-0' --offset 7"),
        ("checkpoint-offset", "recovery-point-offset-checkpoint", "logstore diff '/my data/orders-0' …/orders-0"),
        ("chain-ahead", "orders-0", "logstore groups '/my data'"),
        ("partition-metadata", "orders-0", "logstore promote '/my data' --dry-run"),
    ],
)
def test_each_finding_has_a_next_command(rule: str, path: str, command: str) -> None:
    assert next_command(finding(rule, f"/my data/{path}", offset=7), "/my data") == command
    assert f"<code>{command.replace(chr(39), '&#x27;')}</code>" in findings_section(
        [finding(rule, f"/my data/{path}", offset=7)], "/my data"
    )


def test_next_commands_are_commands_of_the_command_line() -> None:
    for rule in BY_NAME:
        command = shlex.split(next_command(finding(rule, "/data/orders-0/x.log", offset=7), "/data"))
        context = click.Context(logstore)
        verb = logstore.get_command(context, command[1])
        if isinstance(verb, click.Group):
            verb = verb.get_command(context, command[2])
        assert command[0] == "logstore"
        assert verb is not None
        options = {option for one in verb.params for option in one.opts}
        assert command[1] == "dump" or {word for word in command if word.startswith("--")} <= options


@pytest.mark.parametrize("name", ["plain", "my data", "it's", "$(x) `x`", "\x1b[31m\n\u202e", "\udcff\\", "'\x9b'"])
def test_a_shell_gets_the_path_that_was_quoted(name: str) -> None:
    command = f"printf %s {shell_quoted(name)}"
    assert command.isprintable()
    assert subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout == os.fsencode(name)


def verdict_of(root: Path, now_ms: int) -> str:
    return re.findall('<div class="verdict (.*?)</div>', page(str(root), audit_directory(str(root), now_ms), now_ms))[0]


@pytest.mark.parametrize("make", [clean, *chain.from_iterable(FAULTS.values())], ids=lambda make: make.__name__)
@pytest.mark.parametrize("wait_ms", [0, 10 * TIMEOUT_MS])
def test_what_blocks_readers_is_never_under_a_green_headline(
    make: Callable[[], Story], wait_ms: int, tmp_path: Path
) -> None:
    story = make()
    root, now_ms = story.write(tmp_path / "data"), story.now_ms + wait_ms
    audited = audit_directory(str(root), now_ms)
    overdue = [one for one in audited.transactions.open if one.age_ms > TIMEOUT_MS]
    is_green = verdict_of(root, now_ms).startswith("fine")
    assert is_green == (not audited.findings and not overdue)


def test_a_transaction_is_in_order_within_its_timeout_and_no_longer(golden: Golden) -> None:
    root, late_ms = golden("demo"), AFTER_GOLDEN_MS + 600_000
    young, late = verdict_of(root, AFTER_GOLDEN_MS), verdict_of(root, late_ms)
    assert young.startswith('fine"><strong>Nothing is wrong.')
    assert "2 open transactions hold back 2 partitions, none of them overdue" in young
    assert not audit_directory(str(root), late_ms).findings  # no broker runs that could have aborted it
    assert late.startswith('warning"><strong>read_committed consumers are held back.')
    assert "2 open transactions hold back 2 partitions, 2 of them overdue" in late


def test_what_was_not_asked_is_said_beside_the_headline(tmp_path: Path) -> None:
    story = clean()
    story.plain("orders-0", offset=story.end("orders-0") + 3)
    root = story.write(tmp_path / "data")
    (root / "cleaner-offset-checkpoint").unlink()
    text = page(str(root), audit_directory(str(root), story.now_ms), story.now_ms)
    words = "Not asked: offsets-lost in 1 partition: cleaner-offset-checkpoint is missing or unreadable."
    assert f'<p class="note">{words}</p>' in text


def test_no_control_of_a_terminal_or_of_direction_gets_onto_the_page(tmp_path: Path) -> None:
    controls = [*map(chr, (*range(0x20), *range(0x7F, 0xA0))), *"\u061c\u200e\u200f\u2028\u2029"]
    controls += map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xE0001))
    story, name = hanging_unknown(), "".join(one for one in controls if one not in "\0/")
    story.state(f"id{''.join(controls)}", (55, 0), ONGOING, [AT_A])
    root = story.write(tmp_path / name[:60] / name[60:])
    properties = name.encode("unicode_escape").decode().replace("\\x", "\\u00")
    (root / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id=c{properties}\n")
    text = page(str(root), audit_directory(str(root), story.now_ms), story.now_ms)
    assert "\\u202e" in text
    assert "\\xe2\\x80\\xae" in text  # of a path, in commands
    assert not {one for one in controls if one != "\n" and one in text}
    assert all(
        "\n" not in words for words in re.findall("<bdi>(.*?)</bdi>|<code>(.*?)</code>", text) for words in words
    )


def test_only_the_pages_own_script_may_run(golden: Golden) -> None:
    root = str(golden("demo"))
    text = page(root, audit_directory(root, 0), 0)
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    assert not re.search(r"fetch|XMLHttp|WebSocket|import|https?:|localStorage|innerHTML|eval", script)


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


def drawn(placed: Sequence[Placed], names: dict[int, str]) -> str:
    return timeline(placed, names, until_ms=-1, count=len(placed))


def test_an_offset_map_starts_where_the_log_starts_and_hides_no_alarm() -> None:
    committed, aborted = Label.COMMITTED, Label.ABORTED
    ranges = tuple(OffsetRange(i, i + 1, aborted if i % 10 == 0 else committed, 1) for i in range(20_000))
    view = ReadableOffsets(0, 15_000, 20_000, MadeRanges(ranges))
    outline_of(offset_map(view))
    assert columns(view, 1000) == [(0, 1000, "committed")]  # a column is twenty offsets, most of each are committed
    lost = (ranges[0]._replace(end=500_000), OffsetRange(500_000, 500_001, Label.LOST, 0))
    lost = (*lost, OffsetRange(500_001, 10**6, committed, 499_999))
    assert columns(ReadableOffsets(0, 10**6, 10**6, MadeRanges(lost)), 100)[1] == (50, 51, "lost")
    halves = (OffsetRange(0, 50, Label.RETENTION, 0), OffsetRange(50, 75, committed, 25))
    late = ReadableOffsets(50, 75, 100, MadeRanges((*halves, OffsetRange(75, 100, Label.OPEN, 25))))
    assert columns(late, 1000) == [(0, 500, "committed"), (500, 1000, "open")]
    assert "offset 50<" in offset_map(late)
    assert "retention" not in legend(late)
    assert "No record" in offset_map(ReadableOffsets(100, 100, 100, MadeRanges(halves)))
    assert mini_map(late).count("<rect") == 2


def test_a_map_of_columns_is_that_of_each_range_alone() -> None:
    dice = random.Random(7)
    for _ in range(300):
        scale = dice.choice((1, 1, 7, 10**15, 2**54))  # offsets of hostile logs do not fit into 64 bits, times columns
        ends = sorted({0, *(dice.randrange(1, 400) * scale for _ in range(dice.randrange(1, 60)))})
        ranges = tuple(OffsetRange(low, high, dice.choice(list(Label)), 0) for low, high in pairwise(ends))
        view = ReadableOffsets(dice.randrange(ends[-1] + 1), ends[-1], ends[-1], MadeRanges(ranges))
        runs = columns(view, column_count := dice.choice((1, 3, 50)))
        found = [label for first, end, label in runs for _ in range(first, end)]
        span = view.end - view.start
        for column, label in enumerate(found):
            shares = {one.label.value: 0 for one in ranges}
            for one in ranges:
                low, high = max(one.start - view.start, 0) * column_count, (one.end - view.start) * column_count
                shares[one.label.value] += max(min(high, (column + 1) * span) - max(low, column * span), 0)
            alarms = [alarm for alarm in ("lost", "damaged", "open") if shares.get(alarm)]
            assert label == alarms[0] if alarms else shares[label] == max(shares.values())


def test_an_offset_map_tells_the_exact_offsets_that_a_column_stands_for(golden: Golden) -> None:
    committed, opened = Label.COMMITTED, Label.OPEN
    ranges = (OffsetRange(0, 34, committed, 34), OffsetRange(34, 36, opened, 2), OffsetRange(36, 9000, committed, 8964))
    few = offset_map(ReadableOffsets(0, 34, 9000, MadeRanges(ranges)))
    assert "<title>open: offsets 34 to 35</title>" in few
    assert "<title>committed: offsets 36 to 8999</title>" in few
    more = tuple(OffsetRange(i, i + 1, opened if i % 2 else committed, 1) for i in range(2000))
    many = offset_map(ReadableOffsets(0, 1, 2000, MadeRanges(more)))
    assert "<title>open: 1000 ranges, the first of offsets 1 to 1, the last of 1999 to 1999</title>" in many
    late = offset_map(ReadableOffsets(35, 35, 9000, MadeRanges(ranges)))
    assert "<title>open: offsets 35 to 35</title>" in late
    text = page(str(golden("demo")), audit_directory(str(golden("demo")), AFTER_GOLDEN_MS), AFTER_GOLDEN_MS)
    assert "<title>open: offsets 34 to 35</title>" in text


def test_a_timeline_has_a_bar_for_each_transaction(golden: Golden) -> None:
    audited = audit_directory(str(golden("demo")), 0)
    history = audited.transactions.histories["orders", 0]
    placed = [Placed("orders-0", one) for one in history.transactions]
    text = drawn(placed, audited.transactions.log.owners)
    outline_of(text)
    assert text.count('height="10"') == len(placed) > 10
    assert {"committed", "aborted", "open", "open wait"} == set(re.findall(r'<rect [^>]*class="([^"]*)"', text))
    assert drawn([], {}) == ""


def test_a_timeline_keeps_what_waits_longest_and_tells_what_it_leaves_out() -> None:
    def transaction(number: int, *marker: int) -> Placed:
        return Placed("t-0", PartitionTransaction(number, 0, number, number, number * 1000, number * 1000, 1, *marker))

    decided = [transaction(n, n, 0, 0, True, n * 1000 + 1) for n in range(100, 100 + BAR_COUNT_MAX)]
    waiting = [transaction(n) for n in range(5)]
    text = drawn([*decided, *waiting], {})
    assert re.findall(r"<bdi>(.*?)</bdi>", text)[:7] == [f"producer {n}" for n in (0, 1, 2, 3, 4, 1599, 1598)]
    assert "Shown are 30 of 1,505 transactions, of 30 producers" in text
    timeless = Placed("t-0", PartitionTransaction(1, 0, 0, 0, -1, -1, 1))
    assert "tell no time" in drawn([timeless], {})


def test_a_time_axis_leaves_out_outliers_and_says_so() -> None:
    def transaction(number: int, time: int) -> Placed:
        return Placed(
            "t-0", PartitionTransaction(number, 0, number, number, time, time, 1, number, 0, 0, True, time + 9)
        )

    usual = [transaction(number, 1_700_000_000_000 + 1000 * number) for number in range(20)]
    whole = drawn(usual, {})
    assert "cut" not in whole
    text = drawn([*usual, transaction(20, 1000), transaction(21, 2_000_000_000_000)], {})
    outline_of(text)
    assert "From 2023-11-14 22:13:20.000Z on, for 19 s." in text
    assert "<b>The axis is cut</b>: 1 transaction began before, from 1970-01-01 00:00:01.000Z on; " in text
    assert "1 transaction ended later, up to 2033-05-18 03:33:20.009Z. They are drawn at its ends." in text
    assert text.count('x="0%"') == 2  # the first, and the one before
    assert time_axis(19_009) in text


def test_timestamps_of_any_size_are_drawn() -> None:
    ends = [Placed("t-0", PartitionTransaction(1, 0, n, n, time, time, 1)) for n, time in enumerate((0, 2**63 - 1))]
    text = drawn(ends, {})
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


@pytest.mark.parametrize("output", ["data/orders-0/00000000000000000000.log", "data/new.html", "data/../link/new.html"])
def test_no_page_is_written_into_the_directory_that_it_is_about(
    output: str, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(golden("demo"), "data")
    Path("link").symlink_to("data/orders-0")
    before = {path: path.read_bytes() for path in Path("data").rglob("*") if path.is_file()}
    result = CliRunner().invoke(logstore, ["report", "data", "-o", output])
    assert (result.exit_code, f"at {output}; expected a file outside the data directory" in result.stderr) == (2, True)
    assert {path: path.read_bytes() for path in Path("data").rglob("*") if path.is_file()} == before


def test_what_cannot_be_written_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data/orders-0").mkdir(parents=True)
    Path("link.html").symlink_to("page.html")
    for output, found in {
        "": "not empty",
        "link.html": "link",
        "no/page.html": "no dir",
        "page.html/": "no dir",
    }.items():
        result = CliRunner().invoke(logstore, ["report", "data", "-o", output])
        assert (result.exit_code, found in result.stderr) == (2, True), result.stderr


def test_a_page_replaces_only_a_page_or_an_empty_file(golden: Golden, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    words = ["report", str(golden("demo")), "-o", str(output), "--now", str(AFTER_GOLDEN_MS)]
    for content in ("", "<!DOCTYPE html>an old page"):
        output.write_text(content)
        assert CliRunner().invoke(logstore, words, catch_exceptions=False).exit_code in (0, 1)
        assert outline_of(output.read_text()).seen[0] == "html"
    for content in ("notes", "<!DOCTYPE", "<html>"):
        output.write_text(content)
        result = CliRunner().invoke(logstore, words)
        assert (result.exit_code, output.read_text()) == (2, content)
        assert f"There is another file, which stays as it is; at {output}; expected no file" in result.stderr
