"""`--format arrow` and `--format parquet` hold the rows of JSON, in the same order."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.rows.batches import RecordRow
from logstore.rows.schema import json_name
from logstore_tools.dump import command, run
from tests.conformance.dumping import answer, ms_of
from tests.support.encoder import GZIP, Batch, Rec
from tests.support.golden import Golden
from tests.support.sampling import sampled

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from logstore.rows.arrow import schema_of  # noqa: E402
from logstore_tools.dump import arrow_rows  # noqa: E402

TIMES = ("timestamp", "maxTimestamp", "lastTimestamp", "deleteHorizon")
LOG = "00000000000000000000.log"
DECODER = ["--value-decoder-class", "org.apache.kafka.tools.api.DefaultDecoder"]


def dumped(*argv: str) -> tuple[int, bytes, str]:
    stdout, stderr = io.BytesIO(), io.StringIO()
    code = run(list(argv), stdout, stderr)
    return code, stdout.getvalue(), stderr.getvalue()


def rows_of_arrow(*argv: str) -> list[dict[str, Any]]:
    """The fields of each row that are not null; the Parquet file has the same."""
    code, stream, told = dumped("--format", "arrow", *argv)
    table = pa.ipc.open_stream(stream).read_all()
    parquet_code, content, parquet_told = dumped("--format", "parquet", *argv)
    assert (parquet_code, parquet_told) == (code, told) == dumped(*argv)[::2]
    assert pq.read_table(io.BytesIO(content)) == table
    for name in TIMES:  # as numbers: Python has no time behind the year 9999
        index = table.schema.get_field_index(name)
        assert table.schema.field(index).type == pa.timestamp("ms", "UTC")
        table = table.set_column(index, name, table.column(index).cast(pa.int64()))
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def rows_of_json(*argv: str) -> list[dict[str, Any]]:
    text = dumped("--format", "json", *argv)[1]
    return [as_arrow(json.loads(line), is_text="class" in "".join(argv)) for line in text.splitlines()]


def as_arrow(item: dict[str, Any], *, is_text: bool) -> dict[str, Any]:
    row = {name: ms_of(value) if name in TIMES and isinstance(value, str) else value for name, value in item.items()}
    row = {name: value for name, value in row.items() if value is not None}
    for name in ("key", "value"):
        if not is_text and name in row:
            row[name] = row[name].encode()
        if f"{name}Base64" in row:
            row[name] = base64.b64decode(row.pop(f"{name}Base64"))
    if "control" in row:
        row["control"] = json.dumps(row["control"], separators=(",", ":"))
    if "headers" in row:
        pairs = [as_arrow(header, is_text=False) for header in row["headers"]]
        row["headers"] = [{"key": pair["key"].decode(), "value": pair.get("value")} for pair in pairs]
    return row


@pytest.mark.parametrize("options", [[], ["--print-data-log"], ["--deep-iteration", "--offset", "3:12"], DECODER])
@pytest.mark.parametrize("name", sampled(["demo", "transactions", "groups"], ["demo"], pytest.mark.slow))
def test_the_rows_are_those_of_json(
    name: str, options: list[str], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden(name))
    found = rows_of_arrow(".", *options)
    assert found == rows_of_json(".", *options)
    assert len(found) > 50
    monkeypatch.setattr(command, "PARALLEL_SIZE_MIN", 0)
    assert rows_of_arrow(".", *options) == found


@pytest.mark.parametrize("options", [["--print-data-log"], ["--print-data-log", "--skip-record-metadata"], DECODER])
@pytest.mark.parametrize("name", ["legacy", "control"])
def test_rows_of_old_magics_of_control_records_and_of_broken_logs(
    name: str, options: list[str], golden: Golden
) -> None:
    paths = sorted(map(str, golden(name).rglob("*.log")))[::3]
    found = [rows_of_arrow("--files", path, *options) for path in paths]
    assert found == [rows_of_json("--files", path, *options) for path in paths]
    assert sum(map(len, found)) > 20


@pytest.mark.parametrize("options", [[], ["--offset", "-9:"], ["--key", "orders0"], DECODER])
@pytest.mark.parametrize("name", ["demo", "legacy"])
def test_a_table_of_records_has_the_rows_of_the_library(name: str, options: list[str], golden: Golden) -> None:
    """With topic and partition, of JSON, Arrow and Parquet: as `logstore.dump` and so `RecordRow` have them."""
    root = golden(name)
    partitions = [path.parent for path in sorted(root.glob("*-[0-9]*/*.log")) if "broken" not in path.parent.name]
    for partition in dict.fromkeys(partitions):
        argv = ["--records", *options, str(partition)]
        code, stream, _ = dumped("--format", "arrow", *argv)
        table = pa.ipc.open_stream(stream).read_all()
        assert code == 0
        assert pq.read_table(io.BytesIO(dumped("--format", "parquet", *argv)[1])) == table
        found = table.to_pylist()
        declared = schema_of(RecordRow)
        assert table.schema.names == [json_name(column) for column in declared.names]
        if options != DECODER:
            assert table.schema.types == declared.types
            known = {row["offset"]: row for row in logstore.dump(partition, records=True).to_arrow().to_pylist()}
            for row in found:
                assert list(row.values()) == list(known[row["offset"]].values())
            assert options or len(found) == len(known)
        objects = [json.loads(line) for line in dumped("--format", "json", *argv)[1].splitlines()]
        assert [list(row)[:4] for row in objects] == [["type", "topic", "partition", "offset"]] * len(found)
        assert [row["offset"] for row in objects] == [row["offset"] for row in found]
        assert [row["isControl"] for row in objects] == [row["isControl"] for row in found]


def test_records_before_an_error_are_in_the_arrow_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    batch = Batch(0, [Rec(b"k"), Rec(b"l", offset_delta=1)], 1, GZIP).to_bytes()
    Path(LOG).write_bytes(batch + bytes(8) + (3).to_bytes(4, "big") + bytes(99))
    code, stream, told = dumped("--format", "arrow", "--print-data-log", "--files", LOG)
    assert (code, told) == (1, answer(["--files", LOG])[2].replace("@BASE@", str(tmp_path)))
    assert pa.ipc.open_stream(stream).read_all().column("key").to_pylist() == [None, b"k", b"l"]
    code, content, _ = dumped("--format", "parquet", "--print-data-log", "--files", LOG)
    assert (code, pq.read_table(io.BytesIO(content)).num_rows) == (1, 3)


def test_large_rows_do_not_wait_in_memory_for_a_group_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(tmp_path / f"{offset}.log") for offset in range(3)]
    for offset, path in enumerate(paths):
        Path(path).write_bytes(Batch(offset, [Rec(b"key", bytes(1000))]).to_bytes())

    def group_count() -> int:
        _, content, _ = dumped("--format", "parquet", "--print-data-log", *paths)
        return int(pq.ParquetFile(io.BytesIO(content)).num_row_groups)

    assert group_count() == 1
    monkeypatch.setattr(arrow_rows, "ROW_GROUP_SIZE", 1000)
    assert group_count() == 3


def test_without_pyarrow_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert dumped("--format", "arrow", "--files", LOG) == (
        2,
        b"",
        "logstore: --format arrow needs pyarrow; pip install 'logstore-kafka[arrow]'\n",
    )
