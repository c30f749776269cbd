"""Small segments, most of them damaged, and what the real tool prints about their side files.

The answers are in `side_file_dumps.txt`, as Kafka 4.3.1 gave them to `python -m tests.kafka.record_side_file_dumps`:
the story of the case, its exit code, then the lines of stdout after `|` and those of stderr after `!`, up to the
first line of an uncaught exception.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from tests.naive.checksum import crc32c
from tests.support.encoder import GZIP, Batch, Rec

ANSWERS_PATH = Path(__file__).parent / "side_file_dumps.txt"


class Case(NamedTuple):
    """Files (None: a directory) of one segment, and a command line."""

    story: str
    files: dict[str, bytes | None]
    argv: list[str]

    def write(self, directory: Path) -> None:
        """Put the files into `directory`."""
        for name, content in self.files.items():
            if content is None:
                (directory / name).mkdir()
            else:
                (directory / name).write_bytes(content)


class Answer(NamedTuple):
    """What the tool said."""

    rc: int
    stdout: str
    stderr: str

    def to_text(self, story: str) -> str:
        """The lines of `side_file_dumps.txt`."""
        lines = [f"# {story}", f"= {self.rc}"]
        lines += [f"| {line}" for line in self.stdout.splitlines()]
        lines += [f"! {line}" for line in self.stderr.splitlines()]
        return "".join(line + "\n" for line in lines)


def recorded_answers() -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    story = ""
    for line in ANSWERS_PATH.read_text(encoding="utf-8").splitlines():
        mark, text = line[0], line[2:]
        if mark == "#":
            story, answers[text] = text, Answer(0, "", "")
        elif mark == "=":
            answers[story] = answers[story]._replace(rc=int(text))
        elif mark == "|":
            answers[story] = answers[story]._replace(stdout=answers[story].stdout + text + "\n")
        else:
            answers[story] = answers[story]._replace(stderr=answers[story].stderr + text + "\n")
    return answers


def offset_entries(*entries: tuple[int, int]) -> bytes:
    """(relative offset, position) of each."""
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_entries(*entries: tuple[int, int]) -> bytes:
    """(timestamp, relative offset) of each."""
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def aborted_entry(version: int, *fields: int) -> bytes:
    """Producer id, first, last and last stable offset."""
    return struct.pack(">hqqqq", version, *fields)


def snapshot(*entries: tuple[int, ...], version: int = 1, count: int | None = None, tail: bytes = b"") -> bytes:
    """Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first txn offset."""
    checked = struct.pack(">i", len(entries) if count is None else count)
    checked += b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries) + tail
    return struct.pack(">hI", version, crc32c(checked)) + checked


FIRST = Batch(100, [Rec(b"a", b"1"), Rec(b"b", b"2", (), 1, 5)], 1, base_timestamp=1000, max_timestamp=1005).to_bytes()
SECOND = Batch(102, [Rec(b"c", b"3")], 0, GZIP, base_timestamp=1003, max_timestamp=1003).to_bytes()
THIRD_RECORDS = [Rec(None, b"4", (), 0, 7), Rec(b"d", None, (), 2, 0)]
THIRD = Batch(103, THIRD_RECORDS, 2, base_timestamp=1003, max_timestamp=1010).to_bytes()
LOG = FIRST + SECOND + THIRD
SECOND_AT, THIRD_AT = len(FIRST), len(FIRST + SECOND)
EMPTY_BATCH = Batch(106, [], 4, base_timestamp=1003, max_timestamp=1010).to_bytes()
UNKNOWN_CODEC = Batch(106, [Rec()], 0, 6).to_bytes()
BROKEN_GZIP = SECOND[:70] + bytes(8) + SECOND[78:]
CUT_RECORD = FIRST[:-3] + b"\x7f" + FIRST[-2:]
MESSAGE_V1 = struct.pack(">qiIbbqii", 100, 22, 0, 1, 0, 2000, -1, -1)
LAST_OFFSET = 2**63 - 1
SHORT_V2 = struct.pack(">qiib", 9, 14, 0, 2) + bytes(9)  # 26 bytes: a header that says it is shorter than a header
JOINS_FROM_4 = struct.pack(">qiib", 0, 28, 24, 2) + bytes(23)  # 40 bytes, and from byte 4 the 36 to their end
INDEX = offset_entries((1, 0), (2, SECOND_AT), (5, THIRD_AT))
TIMES = time_entries((1005, 1), (1010, 5))
SEGMENT: dict[str, bytes | None] = {"100.log": LOG, "100.index": INDEX}
SHOW_INDEX, SHOW_TIMES, SHOW_ABORTED = (["--files", f"100.{suffix}"] for suffix in ("index", "timeindex", "txnindex"))
PRODUCERS = snapshot((7, 1, 2, 7, 0, 1000, 4, -1), (8, 0, 1, 5, 3, 1001, -1, 5), (9, -1, -1, -1, 0, -1, 3, -1))


def _index(story: str, index: bytes | None, *options: str, log: bytes | None = LOG) -> Case:
    """An offset index beside a log."""
    return Case(story, {"100.log": log, "100.index": index}, [*options, *SHOW_INDEX])


def _times(story: str, times: bytes, *options: str, log: bytes | None = LOG, index: bytes | None = INDEX) -> Case:
    """A time index beside a log and its offset index."""
    return Case(story, {"100.log": log, "100.index": index, "100.timeindex": times}, [*options, *SHOW_TIMES])


CASES = [
    _index("an index that is right", INDEX),
    Case("an index under a doubled slash", {**SEGMENT}, ["--files", ".//100.index/"]),
    _index("two wrong entries come in descending order", offset_entries((0, 0), (3, SECOND_AT), (5, THIRD_AT))),
    _index("only the wrong entries are of interest", offset_entries((0, 0), (2, SECOND_AT)), "--verify-index-only"),
    _index("an index that is empty", b"", "--index-sanity-check"),
    _index("an index of zeros ends after its first entry", bytes(64)),
    _index("the zero tail of a preallocated index is not shown", INDEX + bytes(64)),
    _index("a cut entry is not shown", INDEX + b"\0\0\0"),
    _index("a cut entry fails the sanity check", INDEX + b"\0\0\0", "--index-sanity-check"),
    _index("an index that is sane", INDEX, "--index-sanity-check"),
    _index(
        "a last offset below the base offset fails the sanity check",
        offset_entries((1, 0), (-2, 9)),
        "--index-sanity-check",
    ),
    _index("entries before a negative position are shown", offset_entries((1, 0), (2, -1))),
    _index("a position behind the end of the log", offset_entries((1, 0), (2, 100000))),
    _index("a position at the end of the log", offset_entries((1, 0), (2, len(LOG)))),
    _index("a position between batches, where zeros say the size", offset_entries((1, 0), (2, 21))),
    _index("a size that reaches past the end", offset_entries((1, 0)), log=bytes(8) + b"\x7f" * 12),
    _index("a log that is cut within the batch", INDEX, log=LOG[: SECOND_AT + 40]),
    _index("a largest message that no batch fits in", INDEX, "--max-message-size", "70"),
    _index("a negative largest message", INDEX, "--max-message-size", "-1"),
    _index("the header is longer than the log", offset_entries((1, 0)), log=SHORT_V2),
    _index("the header reaches into what follows", offset_entries((1, 0)), log=SHORT_V2 + LOG),
    _index("an entry that points at a message of version 1", offset_entries((1, 0)), log=MESSAGE_V1),
    Case(
        "the last offset overflows",
        {"9223372036854775807.log": LOG, "9223372036854775807.index": offset_entries((1, 0))},
        ["--files", "9223372036854775807.index"],
    ),
    Case("an index without its log", {"100.index": INDEX}, SHOW_INDEX),
    Case("a log without its index", {"100.log": LOG}, SHOW_INDEX),
    _index("an index whose log is a directory", INDEX, log=None),
    _index("an index that is a directory", None),
    Case("an index whose name is no number", {"x1.log": LOG, "x1.index": INDEX}, ["--files", "x1.index"]),
    Case("an index without a name", {".log": LOG, ".index": INDEX}, ["--files", ".index"]),
    Case(
        "an index whose number is too large",
        {"9223372036854775808.index": INDEX},
        ["--files", "9223372036854775808.index"],
    ),
    Case("an index with a second dot", {"100.log": LOG, "100.x.index": INDEX}, ["--files", "100.x.index"]),
    _times("a time index that is right", TIMES),
    _times("a time index beside an index without entries", TIMES, index=b""),
    _times("a time index without entries", b""),
    _times("a time index without entries is sane", b"", "--index-sanity-check"),
    _times(
        "timestamps that are wrong, out of order and of no batch",
        time_entries((1005, 1), (1004, 2), (1004, 3), (9, 9), (8, 5)),
    ),
    _times("only wrong times are of interest", time_entries((1005, 1), (1004, 2)), "--verify-index-only"),
    _times("the zero tail of a preallocated time index is not shown", TIMES + bytes(60)),
    _times(
        "the last time below the first fails the sanity check", time_entries((9, 1), (8, 2)), "--index-sanity-check"
    ),
    _times(
        "the last time's offset below the base fails the sanity check", time_entries((9, -1)), "--index-sanity-check"
    ),
    _times("a cut time entry fails the sanity check", TIMES + b"\0", "--index-sanity-check"),
    _times("a bad size anywhere behind the entry ends the time index", TIMES, log=LOG + bytes(18)),
    _times("a few bytes behind the last batch do not", TIMES, log=LOG + bytes(17)),
    _times(
        "an index that leads between batches, where a chain of sizes joins the batches",
        TIMES,
        log=JOINS_FROM_4 + LOG,
        index=offset_entries((1, 0), (5, 4)),
    ),
    _times("an index that leads behind the end", TIMES, index=offset_entries((1, 0), (2, 100000))),
    _times("an index that leads before the start", TIMES, index=offset_entries((1, -5))),
    _times("a short header at the end is not read before its turn", TIMES, log=LOG + SHORT_V2),
    _times(
        "a short header at the end is read for an offset that is not there",
        time_entries((1005, 1), (1011, 9)),
        log=LOG + SHORT_V2,
    ),
    _times("a batch without records has no time", time_entries((1010, 10)), log=LOG + EMPTY_BATCH),
    _times("the batch has an unknown codec", time_entries((1010, 6)), log=UNKNOWN_CODEC, index=b""),
    _times("the batch does not decompress", time_entries((1005, 1), (1010, 2)), log=FIRST + BROKEN_GZIP, index=b""),
    _times("the batch has a broken record", time_entries((1005, 1)), log=CUT_RECORD, index=b""),
    _times("the time of a message of version 1", time_entries((2001, 0)), log=MESSAGE_V1, index=b""),
    Case(
        "the time of a message of version 1 with the last offset that there is",
        {
            f"{LAST_OFFSET}.log": LAST_OFFSET.to_bytes(8) + MESSAGE_V1[8:],
            f"{LAST_OFFSET}.index": b"",
            f"{LAST_OFFSET}.timeindex": time_entries((2001, 0)),
        },
        ["--files", f"{LAST_OFFSET}.timeindex"],
    ),
    Case("a time index without its log", {"100.index": INDEX, "100.timeindex": TIMES}, SHOW_TIMES),
    Case("a time index without its offset index", {"100.log": LOG, "100.timeindex": TIMES}, SHOW_TIMES),
    Case("a segment without a time index", {**SEGMENT}, SHOW_TIMES),
    _times("a time index whose log is a directory", TIMES, log=None),
    _times("a time index whose offset index is a directory", TIMES, index=None),
    Case(
        "aborted transactions",
        {"100.txnindex": aborted_entry(0, 7, 3, 6, 7) + aborted_entry(255, 8, -1, 9, 5)},
        SHOW_ABORTED,
    ),
    Case(
        "a cut aborted transaction is not shown",
        {"100.txnindex": aborted_entry(0, 7, 3, 6, 7) + bytes(33)},
        SHOW_ABORTED,
    ),
    Case("a negative version is shown", {"100.txnindex": aborted_entry(-1, 7, 3, 6, 7)}, SHOW_ABORTED),
    Case(
        "an unknown version hides the entries before it",
        {"100.txnindex": aborted_entry(0, 7, 3, 6, 7) + aborted_entry(256, 7, 3, 6, 7)},
        ["--files", "./100.txnindex"],
    ),
    Case("a transaction index that is missing", {}, SHOW_ABORTED),
    Case("a transaction index that is empty", {"100.txnindex": b""}, SHOW_ABORTED),
    Case("a transaction index that is a directory", {"100.txnindex": None}, ["--files", "./100.txnindex"]),
    Case("a transaction index whose name is no number", {}, ["--files", "a.txnindex"]),
    Case("producers", {"any name.snapshot": PRODUCERS}, ["--files", "any name.snapshot"]),
    Case(
        "a first sequence before the wrap",
        {"1.snapshot": snapshot((1, 0, 1, 5, 3, 9, -1, -1))},
        ["--files", "1.snapshot"],
    ),
    Case("no producers", {"1.snapshot": snapshot()}, ["--files", "1.snapshot"]),
    Case("a wrong checksum", {"1.snapshot": PRODUCERS[:-1] + b"\0"}, ["--files", "1.snapshot"]),
    Case(
        "bytes behind the producers are under the checksum",
        {"1.snapshot": PRODUCERS + b"\0", "2.snapshot": snapshot(tail=b"\1\2")},
        ["--files", "1.snapshot,2.snapshot"],
    ),
    Case(
        "an unknown version of the snapshot",
        {"1.snapshot": snapshot(version=2), "2.snapshot": snapshot(version=0)},
        ["--files", "1.snapshot,2.snapshot"],
    ),
    Case(
        "a snapshot that is too short",
        {"1.snapshot": b"", "2.snapshot": b"\0", "3.snapshot": b"\0\1\0\0\0\0\0\0\0", "4.snapshot": PRODUCERS[:-1]},
        ["--files", "1.snapshot,2.snapshot,3.snapshot,4.snapshot"],
    ),
    Case(
        "a wild number of producers",
        {
            "1.snapshot": snapshot(count=-1),
            "2.snapshot": snapshot(count=2**31 - 1),
            "3.snapshot": snapshot(count=2, tail=bytes(2)),
        },
        ["--files", "1.snapshot,2.snapshot,3.snapshot"],
    ),
    Case("a snapshot that is missing", {}, ["--files", "./1.snapshot"]),
    Case("a snapshot that is a directory", {"1.snapshot": None}, ["--files", "1.snapshot"]),
    Case(
        "a damaged snapshot does not keep the next file from being shown",
        {"1.snapshot": b"", "100.txnindex": aborted_entry(0, 7, 3, 6, 7)},
        ["--files", "1.snapshot,100.txnindex"],
    ),
    Case(
        "findings are not printed after an exception",
        {"100.log": LOG, "100.index": offset_entries((0, 0))},
        ["--files", "100.index,1.snapshot"],
    ),
]
