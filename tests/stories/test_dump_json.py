"""`--format json` tells what the text tells: the text is made again out of the objects, for every golden directory."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.disk.names import java_file
from logstore.layout.utf8 import java_utf8
from logstore.rows.dumped import DUMPED
from logstore_tools.rows import RowType
from tests.conformance.beyond import difference
from tests.conformance.comparison import comparable_stdout, differences
from tests.conformance.damage import KINDS
from tests.conformance.damaged_cases import ANSWERS, Case
from tests.conformance.dumping import answer, ms_of
from tests.golden.archive import NAMES, answers, read_rows
from tests.support.golden import Golden
from tests.support.sampling import sampled

CONTROL_TITLES = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
LINE_BEGINS = re.compile(r"\n(\| |baseOffset: |offset: |Dumping )")
HEADER_LINE = re.compile(r"(Dumping |Log starting offset: |KRaft bootstrap snapshot$|Snapshot end offset: |$)")

FIELDS = {
    name: {field.name: field.type for field in RowType.of(row_type, name, {}).fields}
    for name, row_type in DUMPED.items()
}

Item = dict[str, Any]


def with_numbers(item: Item) -> Item:
    """The object with times in ms as the text has them; it has members of its type alone, in their order."""
    types = FIELDS[item["type"]]
    names = [name.removesuffix("Base64") for name in item]
    assert names == [name for name in ["type", *types] if name in names]
    is_missing = {name: "?" in types[name] for name in names[1:] if item.get(name, "") is None}
    assert all(is_missing.values()), item
    return {name: ms_of(value) if types.get(name, "").startswith("time") else value for name, value in item.items()}


def batch_line(item: Item) -> str:
    if "baseOffset" in item:
        names = (
            *("baseOffset", "lastOffset", "recordCount", "baseSequence", "lastSequence", "producerId", "producerEpoch"),
            *("partitionLeaderEpoch", "isTransactional", "isControl"),
        )
        horizon = item["deleteHorizon"]
        text = "".join(f"{name if name != 'recordCount' else 'count'}: {shown(item[name])} " for name in names)
        text += f"deleteHorizonMs: {optional_long(None if horizon == -1 else horizon)}"
    else:
        text = f"offset: {item['lastOffset']}"
    return (
        f"{text} position: {item['position']} {item['timestampType']}: {item['maxTimestamp']} size: {item['size']} "
        f"magic: {item['magic']} compresscodec: {item['codec']} crc: {item['crc']} isvalid: {shown(item['isValid'])}"
    )


def record_line(item: Item) -> str:
    text = ""
    if "offset" in item:
        text = (
            f"| offset: {item['offset']} {item['timestampType']}: {item['timestamp']} keySize: {item['keySize']} "
            f"valueSize: {item['valueSize']}"
        )
    if "sequence" in item:
        keys = ",".join(contents(header, "key") or "" for header in item["headers"])
        text += f" sequence: {item['sequence']} headerKeys: [{keys}]"
    if "isValid" in item:
        text += f" isValid: {shown(item['isValid'])} crc: {item['crc']}"
    if "control" in item:
        text += control_text(item["control"])
    for name, title in (("key", "key"), ("value", "payload")):
        content = contents(item, name)
        if content is not None:
            text += f"{' ' if text else '| '}{title}: {content}"
    return text


def control_text(control: Item) -> str:
    if "coordinatorEpoch" in control:
        return f" endTxnMarker: {control['type']} coordinatorEpoch: {control['coordinatorEpoch']}"
    if "typeId" in control:
        return f" controlType: {control['type']}({control['typeId']})"
    return f" {CONTROL_TITLES[control['type']]} {json.dumps(control['data'])}"


def contents(item: Item, name: str) -> str | None:
    if f"{name}Base64" in item:
        return java_utf8(base64.b64decode(item[f"{name}Base64"]))
    content = item.get(name)
    return json.dumps(content) if isinstance(content, dict) else content


def entry_line(item: Item) -> str:
    pairs = itertools.islice(item.items(), 2, None)
    return " ".join(f"{n}: {optional_long(v) if n == 'currentTxnFirstOffset' else v}" for n, v in pairs)


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def file_text(path: str, items: list[Item], *, is_skipping: bool) -> Iterator[str]:
    yield f"Dumping {path}"
    name = Path(path).name
    if re.fullmatch(r"[+-]?\d+(\..*)?\.log", name):
        yield f"Log starting offset: {int(name.split('.')[0])}"
    elif name == "bootstrap.checkpoint":
        yield "KRaft bootstrap snapshot"
    elif found := re.fullmatch(r"(\d{20})-(\d{10}).*\.checkpoint", name):
        yield f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"
    for item in items:
        match item["type"]:
            case "batch":
                yield batch_line(item)
                if item.get("isControl") and is_skipping:
                    yield from [""] * item["recordCount"]
            case "record":
                yield record_line(item)
            case "trailer":
                yield f"Found {item['invalidBytes']} invalid bytes at the end of {name}"
            case "message":
                yield item["message"]
            case _:
                yield entry_line(item)


def text_again(argv: list[str], stdout: str) -> str:
    items = [with_numbers(json.loads(line)) for line in stdout.split("\n")[:-1]]
    by_file = {path: list(group) for path, group in itertools.groupby(items, lambda item: item["path"])}
    is_skipping = "--skip-record-metadata" in argv and set(argv) & {"--deep-iteration", "--print-data-log"} != set()
    is_skipping |= "--skip-record-metadata" in argv and any("decoder" in word for word in argv)
    lines = []
    for path in files_of(argv):
        lines += file_text(path, by_file.pop(path, []), is_skipping=is_skipping)
    assert by_file == {}
    return "".join(line + "\n" for line in lines)


def files_of(argv: list[str]) -> list[str]:
    words = [word for word in argv if word.startswith("--files=")]
    text = words[0].removeprefix("--files=") if words else argv[argv.index("--files") + 1]
    return [java_file(path) for path in text.split(",") if path]


def canonical(text: str) -> str:
    """`text` with all JSON in it written in one way."""
    decoder = json.JSONDecoder()
    written = []
    position = 0
    for found in re.finditer(r"(?:key: |payload: |LeaderChange: |Snapshot\w+ |KRaftV\w+ )(?=\{)", text):
        if found.end() < position:
            continue
        try:
            value, end = decoder.raw_decode(text, found.end())
        except ValueError:
            continue
        written += [text[position : found.end()], json.dumps(value)]
        position = end
    return comparable_stdout("".join([*written, text[position:]]))


def problem(row: Item) -> str | None:
    """What the objects do not tell as the real tool's text did; None when they do."""
    argv = row["argv"]
    rc, stdout, stderr = answer(["--format", "json", "--kafka-version", "4.3", *argv])
    report = differences(argv, (row["rc"], "", row["stderr"]), (rc, "", stderr))
    if report:
        return "\n".join(report)
    if stdout == "" or len(set(files_of(argv))) < len(files_of(argv)):
        return None  # whose objects they are cannot be told when a file is named twice
    no_time = row["stdout"].replace("deleteHorizonMs: OptionalLong[-1]", "deleteHorizonMs: OptionalLong.empty")
    expected, found = canonical(no_time), canonical(text_again(argv, stdout))
    if expected == found:
        return None
    pairs = enumerate(zip(expected, found, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(expected), len(found)))
    # a text that dies ends within a line, the objects before it; of the files behind nothing is told
    is_same_death = not LINE_BEGINS.search(expected[same:]) and all(map(HEADER_LINE.match, found[same:].split("\n")))
    # of a stream that does not decompress Kafka's tool shows nothing
    is_same_death |= expected[same:] == "" and "does not decompress" in stderr and found[same:].startswith("| ")
    return None if rc != 0 and is_same_death else f"{argv}\n{expected[same:][:400]!r}\n{found[same:][:400]!r}"


@pytest.mark.parametrize("name", sampled(NAMES, ("demo", "newest")))
def test_objects_tell_what_the_real_tools_text_tells(
    name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden(name))
    rows = [
        row for row in read_rows(answers(name)) if difference(row["argv"]) is None and "--files" in row["argv"][:-1]
    ]
    assert len(rows) > 50
    assert [each for each in map(problem, rows) if each is not None] == []


@pytest.mark.parametrize("suffix", sampled(KINDS, KINDS.keys() - {".log"}, pytest.mark.slow))
def test_damaged_files_end_with_the_same_error(
    suffix: str, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for row in read_rows(ANSWERS) if Path(row["case"]["file"]).suffix == suffix]
    for row in rows:
        case = Case(**row["case"])
        case.lay_out(golden(case.directory), tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(rows) > 10
    assert [each for each in map(problem, rows) if each is not None] == []
