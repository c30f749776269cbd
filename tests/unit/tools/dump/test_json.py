"""What `--format json` makes of single things that the text cannot tell, or tells otherwise."""

from __future__ import annotations

import base64
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from logstore.rows.schema import iso_text
from tests.conformance.dumping import answer
from tests.naive.legacy import Message, message_set, wrapped
from tests.support.encoder import CONTROL, GZIP, Batch, Rec
from tests.support.golden import Golden

LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"
MARKER = Rec(struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 7))


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def objects(*argv: str) -> list[dict[str, Any]]:
    rc, stdout, stderr = answer(["--format", "json", *argv])
    assert (rc, stderr) == (0, "")
    assert stdout == "" or stdout.endswith("\n")
    return [json.loads(line) for line in stdout.split("\n")[:-1]]


def records_of(*records: Rec, flags: int = 0, options: tuple[str, ...] = ("--print-data-log",)) -> list[dict[str, Any]]:
    Path(LOG).write_bytes(Batch(0, records, len(records) - 1, flags=flags).to_bytes())
    found = objects("--files", LOG, *options)
    assert [each["type"] for each in found[:1]] == ["batch"]
    assert all(each["path"] == LOG for each in found)
    return found[1:]


def test_jsonl_is_the_same(golden: Golden) -> None:
    paths = ["--files", str(golden("demo") / "orders-0" / LOG), "--print-data-log"]
    assert answer(["--format", "jsonl", *paths]) == answer(["--format", "json", *paths])


def test_null_is_not_empty() -> None:
    null, empty = records_of(Rec(None, None), Rec(b"", b"", offset_delta=1))
    assert (null["key"], null["value"], null["keySize"], null["valueSize"]) == (None, None, -1, -1)
    assert (empty["key"], empty["value"], empty["keySize"], empty["valueSize"]) == ("", "", 0, 0)


@pytest.mark.parametrize("content", [b"\xff", b"\xed\xa0\x80", b"caf\xc3", b"\xf4\x90\x80\x80", bytes(range(256))])
def test_keys_and_values_that_are_no_utf8_are_base64(content: bytes) -> None:
    (record,) = records_of(Rec(content, content))
    assert base64.b64decode(record["keyBase64"]) == base64.b64decode(record["valueBase64"]) == content
    assert not {"key", "value"} & record.keys()


@pytest.mark.parametrize("content", [b"", b'"\\\n\r\t\x00\x1b', "Grüße 世界 😀\u2028\u0085".encode(), b"\xef\xbf\xbd"])
def test_utf8_is_text_whatever_is_in_it(content: bytes) -> None:
    (record,) = records_of(Rec(content, content))
    assert record["key"].encode() == record["value"].encode() == content


def test_headers_are_a_list_in_which_nothing_is_lost() -> None:
    headers = [(b"a", b"1"), (b"a", b"2"), (b"a", None), (b"", b""), (b"\xff\xfe", b"\xff"), (b"\xff", None)]
    (record,) = records_of(Rec(headers=headers))
    assert record["headers"] == [
        {"key": "a", "value": "1"},
        {"key": "a", "value": "2"},
        {"key": "a", "value": None},
        {"key": "", "value": ""},
        {"keyBase64": "//4=", "valueBase64": "/w=="},
        {"keyBase64": "/w==", "value": None},
    ]


def test_keys_and_values_are_left_out_where_the_text_leaves_them_out() -> None:
    (record,) = records_of(Rec(b"k", b"v"), options=("--deep-iteration",))
    assert not {"key", "value"} & record.keys()
    assert records_of(Rec(b"k", b"v"), options=()) == []


def test_without_metadata_there_are_contents_and_no_control_records() -> None:
    options = ("--print-data-log", "--skip-record-metadata")
    assert records_of(Rec(b"k", b"v"), options=options) == [{"type": "record", "path": LOG, "key": "k", "value": "v"}]
    assert records_of(MARKER, flags=CONTROL, options=options) == []


