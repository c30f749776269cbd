"""Faults to plant in a copy of a golden directory: each breaks one rule, and no other."""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.naive.batch import scan
from tests.naive.checksum import crc32c
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec

ROLLED = "rolled-0"  # of `transactions`: five segments, a transaction across two of them
FIRST, SECOND, LAST = (f"{base:020d}" for base in (0, 16, 65))

Plant = Callable[[Path], None]

BASE_OFFSET, LENGTH, LEADER_EPOCH, MAGIC, CRC, ATTRIBUTES = 0, 8, 12, 16, 17, 21
RECORD_COUNT, RECORDS = 57, 61


def change(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def change_batch(path: Path, number: int, field: int, data: bytes, *, keeps_crc: bool = False) -> None:
    """Another value in a field of batch `number`, under a checksum that is right."""
    content = bytearray(path.read_bytes())
    row = scan(bytes(content), 0, len(content)).rows[number]
    start, end = row.position, row.position + row.size
    content[start + field : start + field + len(data)] = data
    if not keeps_crc:
        struct.pack_into(">I", content, start + CRC, crc32c(bytes(content[start + ATTRIBUTES : end])))
    path.write_bytes(content)


def in_log(base: str, number: int, field: int, data: bytes, *, keeps_crc: bool = False) -> Plant:
    return lambda root: change_batch(root / ROLLED / f"{base}.log", number, field, data, keeps_crc=keeps_crc)


def in_file(name: str, position: int, data: bytes) -> Plant:
    return lambda root: change(root / ROLLED / name, position, data)


def write(name: str, content: bytes) -> Plant:
    def plant(root: Path) -> None:
        (root / name).write_bytes(content)

    return plant


def append(name: str, content: bytes) -> Plant:
    def plant(root: Path) -> None:
        with (root / name).open("ab") as file:
            file.write(content)

    return plant


def remove(*names: str) -> Plant:
    def plant(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return plant


def lengthen(name: str, size: int) -> Plant:
    """A file of `size` bytes, of which the disk has only those that were there."""
    return lambda root: os.truncate(root / name, size)


def copy(source: str, destination: str) -> Plant:
    def plant(root: Path) -> None:
        shutil.copytree(root / source, root / destination)

    return plant


def begun_anew(root: Path) -> None:
    """The partition was not in the metadata for a while, at a start."""
    stray = (root / "orders-1").rename(root / f"orders-1.{'0f2a' * 8}-stray")
    (root / "orders-1").mkdir()
    shutil.copy(stray / "partition.metadata", root / "orders-1")
    for name in (".log", ".index", ".timeindex"):
        (root / "orders-1" / f"{0:020d}{name}").touch()
    for checkpoint in root.glob("re*-offset-checkpoint"):
        checkpoint.write_text(re.sub(r"(?m)^orders 1 \d+$", "orders 1 0", checkpoint.read_text()))


def resealed(name: str, position: int, data: bytes) -> Plant:
    """Another value in a snapshot, under a checksum that is right."""

    def plant(root: Path) -> None:
        path = root / ROLLED / name
        change(path, position, data)
        change(path, 2, struct.pack(">I", crc32c(path.read_bytes()[6:])))

    return plant


def forget_snapshots(root: Path) -> None:
    """Of a partition with an open transaction, closed cleanly."""
    for path in (root / "payments-0").glob("*.snapshot"):
        path.unlink()


def forget_producers(root: Path) -> None:
    """Of a partition whose transactions are all decided."""
    for path in (root / ROLLED).glob("*.snapshot"):
        path.unlink()


def in_later_epochs(root: Path) -> None:
    """Batches and checkpoint tell the same: leader epoch 9, which the cluster has not come to."""
    log = root / "orders-1" / f"{FIRST}.log"
    content = log.read_bytes()
    for number in range(len(scan(content, 0, len(content)).rows)):
        change_batch(log, number, LEADER_EPOCH, struct.pack(">i", 9), keeps_crc=True)
    (root / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n9 0\n")


def set_level(level: int) -> Plant:
    """The metadata log has another level of `metadata.version`; 0 is none."""

    def plant(root: Path) -> None:
        path, name = root / "__cluster_metadata-0" / f"{FIRST}.log", b"metadata.version"
        content = path.read_bytes()
        position = content.index(name) + len(name)
        rows = scan(content, 0, len(content)).rows
        number = max(number for number, row in enumerate(rows) if row.position <= position)
        change_batch(path, number, position - rows[number].position, struct.pack(">h", level))

    return plant


def lose_directory(root: Path) -> None:
    """A checkpoint tells of a partition more."""
    path = root / "replication-offset-checkpoint"
    version, count, *entries = path.read_text().splitlines()
    path.write_text("\n".join([version, str(int(count) + 1), *entries, "lost 3 7", ""]))


FAULTS: dict[str, list[Plant]] = {
    "log-crc": [
        in_log(SECOND, 1, RECORDS + 2, b"\xff", keeps_crc=True),
        in_log(LAST, -2, RECORDS + 2, b"\xff", keeps_crc=True),
    ],
    "log-length": [
        in_log(FIRST, 2, LENGTH, struct.pack(">i", 5), keeps_crc=True),
        in_log(FIRST, 2, LENGTH, struct.pack(">i", 1 << 30), keeps_crc=True),
    ],
    "log-tail": [append(f"{ROLLED}/{LAST}.log", b"torn" * 9), append(f"{ROLLED}/{FIRST}.log", bytes(500))],
    "log-size": [lengthen(f"{ROLLED}/{LAST}.log", 2**31)],
    "log-magic": [in_log(SECOND, 0, MAGIC, b"\x03", keeps_crc=True)],
    "log-codec": [in_log(SECOND, 0, ATTRIBUTES, b"\x00\x17")],
    "log-delete-horizon": [in_log(SECOND, 0, ATTRIBUTES, b"\x00\x50")],
    "log-record-count": [in_log(SECOND, 0, RECORD_COUNT, struct.pack(">i", 99))],
    "orphan-index": [write(f"{ROLLED}/00000000000000000007.index", b"")],
    "directory-entry": [
        lambda root: (root / "notes").mkdir(),
        lambda root: (root / "escaped-0").symlink_to("/"),
        write(f"{ROLLED}/first.log", b""),
    ],
    "swap-left-over": [write(f"{ROLLED}/{FIRST}.log.swap", b"")],
    "offset-index": [
        in_file(f"{SECOND}.index", 0, struct.pack(">ii", 5, 99)),
        in_file(f"{SECOND}.index", 4, struct.pack(">i", 1 << 20)),
        append(f"{ROLLED}/{SECOND}.index", b"odd"),
    ],
    "offset-index-missing": [remove(f"{ROLLED}/{SECOND}.index")],
    "time-index": [
        in_file(f"{SECOND}.timeindex", 0, struct.pack(">q", 1)),
        in_file(f"{SECOND}.timeindex", 8, struct.pack(">i", 1000)),
        append(f"{ROLLED}/{SECOND}.timeindex", b"odd"),
    ],
    "time-index-missing": [remove(f"{ROLLED}/{SECOND}.timeindex")],
    "time-index-end": [write(f"{ROLLED}/{SECOND}.timeindex", b"")],
    "index-zeros": [
        append(f"{ROLLED}/{SECOND}.index", bytes(80)),
        append(f"{ROLLED}/{LAST}.timeindex", bytes(120)),
    ],
    "transaction-index": [
        remove(f"{ROLLED}/{SECOND}.txnindex"),
        in_file(f"{SECOND}.txnindex", 2, struct.pack(">q", 12345)),
        in_file(f"{SECOND}.txnindex", 26, struct.pack(">q", 1 << 40)),
        in_file(f"{SECOND}.txnindex", 0, b"\x01"),
        append(f"{ROLLED}/{SECOND}.txnindex", struct.pack(">hqqqq", 0, 1, 17, 18, 19)),
    ],
    "snapshot-format": [
        in_file(f"{SECOND}.snapshot", 30, b"\xaa"),
        write(f"{ROLLED}/{SECOND}.snapshot", b"\x00\x07"),
    ],
    "snapshot-state": [
        resealed(f"{SECOND}.snapshot", 10 + 8, struct.pack(">h", 77)),
        write(f"{ROLLED}/00000000000000009999.snapshot", bytes.fromhex("000148674bc700000000")),
    ],
    "snapshot-missing": [forget_snapshots, forget_producers],
    "leader-epochs": [
        write(f"{ROLLED}/leader-epoch-checkpoint", b"0\n1\n3 0\n"),
        write(f"{ROLLED}/leader-epoch-checkpoint", b"0\n2\n0 0\n0 5\n"),
        remove(f"{ROLLED}/leader-epoch-checkpoint"),
        write("__cluster_metadata-0/leader-epoch-checkpoint", b"0\n1\n1 -1\n"),
    ],
    "partition-metadata": [
        remove(f"{ROLLED}/partition.metadata"),
        write(f"{ROLLED}/partition.metadata", b"version: 0\n"),
        write("orders-1/partition.metadata", b"version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ"),
    ],
    "partition-set-aside": [begun_anew],
    "partition-twice": [copy("orders-1", f"orders-1.{'0f2a' * 8}-future")],
    "partition-unknown": [copy("orders-1", "orders-9")],
    "meta-properties": [
        remove("meta.properties"),
        write("meta.properties", b""),
        write("meta.properties", b"version=1\nnode.id=1\n"),
        write("meta.properties", b"version=1\ncluster.id=c\nnode.id=7\n"),
        write("meta.properties", b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=dqEnd-x7SkKckvU0_kJgLQ\n"),
    ],
    "metadata-behind": [in_later_epochs],
    "metadata-version": [set_level(0)],
    "newer-kafka": [set_level(99)],
    "metadata-snapshot": [write("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint", b"")],
    "startup-file": [
        write("bootstrap.checkpoint", b"noise"),
        write("bootstrap.checkpoint", b""),
        write("__cluster_metadata-0/quorum-state", b""),
        write("__cluster_metadata-0/quorum-state", b'{"leaderId":1}'),
    ],
    "quorum-state": [remove("__cluster_metadata-0/quorum-state")],
    "checkpoint-format": [
        write("recovery-point-offset-checkpoint", b"0\n9\nx\n"),
        write("recovery-point-offset-checkpoint", b""),
        write("log-start-offset-checkpoint", b""),
        remove("recovery-point-offset-checkpoint"),
        remove("log-start-offset-checkpoint"),
        write(f"{ROLLED}/leader-epoch-checkpoint", b"7\n"),
    ],
    "checkpoint-offset": [
        write("recovery-point-offset-checkpoint", b"0\n1\nrolled 0 77\n"),
        write("recovery-point-offset-checkpoint", b"0\n1\nrolled 0 75\n"),
        write("log-start-offset-checkpoint", b"0\n1\nrolled 0 -5\n"),
    ],
    "checkpoint-partition": [lose_directory],
}


def plain_batches() -> list[Batch]:
    """Offsets 0 to 5 of two leader epochs, without producers."""
    records = [Rec(key=b"k", value=b"v"), Rec(value=b"w", offset_delta=1)]
    return [Batch(base, records, last_offset_delta=1, leader_epoch=base // 4) for base in (0, 2, 4)]


def lay_plain(root: Path, batches: list[Batch]) -> Path:
    """A partition `plain-0` of one closed segment of these batches and an empty one at offset 6."""
    directory = root / "plain-0"
    directory.mkdir()
    for base in (0, 6):
        for suffix in (".log", ".index", ".timeindex"):
            (directory / f"{base:020d}{suffix}").write_bytes(b"")
    (directory / f"{FIRST}.log").write_bytes(b"".join(batch.to_bytes() for batch in batches))
    (directory / f"{FIRST}.timeindex").write_bytes(struct.pack(">qi", 1_700_000_000_000, 1))
    (directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 4\n")
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ")
    return directory


def other(number: int, **fields: Any) -> list[Batch]:
    """The plain batches, one of them with other fields."""
    batches = plain_batches()
    batches[number] = replace(batches[number], **fields)
    return batches


PLAIN_FAULTS: dict[str, list[list[Batch]]] = {
    "log-offset-order": [
        other(1, base_offset=1),
        other(2, base_offset=0, leader_epoch=0),
        other(2, last_offset_delta=-1),
    ],
    "log-offset-range": [other(2, base_offset=5), other(2, base_offset=1 << 40)],
    "log-leader-epoch": [other(0, leader_epoch=1)],
    "log-header": [
        other(2, flags=0x80),
        other(2, producer_id=-2),
        other(2, producer_id=7, producer_epoch=0),
        other(2, producer_id=7, base_sequence=0),
        other(2, flags=TRANSACTIONAL),
    ],
    "log-marker": [other(2, flags=TRANSACTIONAL | CONTROL, producer_id=7, producer_epoch=0)],
}
