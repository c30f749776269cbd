"""Faults of the files beside a log: indexes, producer snapshots, the checkpoint of leader epochs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from tests.naive.checksum import crc32c
from tests.planted.planter import Planted, Planter, register

RULES = {".index": "offset-index", ".timeindex": "time-index", ".txnindex": "transaction-index"}
ENTRIES = {
    ".index": struct.Struct(">ii"),
    ".timeindex": struct.Struct(">qi"),
    ".txnindex": struct.Struct(">hqqqq"),
}
FIELDS = {
    ".index": ("offset", "position"),
    ".timeindex": ("timestamp", "offset"),
    ".txnindex": ("version", "producer id", "first offset", "last offset", "last stable offset"),
}
SNAPSHOT_HEAD = 10  # version, checksum and count
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_FIELDS = (
    *("producer id", "epoch", "last sequence", "last offset", "offset delta", "timestamp", "coordinator epoch"),
    "first offset",
)
Rows = list[list[int]]


def entries(suffix: str, name: str, change: Callable[[Planter, Rows], Rows], count_min: int = 1, *rules: str) -> None:
    """Register a fault of an index that writes other entries."""
    entry = ENTRIES[suffix]

    def plant(planter: Planter) -> Planted:
        path = planter.file(f"*{suffix}", count_min * entry.size)
        rows = [list(row) for row in entry.iter_unpack(path.read_bytes())]
        path.write_bytes(b"".join(entry.pack(*row) for row in change(planter, rows)))
        return Planted(path.parent.name)

    register(f"{suffix} {name}", plant, [RULES[suffix], *rules], ["time-index-end"])


def content(suffix: str, name: str, change: Callable[[Planter, bytes], bytes], *rules: str) -> None:
    """Register a fault of an index that writes other bytes."""

    def plant(planter: Planter) -> Planted:
        path = planter.file(f"*{suffix}")
        path.write_bytes(change(planter, path.read_bytes()))
        return Planted(path.parent.name)

    register(f"{suffix} {name}", plant, rules or [RULES[suffix]], ["time-index-end"])


def field(column: int, delta: int) -> Callable[[Planter, Rows], Rows]:
    def change(planter: Planter, rows: Rows) -> Rows:
        planter.dice.choose(rows)[column] += delta
        return rows

    return change


for suffix, names in FIELDS.items():
    for column, name in enumerate(names):
        # Kafka looks only at the first byte of a version
        for delta in (256, 1 << 14) if name == "version" else (-1, 1, 1000):
            entries(suffix, f"{name} {delta:+} off", field(column, delta))
    entries(suffix, "with an entry twice", lambda planter, rows: [*rows, rows[-1]])
    entries(suffix, "the other way round", lambda planter, rows: rows[::-1], 2)
    content(suffix, "with bytes behind it", lambda planter, data: data + planter.dice.take(3)[:3])
    content(suffix, "cut in an entry", lambda planter, data: data[:-1])
    content(suffix, "of noise", lambda planter, data: planter.dice.take(len(data))[: len(data)])
for suffix in (".index", ".timeindex"):
    entries(suffix, "with zeros behind it", lambda planter, rows: [*rows, [0, 0]], 1, "index-zeros")
entries(".index", "of zeros", lambda planter, rows: [[0, 0]] * len(rows), 1, "index-zeros")
entries(".timeindex", "without its end", lambda planter, rows: rows[:-1], 1, "time-index-end")
entries(".txnindex", "without its first entry", lambda planter, rows: rows[1:])
entries(".txnindex", "without its last entry", lambda planter, rows: rows[:-1])
entries(".txnindex", "emptied", lambda planter, rows: [])
entries(
    ".txnindex",
    "with an entry more",
    lambda planter, rows: [*rows, [0, 77, *(rows[-1][3] + number for number in range(3))]],
)


def removed(suffix: str, rule: str) -> None:
    def plant(planter: Planter) -> Planted:
        path = planter.file(f"*{suffix}")
        path.unlink()
        return Planted(path.parent.name)

    register(f"{suffix} removed", plant, [rule])


removed(".index", "offset-index-missing")
removed(".timeindex", "time-index-missing")
removed(".txnindex", "transaction-index")


def orphan(planter: Planter) -> Planted:
    directory = planter.partition()
    (directory / f"{777_777:020d}{planter.dice.choose(list(RULES))}").write_bytes(b"")
    return Planted(directory.name)


def index_of_another_segment(planter: Planter) -> Planted:
    """One that has only the first entries of the right one is right, too: entries are far between anyhow."""
    path = planter.file("*.index")
    others = (one for one in path.parent.glob("*.index") if not path.read_bytes().startswith(one.read_bytes()))
    path.write_bytes(planter.one_of(others).read_bytes())
    return Planted(path.parent.name)


register("index without a segment", orphan, ["orphan-index"])
register(".index of another segment", index_of_another_segment, ["offset-index"], ["index-zeros"])


def snapshot(name: str, change: Callable[[Planter, Rows], Rows]) -> None:
    """Register a fault of a snapshot of producers, under a checksum that is right."""

    def plant(planter: Planter) -> Planted:
        path = planter.file("*.snapshot", SNAPSHOT_HEAD + SNAPSHOT_ENTRY.size)
        rows = [list(row) for row in SNAPSHOT_ENTRY.iter_unpack(path.read_bytes()[SNAPSHOT_HEAD:])]
        rows = change(planter, rows)
        body = struct.pack(">i", len(rows)) + b"".join(SNAPSHOT_ENTRY.pack(*row) for row in rows)
        path.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
        return Planted(path.parent.name)

    register(f"snapshot {name}", plant, ["snapshot-state"])


def without_open(planter: Planter, rows: Rows) -> Rows:
    """One of no transaction may have expired."""
    gone = planter.one_of(row for row in rows if row[-1] >= 0)
    return [row for row in rows if row is not gone]


def snapshot_bytes(name: str, change: Callable[[Planter, bytes], bytes]) -> None:
    def plant(planter: Planter) -> Planted:
        path = planter.file("*.snapshot", SNAPSHOT_HEAD + SNAPSHOT_ENTRY.size)
        path.write_bytes(change(planter, path.read_bytes()))
        return Planted(path.parent.name)

    register(f"snapshot {name}", plant, ["snapshot-format"])


def _last_offset(path: Path) -> int:
    rows = SNAPSHOT_ENTRY.iter_unpack(path.read_bytes()[SNAPSHOT_HEAD:])
    return max((row[3] for row in rows), default=-1)


def snapshot_renamed(name: str, offset: Callable[[int], int]) -> None:
    def plant(planter: Planter) -> Planted:
        """A snapshot of an earlier offset is right, too, if no producer wrote behind that."""
        moved = {
            path: offset(int(path.stem)) for one in planter.partitions() for path in sorted(one.glob("*.snapshot"))
        }
        path = planter.one_of(path for path in moved if _last_offset(path) >= int(path.stem) - 1)
        path.rename(path.with_name(f"{moved[path]:020d}.snapshot"))
        return Planted(path.parent.name)

    register(f"snapshot {name}", plant, ["snapshot-state"], ["snapshot-missing"])


for column, name in enumerate(SNAPSHOT_FIELDS):
    for delta in (-1, 1):
        # a producer that came again after it had expired has no coordinator yet
        if (name, delta) != ("coordinator epoch", -1):
            snapshot(f"{name} {delta:+} off", field(column, delta))
snapshot("with a producer more", lambda planter, rows: [*rows, [999, 0, 0, max(row[3] for row in rows), 0, 0, -1, -1]])
snapshot("without a producer of a transaction", without_open)
snapshot("with a producer twice", lambda planter, rows: [*rows, rows[0]])
snapshot_bytes("with a wrong checksum", lambda planter, data: data[:2] + bytes(4) + data[6:])
snapshot_bytes("of version 7", lambda planter, data: b"\x00\x07" + data[2:])
snapshot_bytes("cut", lambda planter, data: data[: planter.dice.between(1, len(data) - 1)])
snapshot_bytes("of noise", lambda planter, data: planter.dice.take(len(data))[: len(data)])
snapshot_bytes("with bytes behind it", lambda planter, data: data + b"more")


def snapshots_removed(planter: Planter) -> Planted:
    size_min = SNAPSHOT_HEAD + SNAPSHOT_ENTRY.size
    directory = planter.file("*.snapshot", size_min).parent
    for path in directory.glob("*.snapshot"):
        path.unlink()
    return Planted(directory.name)


register("snapshots removed", snapshots_removed, ["snapshot-missing"])
snapshot_renamed("beyond the end", lambda offset: offset + 100_000)
snapshot_renamed("of the offset before", lambda offset: offset - 1)


def epochs(name: str, text: str | None, *rules: str) -> None:
    """Register a fault of `leader-epoch-checkpoint`."""

    def plant(planter: Planter) -> Planted:
        path = planter.file("leader-epoch-checkpoint")
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
        return Planted(path.parent.name)

    register(f"leader epochs {name}", plant, rules or ["leader-epochs"])


epochs("removed", None)
epochs("of none", "0\n0\n")
epochs("of another", "0\n1\n77 0\n")
epochs("from later on", "0\n1\n0 100000\n")
epochs("that go back", "0\n2\n5 0\n0 1\n")
epochs("emptied", "")
for word, text in {
    "count": "0\n3\n0 0\n",
    "version": "9\n1\n0 0\n",
    "words": "0\n1\nzero zero\n",
    "noise": "\x00\x01",
}.items():
    epochs(f"with a wrong {word}", text, "checkpoint-format")