def test_control_records_tell_what_they_are() -> None:
    unknown = Rec(struct.pack(">hh", 0, 99), b"", offset_delta=1)
    leader = Rec(struct.pack(">hh", 0, 2), struct.pack(">hiBBB", 0, 3, 1, 1, 0), offset_delta=2)
    found = records_of(MARKER, unknown, leader, flags=CONTROL)
    assert [each["control"] for each in found] == [
        {"type": "COMMIT", "coordinatorEpoch": 7},
        {"type": "UNKNOWN", "typeId": 99},
        {"type": "LEADER_CHANGE", "data": {"version": 0, "leaderId": 3, "voters": [], "grantingVoters": []}},
    ]
    assert not {"key", "value"} & found[0].keys()


@pytest.mark.parametrize("magic", [0, 1])
def test_old_records_have_their_checksum(magic: int) -> None:
    times = (-1, -1) if magic == 0 else (5, 6)
    messages = [Message(1, times[0], None, b"\xff"), Message(2, times[1], b"k", None)]
    Path(LOG).write_bytes(message_set(magic, [messages[0]._replace(offset=0)]) + wrapped(magic, messages))
    found = objects("--files", LOG, "--print-data-log")
    assert [each["type"] for each in found] == ["batch", "record", "batch", "record", "record"]
    assert all(each["isValid"] and each["crc"] > 0 for each in found)
    told = [None, None] if magic == 0 else ["1970-01-01T00:00:00.005Z", "1970-01-01T00:00:00.006Z"]
    assert [(each["key"], each.get("valueBase64"), each["timestamp"]) for each in found if "valueSize" in each] == [
        (None, "/w==", told[0]),
        (None, "/w==", told[0]),
        ("k", None, told[1]),
    ]


def test_decoded_records_are_objects(golden: Golden) -> None:
    log = golden("demo") / "__transaction_state-0" / LOG
    found = [each for each in objects("--files", str(log), "--transaction-log-decoder") if each["type"] == "record"]
    assert found
    assert {each["key"]["type"] for each in found} == {"0"}
    assert all(each["value"] == "<DELETE>" or each["value"]["version"] == "1" for each in found)


@pytest.mark.parametrize("magic", [1, 2])
def test_text_that_looks_like_json_stays_text(magic: int) -> None:
    old = message_set(1, [Message(0, 5, b"{no json", bytes(4))])
    Path(LOG).write_bytes(old if magic == 1 else Batch(0, [Rec(b"{no json", bytes(4))]).to_bytes())
    found = objects("--files", LOG, "--value-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder")
    assert (found[1]["key"], found[1]["value"]) == ("{no json", "0")


def test_json_rows_before_a_failing_record_are_printed() -> None:
    records = [MARKER, Rec(None, b"", offset_delta=1), MARKER]
    Path(LOG).write_bytes(Batch(0, records, 2, flags=CONTROL).to_bytes())
    rc, stdout, stderr = answer(["--format", "json", "--deep-iteration", "--files", LOG])
    assert (rc, [json.loads(line)["type"] for line in stdout.splitlines()]) == (1, ["batch", "record"])
    assert "java.lang.NullPointerException" in stderr


def test_bytes_that_are_no_batch_are_told(golden: Golden) -> None:
    Path(LOG).write_bytes(Batch(0, [Rec()]).to_bytes() + bytes(12))
    assert objects("--files", LOG)[1:] == [{"type": "trailer", "path": LOG, "invalidBytes": 12}]
    assert [each["type"] for each in objects("--files", LOG, "--max-bytes", "100")] == ["batch"]
    assert objects("--files", LOG, "--max-bytes", "60") == []


def test_indexes_are_entries_and_sentences() -> None:
    Path(LOG).write_bytes(Batch(0, [Rec()]).to_bytes())
    Path(INDEX).write_bytes(struct.pack(">ii", 0, 0))
    path = {"path": INDEX}
    assert objects("--files", INDEX) == [path | {"type": "offsetIndexEntry", "offset": 0, "position": 0}]
    assert objects("--files", INDEX, "--verify-index-only") == []
    assert objects("--files", INDEX, "--index-sanity-check") == [
        path | {"type": "message", "message": f"{INDEX} passed sanity check."}
    ]
    Path(INDEX).write_bytes(b"")
    assert objects("--files", INDEX) == [path | {"type": "message", "message": f"{INDEX} is empty."}]


