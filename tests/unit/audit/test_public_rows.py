"""The public functions: rows of a real broker's directory, typed, and the same as the command line prints."""

from __future__ import annotations

import csv
import inspect
import io
import json
import pickle
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore.errors import CorruptRecordError, LogstoreError, UsageError
from logstore.rows.findings import FindingRow
from logstore.rows.places import TopicRow
from logstore.rows.schema import Kind, fields_of, json_name, json_row
from logstore_tools.commands import logstore as command_line
from tests.support.golden import Golden

pa = pytest.importorskip("pyarrow")

LATER_MS = 1_795_246_963_000 + 3_600_000
VERBS: dict[str, tuple[list[str], Callable[[Path], logstore.Rows[Any]]]] = {
    "topic": (["topics"], logstore.topics),
    "segment": (["segments"], logstore.segments),
    "producer": (["producers"], logstore.producers),
    "group": (["groups"], logstore.groups),
    "finding": (["audit", "--now", str(LATER_MS)], lambda path: logstore.audit(path, now_ms=LATER_MS)),
    "verified": (["verify"], lambda path: logstore.Rows(*_verified(path))),
    "transaction": (
        ["txns", "list", "--now", str(LATER_MS)],
        lambda path: logstore.transactions(path, now_ms=LATER_MS),
    ),
}


def _verified(path: Path) -> tuple[Any, ...]:
    partitions = logstore.verify(path).partitions
    return type(partitions[0]), partitions


def printed(words: list[str], path: Path, form: str) -> str:
    return CliRunner().invoke(command_line, [*words, str(path), "--format", form]).stdout


@pytest.mark.parametrize("name", ["demo", "groups", "control"])
@pytest.mark.parametrize("kind", VERBS)
def test_the_command_line_prints_the_same_rows(kind: str, name: str, golden: Golden) -> None:
    words, ask = VERBS[kind]
    rows = ask(golden(name))
    lines = [json.loads(line) for line in printed(words, golden(name), "jsonl").splitlines()]
    told = [line for line in lines if line["type"] == kind]
    assert [{"type": kind, **json_row(row)} for row in rows] == told
    if kind != "verified":  # CSV has the findings alone
        table = list(csv.reader(io.StringIO(printed(words, golden(name), "csv"))))
        assert table[0] == [json_name(field.name) for field in fields_of(rows.row_type)]
        assert len(table) == len(told) + 1


@pytest.mark.parametrize("kind", VERBS)
def test_arrow_has_the_same_rows(kind: str, golden: Golden) -> None:
    rows = VERBS[kind][1](golden("control" if kind == "finding" else "demo"))
    table = rows.to_arrow()
    assert table.num_rows == len(rows) > 0
    for field, column in zip(fields_of(rows.row_type), table.schema, strict=True):
        assert (field.name, field.is_nullable) == (column.name, column.nullable)
        assert (field.kind is Kind.TIME) == (column.type == pa.timestamp("ms", "UTC"))
        if field.kind in (Kind.STRING, Kind.INT32, Kind.INT64, Kind.BOOLEAN, Kind.TIME):
            values = table.column(field.name)
            shown = values.cast(pa.int64()) if field.kind is Kind.TIME else values
            assert shown.to_pylist() == [getattr(row, field.name) for row in rows]


def test_groups_are_there_while_the_cleaner_renames_their_log(golden: Golden, tmp_path: Path) -> None:
    place = shutil.copytree(golden("groups"), tmp_path / "groups", copy_function=shutil.copyfile)
    before = list(logstore.groups(place))
    for log in place.glob("__consumer_offsets-*/*.log"):
        log.rename(f"{log}.swap")
    assert list(logstore.groups(place)) == before != []


def test_a_dump_has_every_batch_and_every_record(golden: Golden) -> None:
    for log in sorted(golden("transactions").glob("*-*/*.log")):
        text = CliRunner().invoke(command_line, ["dump", "--print-data-log", "--files", str(log)]).stdout
        batches = logstore.dump(log)
        assert [row.base_offset for row in batches] == offsets("baseOffset", text)
        records = list(logstore.dump(log, records=True))
        assert [row.offset for row in records] == offsets(r"\| offset", text)
        assert sum(row.record_count for row in batches) == len(records)


def offsets(name: str, text: str) -> list[int]:
    return list(map(int, re.findall(rf"^{name}: (\d+)", text, re.MULTILINE)))


