"""Every verb has an example that runs, and prints what its schema says and nothing else."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from docs.generators.rows import verbs
from logstore.audit import listings
from logstore_tools import tables
from logstore_tools.commands import logstore
from logstore_tools.dump.command import help_page
from logstore_tools.rows import Cells, JsonField, RowType, TypedRows, VerbAnswer, one_row, show
from logstore_tools.verbs import Verb
from tests.conformance.dumping import answer
from tests.support.golden import Golden

VERBS = dict(verbs())
TYPES = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "time": str,
    "array": list,
    "object": dict,
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def data(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory and a replica of it, beside which commands write."""
    monkeypatch.chdir(tmp_path)
    for name in ("data", "other"):
        shutil.copytree(golden("demo"), tmp_path / name)
    return tmp_path / "data"


def example_of(verb: Verb, data: Path) -> list[str]:
    """The words of the example behind `logstore`, about `data`."""
    text = verb.example.replace("/var/lib/kafka/data", str(data)).replace("/mnt/other/data", str(data.parent / "other"))
    program, *words = shlex.split(text.replace("/mnt", str(data.parent)))
    assert program == "logstore"
    return words


def assert_fits(row: dict[str, Any], of: RowType) -> None:
    assert list(row) == ["type", *(field.name for field in of.fields)]
    for field in of.fields:
        value, kind = row[field.name], field.type.removesuffix("?")
        assert (value is None) <= field.type.endswith("?"), field.name
        assert value is None or type(value) is TYPES[kind], field.name
        assert kind != "time" or value is None or TIME.fullmatch(value), field.name


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_the_example_of_the_help_runs(words: tuple[str, ...], data: Path) -> None:
    runner = CliRunner()
    verb = VERBS[words]
    text = runner.invoke(verb, ["--help"]).stdout
    assert text.endswith(f"\nExample:\n  {verb.example}\n")
    assert verb.example.startswith(f"logstore {' '.join(words)} ")
    result = runner.invoke(verb, example_of(verb, data)[len(words) :], catch_exceptions=False)
    assert (result.exit_code in (0, 1), bool(result.stdout)) == (True, True), result.stderr


def test_the_example_of_the_dump_runs(data: Path) -> None:
    text = help_page("own_help.txt").partition("\nExample:\n  logstore dump ")[2]
    code, printed, errors = answer(shlex.split(text.replace("/var/lib/kafka/data", str(data))))
    assert (code, "| offset: 10 " in printed, errors) == (0, True, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "words", [("topics",), ("segments",), ("groups",), ("producers",), ("verify",), ("txns", "list")]
)
def test_tables_fit_a_terminal(words: tuple[str, ...], data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(tables.shutil, "get_terminal_size", lambda **_: os.terminal_size((80, 24)))
    with pytest.raises(SystemExit):
        VERBS[words].main([data.name])
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines[0].split()) > 3  # names of columns, not a line for each cell