def test_a_path_that_looks_like_an_entry_is_none() -> None:
    directory = Path("offset: 1 position: 2")
    directory.mkdir()
    (directory / LOG).write_bytes(b"")
    (directory / INDEX).write_bytes(b"")
    (found,) = objects("--files", str(directory / INDEX))
    assert found == {
        "path": f"{directory}/{INDEX}",
        "type": "message",
        "message": f"{directory}/{INDEX} is empty.",
    }


def test_a_path_that_is_no_utf8_keeps_its_bytes() -> None:
    name = b"\xffdir"
    os.mkdir(name)
    (Path(os.fsdecode(name)) / LOG).write_bytes(Batch(0, [Rec()]).to_bytes())
    (Path(os.fsdecode(name)) / INDEX).write_bytes(b"")
    log, index = objects(os.fsdecode(name))
    assert os.fsencode(log["path"]) == name + b"/" + LOG.encode()
    assert os.fsencode(index["path"]) == name + b"/" + INDEX.encode()
    text = answer([os.fsdecode(name)])[1]
    assert text.startswith(f"Dumping ?dir/{LOG}\nLog starting offset: 0\n")
    assert text.endswith(f"Dumping ?dir/{INDEX}\n?dir/{INDEX} is empty.\n")


def test_findings_stay_on_stderr() -> None:
    batches = [Batch(offset, [Rec(), Rec(offset_delta=2)], 2, codec=GZIP) for offset in (0, 3)]
    Path(LOG).write_bytes(b"".join(batch.to_bytes() for batch in batches) + message_set(1, [Message(9, 1, None, None)]))
    Path(INDEX).write_bytes(struct.pack(">ii", 1, 0))
    argv = ["--deep-iteration", "--files", f"{INDEX},{LOG},x.unknown"]
    rc, stdout, stderr = answer(["--format", "json", *argv])
    assert (rc, stderr) == (0, answer(argv)[2])
    assert stderr == (
        "Ignoring unknown file x.unknown\n"
        f"Mismatches in :@BASE@/{INDEX}\n  Index offset: 1, log offset: 2\n"
        f"Non-consecutive offsets in @BASE@/{LOG}\n  0 is followed by 2\n  3 is followed by 5\n  5 is followed by 9\n"
    )
    assert [json.loads(line)["type"] for line in stdout.splitlines()] == [
        *("offsetIndexEntry", "batch", "record", "record", "batch", "record", "record", "batch", "record")
    ]


@pytest.mark.parametrize("argv", [["--format", "xml", "--files", LOG], ["--format=", LOG], ["--format", "JSON", LOG]])
def test_an_unknown_format_is_a_wrong_call(argv: list[str]) -> None:
    rc, stdout, stderr = answer(argv)
    name = "".join(argv[:-1]).replace("--format", "").replace("=", "").replace("--files", "")
    assert (rc, stdout, stderr) == (
        2,
        "",
        f"logstore: Unknown format; expected text, json, arrow or parquet, found {name!r}\n",
    )


@pytest.mark.parametrize(
    "times",
    [
        [0, 1, 999, 1000, 1001],  # as many seconds as records, and fewer
        [0, 86_400_000, 10**12, 253_402_300_799_999],
        [-62_135_596_800_000, -2, -1000],
        [5, -1, 7],
        [5, 2**62, 7],
    ],
)
def test_times_of_records_are_those_of_all_other_rows(times: list[int]) -> None:
    records = [Rec(timestamp_delta=time - times[0], offset_delta=number) for number, time in enumerate(times)]
    Path(LOG).write_bytes(Batch(0, records, len(times) - 1, base_timestamp=times[0]).to_bytes())
    found = objects("--files", LOG, "--deep-iteration")[1:]
    assert [each["timestamp"] for each in found] == [iso_text(time) for time in times]


def test_contents_of_all_kinds_stand_beside_each_other() -> None:
    contents = [b"plain", None, b'"', b"", "ß".encode(), b"\xff", b"plain", None, b"\x7f", b"a\\b"]
    told = records_of(*(Rec(one, one, offset_delta=number) for number, one in enumerate(contents)))
    for name in ("key", "value"):
        texts = [base64.b64decode(one[f"{name}Base64"]) if f"{name}Base64" in one else one[name] for one in told]
        assert [text.encode() if isinstance(text, str) else text for text in texts] == contents