def test_a_dump_raises_what_could_not_be_listed_after_all_rows(golden: Golden, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(golden("demo"), data)
    expected = [row for row in logstore.dump(data, records=True) if row.topic != "orders"]
    shutil.move(data / "orders-0", tmp_path / "orders-0")
    (data / "orders-0").symlink_to(tmp_path / "orders-0")
    found = []
    rows = logstore.dump(data, records=True)
    for _ in range(2):
        with pytest.raises(LogstoreError, match="leads out of the data directory"):
            found.extend(rows)
    assert found == expected * 2


def test_a_damaged_log_gives_all_that_can_be_read_and_then_the_error(golden: Golden, tmp_path: Path) -> None:
    source = golden("demo") / "orders-0"
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (log,) = source.glob("*.log")
    content = bytearray(log.read_bytes())
    whole = list(logstore.dump(source, records=True))
    first, *others = logstore.dump(source)
    content[first.position + first.size - 1] ^= 1  # in a record, so that the checksum is wrong
    (partition / log.name).write_bytes(content)
    assert [row.is_valid for row in logstore.dump(partition)] == [False] + [True] * len(others)
    found, error = read_to_the_error(partition)
    assert found == [row for row in whole if row.offset > first.last_offset]
    assert ("checksum" in str(error), error.position) == (True, first.position)
    page = logstore.dump(partition, records=True)._repr_html_()
    assert (page.count("<tr>"), "not read: Record is corrupt" in page) == (1 + len(found), True)


def read_to_the_error(partition: Path) -> tuple[list[Any], CorruptRecordError]:
    found = []
    try:
        for row in logstore.dump(partition, records=True):
            found.append(row)
    except CorruptRecordError as error:
        return found, error
    raise AssertionError("no error")


def test_nothing_found_is_not_nothing_looked_at(golden: Golden, tmp_path: Path) -> None:
    found = logstore.audit(golden("demo"), now_ms=LATER_MS)
    assert re.fullmatch(r"<\d+ findings in 7 partitions, [\d,]+ bytes>", repr(found))
    assert found.audited.partition_count == len(found.partitions) == 7
    with pytest.raises(UsageError, match="not a Kafka data directory"):
        logstore.audit(tmp_path)
    with pytest.raises(UsageError, match="did you mean"):
        logstore.topics(golden("demo") / "orders-0")


def test_what_cannot_be_read_is_told(golden: Golden) -> None:
    listed = logstore.groups(golden("edges"))
    assert listed.problems
    assert all(str(problem) for problem in listed.problems)
    assert "not read:" in listed._repr_html_()


def test_a_notebook_gets_a_table_with_nothing_to_obey() -> None:
    page = logstore.Rows(TopicRow, [TopicRow("<b>", None, (0,), 1, 1, 0, {})] * 101)._repr_html_()
    assert ("&lt;b&gt;" in page, "<b>" in page) == (True, False)
    assert (page.count("<tr>"), "only the first 100 rows" in page) == (101, True)


def test_rows_are_indexed_sliced_and_compared_as_a_list(golden: Golden) -> None:
    rows, listed = logstore.segments(golden("demo")), list(logstore.segments(golden("demo")))
    assert rows == listed == logstore.segments(golden("demo"))
    assert rows != listed[1:]
    assert (rows[0], rows[-1], rows[1:3]) == (listed[0], listed[-1], listed[1:3])
    problems = logstore.groups(golden("edges"))[:0].problems
    assert len(problems) == len(logstore.groups(golden("edges")).problems) > 0
    read = logstore.dump(golden("demo"))
    assert read == logstore.dump(golden("demo")) == list(read) != []
    for needs_all in (len, bool, lambda dumped: dumped[0], lambda dumped: dumped[:5]):
        with pytest.raises(TypeError, match=r"list\(rows\) has all of them"):
            needs_all(read)


def test_rows_are_taken_as_a_stream_of_arrow(golden: Golden) -> None:
    for rows in (logstore.segments(golden("demo")), logstore.dump(golden("demo")), logstore.verify(golden("demo"))):
        assert pa.table(rows) == rows.to_arrow()


def test_a_data_frame_rounds_no_offset() -> None:
    pytest.importorskip("pandas")
    row = FindingRow("error", "rule", None, None, None, None, 2**53 + 1, "", "", "")
    for rows in ([row], [row, row._replace(offset=None, partition=5)], [row._replace(partition=5)]):
        frame = logstore.Rows(FindingRow, rows).to_pandas()
        assert (str(frame.dtypes["partition"]), str(frame.dtypes["offset"])) == ("Int32", "Int64")
        assert frame["offset"].dropna().tolist() == [2**53 + 1]


def test_a_data_frame_without_pandas_says_what_to_install(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        logstore.topics(golden("demo")).to_pandas()


def test_explain_names_what_readers_wait_for(golden: Golden) -> None:
    told = logstore.explain(golden("demo"), now_ms=LATER_MS)
    assert {(row.topic, row.blocking.transactional_id) for row in told if row.blocking} == {
        ("orders", "left-open"),
        ("payments", "left-open"),
    }
    (one,) = logstore.explain(golden("demo") / "orders-0", now_ms=LATER_MS)
    assert one in list(told)


def test_a_dump_is_of_the_directory_that_was_named(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden("demo"))
    rows = [logstore.dump(path) for path in ("orders-0", Path("."))]
    counts = [len(list(batches)) for batches in rows]
    monkeypatch.chdir(tmp_path)
    assert [len(list(batches)) for batches in rows] == counts


WRONG_PATHS: list[Any] = ["", b"data", None, 5, "da\0ta", "\ud800"]


@pytest.mark.parametrize("path", WRONG_PATHS)
@pytest.mark.parametrize("call", [
    *(logstore.audit, logstore.verify, logstore.transactions, logstore.explain, logstore.groups, logstore.producers),
    *(logstore.topics, logstore.segments, logstore.dump, logstore.open),
    lambda path: logstore.open(path, read_only=True),
])  # fmt: skip
def test_a_path_that_is_none_is_refused(
    call: Callable[[Any], object], path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="A path is a text, and not empty"):
        call(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", [logstore.audit, logstore.transactions, logstore.explain])
def test_a_time_to_judge_by_is_a_whole_number(call: Callable[..., object], golden: Golden) -> None:
    for wrong in ("5", 1.5):
        with pytest.raises(UsageError, match="The now_ms is no whole number"):
            call(golden("demo"), now_ms=wrong)


@pytest.mark.parametrize("function", [logstore.audit, logstore.topics, logstore.verify, logstore.dump])
def test_a_public_function_has_a_signature_and_goes_to_another_process(function: Callable[..., object]) -> None:
    assert next(iter(inspect.signature(function).parameters)) == "path"
    assert inspect.getdoc(function) == inspect.getdoc(inspect.unwrap(function)) is not None
    assert repr(function).startswith("<function ")
    assert pickle.loads(pickle.dumps(function)) is function
