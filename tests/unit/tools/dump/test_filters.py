"""`--offset`, `--time`, `--producer-id` and `--key`: what they take, and what they leave of a log."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest

from logstore_tools.dump.filters import INT64_MAX, INT64_MIN, RecordFilter
from logstore_tools.dump.options import DumpOptions
from tests.conformance.dumping import answer
from tests.naive.legacy import Message, message_set, wrapped
from tests.support.encoder import GZIP, LZ4, NONE, SOME_TIME, ZSTD, Batch, Rec
from tests.support.golden import Golden
from tests.support.logs import open_partition_log

LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"
MANY = 10_000
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
MIDNIGHT = 1_699_920_000_000  # at which 2023-11-14 begins


def filter_of(*argv: str) -> RecordFilter:
    found = DumpOptions(list(argv)).filter
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("5:9", (5, 9)),
        ("5:", (5, INT64_MAX)),
        (":9", (INT64_MIN, 9)),
        ("5", (5, 5)),
        ("5:5", (5, 5)),
        ("-3:+4", (-3, 4)),
        (f"{INT64_MIN}:{INT64_MAX}", (INT64_MIN, INT64_MAX)),
    ],
)
def test_offsets_are_a_range_with_both_ends(text: str, bounds: tuple[int, int]) -> None:
    assert filter_of("--offset", text).offsets == bounds
    assert filter_of(f"--time={text}").timestamps_ms == bounds


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("-1:-1", (-1, -1)),
        ("2023-11-14T22:13:20Z/2023-11-14T22:14:20Z", (SOME_TIME, SOME_TIME + MINUTE_MS + 999)),
        ("2023-11-14T22:13:20/2023-11-14 22:14:20.000", (SOME_TIME, SOME_TIME + MINUTE_MS)),
        ("2023-11-14T23:13:20+01:00/", (SOME_TIME, INT64_MAX)),
        ("/2023-11-14T22:13:20.123", (INT64_MIN, SOME_TIME + 123)),
        ("2023-11-14T22:13:20.999999Z", (SOME_TIME + 999, SOME_TIME + 999)),
        ("2023-11-14", (MIDNIGHT, MIDNIGHT + DAY_MS - 1)),
        ("2023-11-14/2023-11-15", (MIDNIGHT, MIDNIGHT + 2 * DAY_MS - 1)),
        ("/2023-11-14", (INT64_MIN, MIDNIGHT + DAY_MS - 1)),
        ("2023-11-15/", (MIDNIGHT + DAY_MS, INT64_MAX)),
        ("2023-W46-2", (MIDNIGHT, MIDNIGHT + DAY_MS - 1)),
        ("2023-11-14T22", (MIDNIGHT + 22 * HOUR_MS, MIDNIGHT + 23 * HOUR_MS - 1)),
        ("2023-11-14T22+01:00", (MIDNIGHT + 21 * HOUR_MS, MIDNIGHT + 22 * HOUR_MS - 1)),
        ("2023-11-14T00:01Z", (MIDNIGHT + MINUTE_MS, MIDNIGHT + 2 * MINUTE_MS - 1)),
        ("20231114T000102", (MIDNIGHT + MINUTE_MS + 2000, MIDNIGHT + MINUTE_MS + 2999)),
        ("1969-12-31T23:59:59.999Z", (-1, -1)),
        ("1700000000000/2023-11-14T22:14:20,5Z", (SOME_TIME, SOME_TIME + MINUTE_MS + 500)),
        ("0001-01-01T00:00+14:00/9999-12-31T23:59-14:00", (-62_135_647_200_000, 253_402_351_199_999)),
    ],
)
def test_times_are_milliseconds_or_iso(text: str, bounds: tuple[int, int]) -> None:
    assert filter_of(f"--time={text}").timestamps_ms == bounds


def test_milliseconds_of_iso_times_are_exact() -> None:
    for milliseconds in range(0, 1000, 7):
        found = filter_of(f"--time=2023-11-14T22:13:20.{milliseconds:03}Z/").timestamps_ms
        assert found[0] == SOME_TIME + milliseconds


@pytest.mark.parametrize(
    "wrong",
    [
        *("--offset=", "--offset=:", "--offset=x", "--offset=1:x", "--offset=1:2:3", "--offset=1-2", "--offset=1_0"),
        *("--offset= 5", "--offset=٣", "--offset=1.5", "--offset=5:1", "--offset=9223372036854775808", "--offset=-"),
        *("--time=", "--time=:", "--time=/", "--time=now", "--time=5:1", "--time=2023-13-01", "--time=1:2:3"),
        *("--time=2023-11-15/2023-11-14", "--time=9223372036854775808:", f"--time={'9' * 5000}"),
        *("--producer-id=", "--producer-id=x", "--producer-id=1:2", "--producer-id=9223372036854775808"),
    ],
)
def test_a_wrong_value_is_one_clear_line_before_anything_else(wrong: str) -> None:
    rc, stdout, stderr = answer([wrong, "--files", "missing.log"])
    assert (rc, stdout) == (2, "")
    assert re.fullmatch(rf"logstore: {wrong.partition('=')[0]} .*\n", stderr), stderr
    assert stderr[:-1].partition(", found ")[2] in wrong


@pytest.mark.parametrize("option", ["offset", "time", "producer-id", "key", "format"])
def test_a_missing_or_second_value_is_told_in_the_words_of_kafkas_parser(option: str) -> None:
    rc, stdout, stderr = answer([f"--{option}"])
    assert (rc, stdout) == (1, "")
    assert stderr.endswith(f"OptionMissingRequiredArgumentException: Option {option} requires an argument\n")
    rc, stdout, stderr = answer(["--files", LOG, f"--{option}", "1", f"--{option}", "1"])
    assert (rc, stdout) == (1, "")
    assert stderr.endswith(f"Found multiple arguments for option {option}, but you asked for only one\n")


def offsets_of(*argv: str) -> list[int]:
    rc, stdout, stderr = answer(["--files", LOG, "--print-data-log", *argv])
    found = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", stdout, re.MULTILINE)]
    assert rc == 0
    assert stderr == "" or found == []
    return found


def test_offsets_below_zero_count_from_the_end_of_the_partition() -> None:
    for base in (30, 36, 42):
        batches = [
            Batch(offset, [Rec(), Rec(offset_delta=1)], 1, LZ4).to_bytes() for offset in range(base, base + 6, 2)
        ]
        Path(f"{base:020}.log").write_bytes(b"".join(batches))
    offsets = list(range(30, 48))
    for text, wanted in (
        ("-5:", offsets[-5:]),
        ("-1", offsets[-1:]),
        ("-5:-2", offsets[-5:-1]),
        (":-13", offsets[:-12]),
        ("-900:", offsets),
        ("36:-1", offsets[6:]),
        ("-3:5", []),
        ("-900:-800", []),
    ):
        rc, stdout, _ = answer([".", "--deep-iteration", "--offset", text])
        assert (rc, [int(found) for found in re.findall(r"^\| offset: (\d+)", stdout, re.MULTILINE)]) == (0, wanted), (
            text
        )


def test_the_last_offsets_are_of_the_segment_before_when_the_last_one_is_empty_or_cut() -> None:
    Path(LOG).write_bytes(b"".join(Batch(offset, [Rec()]).to_bytes() for offset in range(4)))
    Path(f"{4:020}.log").touch()
    assert offsets_of("--offset", "-2:") == [2, 3]
    content = Batch(4, [Rec()]).to_bytes()
    Path(f"{4:020}.log").write_bytes(content + content[:70])
    Path(f"{9:020}.log").mkdir()  # no segment
    assert offsets_of("--offset", "-2:") == [3]


@pytest.mark.parametrize("option", ["--key=4", f"--time={SOME_TIME + 4}", "--records"])
def test_a_filter_on_records_shows_records_alone(option: str) -> None:
    """Of plain, compressed and old batches, with as much of each record as is asked for."""
    records = [Rec(b"%d" % i, b"v", offset_delta=i, timestamp_delta=i) for i in range(6)]
    messages = [Message(offset, SOME_TIME + offset - 12, b"%d" % (offset - 12), b"v") for offset in range(12, 18)]
    Path(LOG).write_bytes(
        Batch(0, records, 5).to_bytes() + Batch(6, records, 5, ZSTD).to_bytes() + wrapped(1, messages)
    )
    found = [4, 10, 16] if option != "--records" else list(range(18))
    bare = answer(["--files", LOG, option])[1].splitlines()
    assert [int(line.split(" ")[2]) for line in bare[2:]] == found
    assert all(line.startswith("| offset: ") and "payload" not in line for line in bare[2:])
    whole = answer(["--files", LOG, "--print-data-log"])[1].splitlines()
    assert answer(["--files", LOG, "--print-data-log", option])[1].splitlines()[2:] == [
        line for line in whole if line.startswith("| ") and int(line.split(" ")[2]) in found
    ]
    objects = [json.loads(line) for line in answer(["--files", LOG, option, "--format", "json"])[1].splitlines()]
    assert [(row["type"], row["offset"]) for row in objects] == [("record", offset) for offset in found]
    Path(INDEX).write_bytes(struct.pack(">ii", 5, 0))
    assert [line.partition(" ")[0] for line in answer([".", option])[1].splitlines()[:3]] == ["Dumping", "Log", "|"]
    assert answer([".", option])[1].splitlines()[2:] == bare[2:], "an index has no records"
    rc, stdout, stderr = answer(["--files", INDEX, option])
    assert (rc, stdout) == (0, "")
    assert "records in logs alone" in stderr


@pytest.mark.parametrize("codec", [NONE, GZIP, LZ4, ZSTD])
def test_batches_of_many_chunks_are_filtered_as_a_whole(codec: int) -> None:
    records = [
        Rec(b"%d" % (i % 5000), b"v" * (i % 3), [(b"header", b"x"), (b"%d" % i, None)], offset_delta=i)
        for i in range(MANY)
    ]
    content = Batch(0, records, MANY - 1, codec).to_bytes() + Batch(MANY, records, MANY - 1, codec).to_bytes()
    Path(LOG).write_bytes(content)
    assert offsets_of("--offset", "2040:2060") == list(range(2040, 2061))
    assert offsets_of("--offset", f"{MANY - 2}:{MANY + 1}") == [MANY - 2, MANY - 1, MANY, MANY + 1]
    assert offsets_of("--key", "4999") == [4999, 9999, MANY + 4999, MANY + 9999]
    assert offsets_of("--key", "4999", "--offset", "5000:15000") == [9999, MANY + 4999]
    line = answer(["--files", LOG, "--print-data-log", "--offset", "9999"])[1].split("\n")[3]
    assert line == (
        f"| offset: 9999 CreateTime: {SOME_TIME} keySize: 4 valueSize: 0 sequence: -1 headerKeys: [header,9999] "
        "key: 4999 payload: "
    )


def test_nothing_is_left_when_nothing_passes() -> None:
    Path(LOG).write_bytes(Batch(0, [Rec(b"k")]).to_bytes() + message_set(1, [Message(1, 5, None, None)]))
    for options in (["--offset", "7:"], ["--key", "nowhere"], ["--producer-id=5"], ["--time", ":-2"]):
        told = f"logstore: nothing passes {' '.join(options).replace('=', ' ')}\n"
        nothing = (0, f"Dumping {LOG}\nLog starting offset: 0\n", told)
        assert answer(["--files", LOG, *options]) == nothing
        assert answer(["--files", LOG, "--print-data-log", *options]) == nothing
        assert answer(["--files", LOG, "--print-data-log", "--format", "json", *options]) == (0, "", told)


def test_something_that_passes_in_any_log_is_enough() -> None:
    for offset in (0, 1):
        Path(f"{offset:020}.log").write_bytes(Batch(offset, [Rec()]).to_bytes())
    assert answer([".", "--offset", "1"])[2] == ""
    Path("0.snapshot").touch()
    assert "nothing" not in answer(["--files", "0.snapshot", "--offset", "1"])[2], "no log was filtered"


def test_a_gap_that_the_filter_makes_is_no_finding() -> None:
    records = [Rec(offset_delta=i) for i in range(9)]
    Path(LOG).write_bytes(b"".join(Batch(9 * i, records, 8, codec=i % 5).to_bytes() for i in range(9)))
    for argv in (["--offset=30:40"], ["--offset=30:40", "--key-decoder-class"], ["--offset=30:40", "--format=json"]):
        assert answer(["--files", LOG, "--deep-iteration", *argv])[2] == ""


def test_holes_of_a_compacted_batch_are_not_filled() -> None:
    Path(LOG).write_bytes(Batch(10, [Rec(offset_delta=i) for i in (0, 3, 4, 9)], 12, codec=LZ4).to_bytes())
    assert offsets_of("--offset", "11:14") == [13, 14]
    assert offsets_of("--offset", "20:22") == []
    shallow = answer(["--files", LOG, "--offset", "20:22"])[1]
    assert "baseOffset: 10 lastOffset: 22" in shallow, "by its header the batch reaches there"


def test_headers_that_lie_about_time_do_not_hide_records() -> None:
    Path(LOG).write_bytes(Batch(0, [Rec(timestamp_delta=5)], max_timestamp=SOME_TIME - 9).to_bytes())
    assert offsets_of(f"--time={SOME_TIME + 5}") == [0]
    assert answer(["--files", LOG, f"--time={SOME_TIME + 5}"])[1].count("baseOffset") == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_old_entries_are_asked_record_by_record(magic: int) -> None:
    messages = [Message(offset, 5 + offset if magic else -1, b"%d" % offset, b"v") for offset in range(8)]
    Path(LOG).write_bytes(wrapped(magic, messages[:4]) + message_set(magic, messages[4:]))
    assert offsets_of("--offset", "2:5") == [2, 3, 4, 5]
    assert offsets_of("--key", "3") == [3]
    assert offsets_of("--producer-id=-1", "--offset", "7:") == [7]
    assert offsets_of("--producer-id=5") == []
    assert offsets_of("--time=-1") == ([] if magic else list(range(8)))
    shallow = answer(["--files", LOG, "--offset", "1:2"])[1]
    assert re.findall(r"^offset: (\d+)", shallow, re.MULTILINE) == ["3"]


def test_of_two_old_records_with_one_offset_only_the_passing_one_is_printed() -> None:
    messages = [Message(3, 1, b"a", b"first"), Message(3, 1, b"b", b"second")]
    Path(LOG).write_bytes(wrapped(0, messages))
    stdout = answer(["--files", LOG, "--print-data-log", "--key", "b"])[1]
    assert re.findall(r"payload: (\w+)", stdout) == ["second"]


def test_a_key_that_cannot_be_read_matters_only_when_keys_are_asked_for() -> None:
    content = bytearray(message_set(0, [Message(0, -1, b"key", b"value")]))
    struct.pack_into(">i", content, 18, 1000)
    Path(LOG).write_bytes(content)
    assert answer(["--files", LOG, "--offset", "0"])[0] == 0
    rc, _, stderr = answer(["--files", LOG, "--key", "key"])
    assert (rc, stderr.count("\n")) == (1, 1)
    assert "IllegalArgumentException: newLimit > capacity" in stderr


def test_keys_are_compared_as_bytes() -> None:
    keys = [None, b"", b"\xff\xfe", "世界".encode(), b"k", b"kk"]
    Path(LOG).write_bytes(Batch(0, [Rec(key, offset_delta=i) for i, key in enumerate(keys)], 5).to_bytes())
    assert offsets_of("--key", "") == [1]
    assert offsets_of("--key=") == [1]
    assert offsets_of("--key", b"\xff\xfe".decode(errors="surrogateescape")) == [2]
    assert offsets_of("--key", "世界") == [3]
    assert offsets_of("--key", "k") == [4]


def test_filters_go_with_decoders_and_without_metadata(golden: Golden) -> None:
    log = str(golden("demo") / "__transaction_state-0" / LOG)
    whole = answer(["--files", log, "--transaction-log-decoder"])[1].split("\n")
    found = answer(["--files", log, "--transaction-log-decoder", "--offset", "3:5"])[1].split("\n")
    assert [line for line in found if line.startswith("| offset: ")] == [
        line for line in whole if re.match(r"\| offset: [345] ", line)
    ]
    bare = answer(["--files", log, "--transaction-log-decoder", "--offset", "3:5", "--skip-record-metadata"])[1]
    assert [line for line in bare.split("\n") if line.startswith("| ")] == [
        "|" + line.partition("]")[2] for line in found if line.startswith("| offset: ")
    ]


def test_indexes_are_not_filtered() -> None:
    Path(LOG).write_bytes(Batch(0, [Rec()]).to_bytes() + Batch(1, [Rec()]).to_bytes())
    Path(INDEX).write_bytes(struct.pack(">iiii", 0, 0, 1, Path(LOG).stat().st_size // 2))
    stdout = answer(["--files", f"{LOG},{INDEX}", "--offset", "1"])[1].split("\n")
    assert [line for line in stdout if line.startswith("offset: ")] == [
        "offset: 0 position: 0",
        "offset: 1 position: 68",
    ]
    objects = answer(["--files", INDEX, "--offset", "1", "--format", "json"])[1]
    assert [json.loads(line)["offset"] for line in objects.splitlines()] == [0, 1]
    assert "indexes" in answer(["--help"])[2].partition("Beyond")[2]


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_damaged_old_entries_are_no_matter_unless_they_may_pass(output_format: str) -> None:
    """And then the entry dies of its header before its records die of theirs."""
    odd = bytearray(message_set(0, [Message(3, -1, b"key", b"value")]))
    odd[16] = 0x80  # the magic
    struct.pack_into(">i", odd, 26, 1000)  # where a message that is not of magic 0 has its key's size
    Path(LOG).write_bytes(odd)
    argv = ["--files", LOG, "--print-data-log", "--format", output_format]
    for options in (["--offset", "4"], ["--producer-id", "7"], ["--time", "0"]):
        rc, stdout, stderr = answer([*argv, *options])
        assert (rc, stdout.count("magic"), stderr) == (0, 0, f"logstore: nothing passes {' '.join(options)}\n")
    rc, _, stderr = answer([*argv, "--offset", "3"])
    assert rc == 1
    assert stderr.endswith("IllegalArgumentException: Invalid magic used in LegacyRecord: -128\n")


@pytest.mark.parametrize(
    "options",
    [["--transactional-id", "billing-1"], ["--isolation-level", "read_committed"]],
    ids=["transactional id", "isolation level"],
)
def test_a_filter_of_partitions_passes_over_a_file_beside_them(options: list[str], golden: Golden) -> None:
    root = golden("demo")
    rc, stdout, stderr = answer([str(root), *options, "--print-data-log"])
    assert (rc, stderr) == (0, "")
    assert f"Dumping {root}/bootstrap.checkpoint" in stdout
    assert ("payload: " in stdout.partition("Dumping")[2].partition("Dumping")[0]) == ("billing-1" not in options)
    assert "payload: orders" in stdout.partition("orders-0")[2] or "| offset: " in stdout.partition("orders-0")[2]


@pytest.mark.parametrize("text", ["0:3", "40:44", "57", "-3:", ":2", "199:", "90:120", "-200:-190"])
def test_an_index_leads_to_offsets_and_changes_nothing(text: str) -> None:
    written = open_partition_log("orders-0", {"index.interval.bytes": 200, "internal.segment.bytes": 9000})
    for number in range(100):
        written.append_records([b"x" * 100, b"%d" % number])
    written.close()
    asked = ["orders-0", "--records", "--print-data-log", "--offset", text]
    by_index = answer(asked)
    for index in Path("orders-0").glob("*.index"):
        index.unlink()
    assert (by_index[0], answer(asked)) == (0, by_index)
    assert "| offset: " in by_index[1]


@pytest.mark.parametrize("text", ["97:", "-3:"])
def test_damage_before_the_offsets_that_are_asked_for_hides_nothing(text: str) -> None:
    written = open_partition_log("orders-0", {"index.interval.bytes": 200})
    for number in range(100):
        written.append_records([b"%d" % number])
    written.close()
    log = Path("orders-0", LOG)
    log.write_bytes(b"x" * 61 + log.read_bytes()[61:])
    rc, stdout, stderr = answer(["orders-0", "--records", "--print-data-log", "--offset", text])
    assert (rc, re.findall(r"^\| offset: (\d+)", stdout, re.MULTILINE), stderr) == (0, ["97", "98", "99"], "")
    assert "offset: 97" not in answer(["orders-0", "--print-data-log"])[1]


CONSUMED = ["--isolation-level", "read_uncommitted"]


@pytest.mark.parametrize("output_format", ["text", "json"])
@pytest.mark.parametrize("options", [["--records"], ["--key", "k"], ["--time", f"{SOME_TIME}"], CONSUMED])
def test_records_are_left_out_and_told_where_the_checksum_of_their_batch_is_wrong(
    options: list[str], output_format: str
) -> None:
    batches = [Batch(offset, [Rec(b"k", b"value")]).to_bytes() for offset in range(3)]
    size = len(batches[0])
    Path(LOG).write_bytes(batches[0] + batches[1][:-2] + b"?" + batches[1][-1:] + batches[2])
    argv = ["--files", LOG, "--print-data-log", "--format", output_format]
    rc, stdout, stderr = answer([*argv, *options])
    kept = re.findall(r"^(?:\| |\{.*\"record\".*\")offset\"?: ?(\d+)", stdout, re.MULTILINE)
    assert (rc, kept) == (3, ["0", "2"])
    stored = int.from_bytes(batches[1][17:21], "big")
    assert stderr.partition("Non-consecutive")[0] == (
        f"logstore: Records are left out: the checksum of their batch is wrong; at {LOG}, byte {size}, offset 1; "
        f"found stored {stored:#010x}; see them with `logstore dump {LOG} --print-data-log`\n"
    )
    assert answer([*argv, *options, "--offset", "2"])[0] == 0
    assert answer([*argv, "--offset", "1"])[::2] == (0, "")  # the line of the batch says it


@pytest.mark.parametrize("options", [["--records"], ["--key", "k", "--offset", "1"]])
def test_old_messages_are_left_out_where_their_checksum_is_wrong(options: list[str]) -> None:
    messages = [bytearray(message_set(1, [Message(offset, SOME_TIME, b"k", b"value")])) for offset in range(3)]
    messages[1][-1] ^= 1
    Path(LOG).write_bytes(b"".join(messages))
    rc, stdout, stderr = answer(["--files", LOG, "--format", "json", *options])
    assert [json.loads(line)["offset"] for line in stdout.splitlines()] == ([0, 2] if options == ["--records"] else [])
    assert rc == 3
    assert f"at {LOG}, byte {len(messages[0])}, offset 1;" in stderr
    assert answer(["--files", LOG, "--records", "--offset", "0"])[0] == 0


def test_records_that_are_left_out_are_told_by_a_parallel_dump_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logstore_tools.dump.command.PARALLEL_SIZE_MIN", 0)
    content = bytearray(Batch(0, [Rec(b"k", b"value")]).to_bytes())
    content[-2] ^= 1
    Path(LOG).write_bytes(content)
    rc, stdout, stderr = answer(["--files", LOG, "--records"])
    assert (rc, stdout.count("\n"), stderr.count("\n")) == (3, 2, 1)
