"""Faults of indexes, snapshots and the checkpoints of a partition."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from tests.naive.checksum import crc32c
from tests.planted.planter import Planted, Planter, kind

SIZES = {".index": 8, ".timeindex": 12, ".txnindex": 34}
RULES = {".index": "offset-index", ".timeindex": "time-index", ".txnindex": "transaction-index"}
SNAPSHOT_HEAD, SNAPSHOT_ENTRY = 10, struct.Struct(">qhiqiqiq")


def is_closed_segment(path: Path) -> bool:
    return path.with_suffix(".log").name != sorted(one.name for one in path.parent.glob("*.log"))[-1]


def entry_fault(name: str, suffix: str, change: Callable[[Planter, list[bytes]], list[bytes]], count: int = 1,
                rules: tuple[str, ...] = ()) -> None:
    def plant(p: Planter) -> Planted:
        size = SIZES[suffix]
        path = p.file(f"*{suffix}", size, count)
        content = path.read_bytes()
        entries = [content[at : at + size] for at in range(0, len(content), size)]
        path.write_bytes(b"".join(change(p, entries)))
        return Planted(path.parent.name)
    plant.__name__ = f"{suffix[1:]}_{name}"
    kind(RULES[suffix], *rules, also=("time-index-end",))(plant)


def field(position: int, form: str, delta: int) -> Callable[[Planter, list[bytes]], list[bytes]]:
    def change(p: Planter, entries: list[bytes]) -> list[bytes]:
        number = p.dice.below(len(entries))
        entry = bytearray(entries[number])
        struct.pack_into(form, entry, position, struct.unpack_from(form, entry, position)[0] + delta)
        entries[number] = bytes(entry)
        return entries
    return change


for suffix, fields in {
    ".index": {"offset": (0, ">i"), "position": (4, ">i")},
    ".timeindex": {"timestamp": (0, ">q"), "offset": (8, ">i")},
    ".txnindex": {"version": (0, ">h"), "producer_id": (2, ">q"), "first_offset": (10, ">q"), "last_offset": (18, ">q"), "last_stable_offset": (26, ">q")},
}.items():
    for what, (position, form) in fields.items():
        for delta in ((256, 1 << 14) if what == "version" else (1, -1, 1000)):
            entry_fault(f"{what}_{delta}".replace("-", "minus_"), suffix, field(position, form, delta))
    entry_fault("garbage_behind", suffix, lambda p, entries: [*entries, p.dice.take(3)])
    entry_fault("repeated", suffix, lambda p, entries: [*entries, entries[-1]])
    entry_fault("reversed", suffix, lambda p, entries: entries[::-1], count=2)
    entry_fault("cut_in_an_entry", suffix, lambda p, entries: [*entries[:-1], entries[-1][:-1]])
    entry_fault("noise", suffix, lambda p, entries: [p.dice.take(len(one)) for one in entries])
entry_fault("zeros_behind", ".index", lambda p, entries: [*entries, bytes(8)], rules=("index-zeros",))
entry_fault("zeros_behind", ".timeindex", lambda p, entries: [*entries, bytes(12)], rules=("index-zeros",))
entry_fault("zeros", ".index", lambda p, entries: [bytes(8)] * len(entries), rules=("index-zeros",))
entry_fault("dropped", ".txnindex", lambda p, entries: entries[1:])
entry_fault("dropped_last", ".txnindex", lambda p, entries: entries[:-1])
entry_fault("emptied", ".txnindex", lambda p, entries: [])
entry_fault("added", ".txnindex", lambda p, entries: [*entries, struct.pack(">hqqqq", 0, 77, *(struct.unpack_from(">q", entries[-1], 18)[0] + n for n in (0, 1, 2)))])


def removed(suffix: str, rule: str) -> None:
    def plant(p: Planter) -> Planted:
        path = p.file(f"*{suffix}")
        path.unlink()
        return Planted(path.parent.name)
    plant.__name__ = f"{suffix[1:]}_removed"
    kind(rule, also=("time-index-end",))(plant)


removed(".index", "offset-index-missing")
removed(".timeindex", "time-index-missing")
removed(".txnindex", "transaction-index")


@kind("offset-index", "time-index", also=("time-index-end", "index-zeros"))
def index_of_another_segment(p: Planter) -> Planted:
    path = p.one_of([one for some in p.partitions() for one in sorted(some.glob("*.index"))[1:] if one.stat().st_size])
    others = [one for one in path.parent.glob("*.index") if one != path and one.stat().st_size and one.read_bytes() != path.read_bytes()]
    path.write_bytes(p.one_of(others).read_bytes())
    return Planted(path.parent.name)


@kind("time-index", "time-index-end")
def timeindex_without_its_end(p: Planter) -> Planted:
    path = p.one_of([one for some in p.partitions() for one in some.glob("*.timeindex") if one.stat().st_size])
    path.write_bytes(path.read_bytes()[:-12])
    return Planted(path.parent.name)


@kind("orphan-index")
def orphaned(p: Planter) -> Planted:
    directory = p.partition()
    (directory / f"{777777:020d}{p.dice.choose(('.index', '.timeindex', '.txnindex'))}").write_bytes(b"")
    return Planted(directory.name)


def snapshot_fault(name: str, change: Callable[[Planter, list[list[int]]], list[list[int]]], *rules: str) -> None:
    def plant(p: Planter) -> Planted:
        path = p.file("*.snapshot", count=SNAPSHOT_HEAD + SNAPSHOT_ENTRY.size)
        rows = [list(row) for row in SNAPSHOT_ENTRY.iter_unpack(path.read_bytes()[SNAPSHOT_HEAD:])]
        rows = change(p, rows)
        body = struct.pack(">i", len(rows)) + b"".join(SNAPSHOT_ENTRY.pack(*row) for row in rows)
        path.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
        return Planted(path.parent.name)
    plant.__name__ = f"snapshot_{name}"
    kind(*(rules or ("snapshot-state",)))(plant)


# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of a transaction
def of_row(column: int, delta: int) -> Callable[[Planter, list[list[int]]], list[list[int]]]:
    def change(p: Planter, rows: list[list[int]]) -> list[list[int]]:
        row = p.dice.choose(rows)
        row[column] += delta
        return rows
    return change


for column, what in enumerate(("producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp", "coordinator_epoch", "first_offset")):
    for delta in (1, -1):
        snapshot_fault(f"{what}_{delta}".replace("-", "minus_"), of_row(column, delta))
snapshot_fault("without_a_producer", lambda p, rows: rows[1:])
snapshot_fault("of_nothing", lambda p, rows: [])
snapshot_fault("of_one_more", lambda p, rows: [*rows, [999, 0, 0, max(row[3] for row in rows), 0, rows[0][5], -1, -1]])
snapshot_fault("of_a_producer_twice", lambda p, rows: [*rows, rows[0]], "snapshot-state", "snapshot-format")


def raw_snapshot(name: str, change: Callable[[Planter, bytes], bytes]) -> None:
    def plant(p: Planter) -> Planted:
        path = p.file("*.snapshot", count=SNAPSHOT_HEAD + SNAPSHOT_ENTRY.size)
        path.write_bytes(change(p, path.read_bytes()))
        return Planted(path.parent.name)
    plant.__name__ = f"snapshot_{name}"
    kind("snapshot-format")(plant)


raw_snapshot("wrong_checksum", lambda p, data: data[:2] + bytes(4) + data[6:])
raw_snapshot("version_7", lambda p, data: b"\x00\x07" + data[2:])
raw_snapshot("cut", lambda p, data: data[: p.dice.between(1, len(data) - 1)])
raw_snapshot("emptied", lambda p, data: b"")
raw_snapshot("noise", lambda p, data: p.dice.take(len(data)))
raw_snapshot("bytes_behind", lambda p, data: data + b"more")


@kind("snapshot-state")
def snapshot_beyond_the_end(p: Planter) -> Planted:
    path = p.file("*.snapshot", count=SNAPSHOT_HEAD + SNAPSHOT_ENTRY.size)
    path.rename(path.with_name(f"{123456:020d}.snapshot"))
    return Planted(path.parent.name)


@kind("snapshot-state")
def snapshot_of_another_offset(p: Planter) -> Planted:
    path = p.one_of([one for some in p.partitions() for one in some.glob("*.snapshot") if one.stat().st_size > SNAPSHOT_HEAD and int(one.stem) > 1])
    path.rename(path.with_name(f"{int(path.stem) - 1:020d}.snapshot"))
    return Planted(path.parent.name)


def epochs_fault(name: str, content: bytes | None, *rules: str) -> None:
    def plant(p: Planter) -> Planted:
        path = p.file("leader-epoch-checkpoint", count=5)
        if not list(log for log in path.parent.glob("*.log") if log.stat().st_size):
            raise_unsuitable()
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        return Planted(path.parent.name)
    plant.__name__ = f"epochs_{name}"
    kind(*rules)(plant)


def raise_unsuitable() -> None:
    from tests.planted.planter import UnsuitableError

    raise UnsuitableError


epochs_fault("removed", None, "leader-epochs")
epochs_fault("emptied", b"", "checkpoint-format", "leader-epochs")
epochs_fault("of_none", b"0\n0\n", "leader-epochs")
epochs_fault("of_another", b"0\n1\n77 0\n", "leader-epochs")
epochs_fault("from_later", b"0\n1\n0 100000\n", "leader-epochs")
epochs_fault("back", b"0\n2\n5 0\n0 1\n", "leader-epochs")
epochs_fault("one_more_at_the_start", b"0\n2\n0 0\n3 1\n", "leader-epochs")
epochs_fault("count", b"0\n3\n0 0\n", "checkpoint-format", "leader-epochs")
epochs_fault("version", b"9\n1\n0 0\n", "checkpoint-format", "leader-epochs")
epochs_fault("words", b"0\n1\nzero zero\n", "checkpoint-format", "leader-epochs")
epochs_fault("noise", b"\xff\xfe\x00\x01", "checkpoint-format", "leader-epochs")