def test_groups_of_other_directories_are_not_passed_over_in_silence(data: Path) -> None:
    shutil.rmtree(data / "__consumer_offsets-1")
    for checkpoint in data.glob("*-offset-checkpoint"):
        checkpoint.unlink()
    done = CliRunner().invoke(VERBS["groups",], [str(data), "--format", "jsonl"], catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 of 2 partitions of __consumer_offsets are not in this directory" in done.stderr
    assert [f"logstore: {note}\n" for note in listings.groups(data).problems] == [done.stderr]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_rows_are_as_the_schema_says(words: tuple[str, ...], data: Path) -> None:
    verb = VERBS[words]
    types = {of.name: of for of in verb.prints}
    arguments = example_of(verb, data)[len(words) :]
    (data / "orders-0" / f"{0:020d}.timeindex").write_bytes(bytes(11))  # a finding
    result = CliRunner().invoke(verb, [*arguments, "--format", "jsonl"], catch_exceptions=False)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows or words == ("txns", "hanging")
    for row in rows:
        assert_fits(row, types[row["type"]])
    table = CliRunner().invoke(verb, [*arguments, "--format", "table"]).stdout
    assert '{"' not in table


@pytest.mark.parametrize("form", ["table", "csv", "jsonl"])
def test_a_terminal_gets_nothing_to_obey(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    of = RowType("thing", "A thing.", (JsonField("name", "string", "its name", "name"),))
    row = {"name": "\x1b[31m\u202e\n\udcff"}
    for rows in (TypedRows(of, [row]), one_row(of, row)):
        show(VerbAnswer([rows], verdict=[row["name"]]), form)
        for printed in capsys.readouterr() if form == "csv" else capsys.readouterr()[:1]:
            assert printed.replace("\n", "").isprintable()
            assert "31m" in printed


def test_an_answer_is_lines_for_people_rows_for_programs_and_the_last_rows_as_csv(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of = RowType("thing", "A thing.", (JsonField("name", "string", "its name", "name"),))
    other = RowType("other", "Another.", (JsonField("size", "integer", "its size"),))
    things = TypedRows(of, [{"name": "a"}, {"name": "b"}])
    answer = VerbAnswer(
        [one_row(other, {"size": 5}), things], lines=["two", things, Cells(("c",), [["d"]])], verdict=["2"]
    )
    printed = {form: [show(answer, form), capsys.readouterr()][1] for form in ("table", "csv", "jsonl")}
    assert printed["table"] == ("two\nname\na\nb\nc\nd\n", "")
    assert printed["csv"] == ("name\na\nb\n", "2\n")
    assert printed["jsonl"].out == (
        '{"type": "other", "size": 5}\n{"type": "thing", "name": "a"}\n{"type": "thing", "name": "b"}\n'
    )
    show(answer._replace(lines=None), "table")
    assert capsys.readouterr().out == "size: 5\nname\na\nb\n"


@pytest.mark.parametrize(
    "words",
    [
        ["txns", "explain", "{hostile}"],
        ["diff", "{hostile}", "{hostile}"],
        ["diff", "--force", "{hostile}", "{root}/payments-0"],
        ["salvage", "{hostile}", "rescued"],
        ["sample", "{hostile}", "shown"],
        ["report", "{root}", "--output", "{hostile}.html"],
        ["audit", "{root}"],
        ["promote", "{root}"],
    ],
    ids=lambda words: words[0],
)
def test_sentences_have_nothing_for_a_terminal_to_obey(words: list[str], data: Path) -> None:
    hostile = data.parent / "alone" / "o\a\n\u202e\udcff-0"
    for directory in (hostile, data / hostile.name):
        shutil.copytree(data / "orders-0", directory)
    places = {"hostile": str(hostile), "root": str(data)}
    result = CliRunner().invoke(logstore, [word.format(**places) for word in words], catch_exceptions=False)
    assert (bool(result.stdout), result.stdout.replace("\n", "").isprintable()) == (True, True), result.output
    assert "\n\\u202e" not in result.stdout


def test_a_type_of_row_has_one_schema() -> None:
    types = {id(of): of for verb in VERBS.values() for of in verb.prints}.values()
    assert len({of.name for of in types}) == len(types)
    for of in types:
        assert len({field.name for field in of.fields}) == len(of.fields)
        assert {field.type.removesuffix("?") for field in of.fields} <= TYPES.keys()


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_misspelled_option_gets_a_suggestion(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(VERBS[words], ["--frmat", "csv"])
    assert (result.exit_code, "Did you mean" in result.stderr and "'--format'" in result.stderr) == (2, True), (
        result.stderr
    )


MOVING = ("path", "ageMs", "judgedAt")  # columns that differ from call to call


@pytest.mark.parametrize("words", [("verify",), ("segments",), ("producers",), ("txns", "list")], ids=" ".join)
def test_what_is_named_twice_is_looked_at_once(words: tuple[str, ...], data: Path) -> None:
    (data.parent / "link").symlink_to(data)

    def rows_of(*paths: Path | str) -> list[dict[str, Any]]:
        result = CliRunner().invoke(VERBS[words], [*map(str, paths), "--format", "jsonl"])
        assert not result.exception or isinstance(result.exception, SystemExit), result.output
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return [{name: value for name, value in row.items() if name not in MOVING} for row in rows]

    once, one = rows_of(data), rows_of(data / "orders-0")
    assert once
    assert rows_of(data, data / "orders-0", data.parent / "link", "data/../data", f"{data}/orders-*") == once
    assert rows_of(data / "orders-0", data) == once
    assert rows_of(data / "orders-0", "link/orders-0", data / "orders-0" / f"{0:020}.log") == one
    shutil.copytree(data / "orders-0", data / "orders-0.d2f1-delete")
    if words in (("verify",), ("segments",)):  # what a data directory leaves out is named by itself
        assert len(rows_of(data, data / "orders-0.d2f1-delete")) > len(rows_of(data))


@pytest.mark.parametrize("words", [("verify",), ("audit",)], ids=" ".join)
def test_csv_has_the_findings_alone_and_the_verdict_is_told(words: tuple[str, ...], data: Path) -> None:
    result = CliRunner().invoke(VERBS[words], [str(data / ".." / "data"), "--format", "csv"])
    assert (result.stdout.count("\n"), result.exit_code) == (1, 0), result.output
    assert re.match(r"\d+ partitions\b", result.stderr)
    assert result.stderr.endswith("\nno findings\n")
    log = next(path for path in (data / "orders-0").glob("*.log"))
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    result = CliRunner().invoke(VERBS[words], [str(data), "--format", "csv"])
    count = result.stdout.count("\n") - 1
    assert (result.exit_code, count > 0) == (1, True)
    assert result.stderr.endswith(f"\n{count} finding{'s' * (count > 1)}\n")
