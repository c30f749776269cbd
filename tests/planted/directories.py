"""Faults around partitions: checkpoints, ids, directories that are missing, foreign or too many."""

from __future__ import annotations

import shutil

from tests.planted.planter import Planted, Planter, kind

OFFSETS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint")


def lines_of(p: Planter, name: str) -> list[list[str]]:
    path = p.root / name
    text = path.read_text() if path.exists() else "0\n0\n"
    return [line.rsplit(" ", 2) for line in text.splitlines()[2:]]


def write_lines(p: Planter, name: str, entries: list[list[str]]) -> None:
    body = "".join(" ".join(entry) + "\n" for entry in entries)
    (p.root / name).write_text(f"0\n{len(entries)}\n{body}")


def names_of(p: Planter) -> list[str]:
    return [path.name for path in p.partitions() if any(log.stat().st_size for log in path.glob("*.log"))]


def entry_of(p: Planter, name: str, offset: int) -> Planted:
    partition = p.one_of(names_of(p))
    topic, _, number = partition.rpartition("-")
    entries = [entry for entry in lines_of(p, name) if entry[:2] != [topic, number]]
    write_lines(p, name, [*entries, [topic, number, str(offset)]])
    return Planted(partition)


for name in OFFSETS:
    word = name.split("-")[0]
    for offset in (1 << 40, -5):
        def beyond(p: Planter, name: str = name, offset: int = offset) -> Planted:
            return entry_of(p, name, offset)
        beyond.__name__ = f"{word}_checkpoint_at_{offset}".replace("-", "minus_")
        kind("checkpoint-offset", also=("offsets-lost", "snapshot-state", "leader-epochs") if word == "log" else ())(beyond)

    def unknown(p: Planter, name: str = name) -> Planted:
        write_lines(p, name, [*lines_of(p, name), ["nowhere", "3", "0"]])
        return Planted("nowhere-3")
    unknown.__name__ = f"{word}_checkpoint_of_no_directory"
    kind("checkpoint-partition")(unknown)

    for what, content in {
        "version": "5\n0\n", "count": "0\n9\n", "words": "0\n1\na b c\n", "short_line": "0\n1\nrolled 0\n",
        "noise": "\x00\x01\x02", "count_negative": "0\n-1\n",
    }.items():
        def unparsed(p: Planter, name: str = name, content: str = content) -> Planted:
            (p.root / name).write_text(content)
            return Planted(name)
        unparsed.__name__ = f"{word}_checkpoint_{what}"
        kind("checkpoint-format")(unparsed)


@kind("partition-metadata")
def topic_id_removed(p: Planter) -> Planted:
    directory = p.partition()
    (directory / "partition.metadata").unlink()
    return Planted(directory.name)


for what, content in {
    "emptied": "", "version": "version: 7\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ", "without_id": "version: 0\n", "noise": "\x00\x01",
    "short_id": "version: 0\ntopic_id: abc", "zero_id": "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "other_id": "version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ",
}.items():
    def topic_id(p: Planter, content: str = content) -> Planted:
        directory = p.partition()
        (directory / "partition.metadata").write_text(content)
        return Planted(directory.name)
    topic_id.__name__ = f"topic_id_{what}"
    kind("partition-metadata")(topic_id)


@kind("partition-metadata")
def topic_id_of_another_topic(p: Planter) -> Planted:
    directory = p.partition()
    other = p.partition(lambda path: path.name.rpartition("-")[0] != directory.name.rpartition("-")[0])
    shutil.copy(other / "partition.metadata", directory / "partition.metadata")
    return Planted(directory.name)


@kind("partition-unknown")
def directory_of_an_unknown_topic(p: Planter) -> Planted:
    directory = p.partition()
    shutil.copytree(directory, p.root / "nobody-0")
    (p.root / "nobody-0" / "partition.metadata").write_text("version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ")
    return Planted("nobody-0")


@kind("partition-unknown", "partition-metadata")
def directory_of_a_partition_too_many(p: Planter) -> Planted:
    directory = p.partition()
    name = directory.name.rpartition("-")[0] + "-9"
    shutil.copytree(directory, p.root / name)
    return Planted(name)


@kind("checkpoint-partition")
def directory_removed(p: Planter) -> Planted:
    directory = p.partition(lambda path: path.name in {"-".join(entry[:2]) for entry in lines_of(p, OFFSETS[0])})
    shutil.rmtree(directory)
    return Planted(directory.name)


def foreign(name: str, make) -> None:
    def plant(p: Planter) -> Planted:
        return make(p)
    plant.__name__ = name
    kind("directory-entry")(plant)


def foreign_directory(p: Planter) -> Planted:
    (p.root / "lost+found").mkdir()
    return Planted("lost+found")


def foreign_link(p: Planter) -> Planted:
    (p.root / "elsewhere-0").symlink_to("/")
    return Planted("elsewhere-0")


def foreign_log(p: Planter) -> Planted:
    directory = p.partition()
    (directory / "first.log").write_bytes(b"")
    return Planted(directory.name)


for make in (foreign_directory, foreign_link, foreign_log):
    kind("directory-entry")(make)


@kind("swap-left-over")
def swap_left(p: Planter) -> Planted:
    log = p.one_of(list(p.logs()))
    shutil.copy(log, log.with_name(log.name + ".swap"))
    return Planted(log.parent.name)


for what, content in {
    "removed": None, "emptied": "", "without_node": "version=1\ncluster.id=bG9nc3RvcmUtZ29sZGVuLQ\n", "version": "version=7\nnode.id=1\ncluster.id=x\n",
    "node_is_no_number": "version=1\nnode.id=one\ncluster.id=bG9nc3RvcmUtZ29sZGVuLQ\n",
    "directory_id": "version=1\nnode.id=1\ncluster.id=bG9nc3RvcmUtZ29sZGVuLQ\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
    "directory_id_of_another": "version=1\nnode.id=1\ncluster.id=bG9nc3RvcmUtZ29sZGVuLQ\ndirectory.id=dqEnd-x7SkKckvU0_kJgLQ\n",
    "node_of_another": "version=1\nnode.id=4242\ncluster.id=bG9nc3RvcmUtZ29sZGVuLQ\ndirectory.id=dqEnd-x7SkKckvU0_kJgLQ\n",
}.items():
    def meta(p: Planter, content: str | None = content) -> Planted:
        path = p.root / "meta.properties"
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
        return Planted("meta.properties")
    meta.__name__ = f"meta_properties_{what}"
    kind("meta-properties")(meta)


@kind("log-crc", "log-length", "log-tail", "internal-record")
def metadata_log_damaged(p: Planter) -> Planted:
    path = next(iter(p.root.glob("__cluster_metadata-0/*.log")), None) or p.one_of([])
    content = bytearray(path.read_bytes())
    at = p.dice.between(len(content) // 4, len(content) - 200)
    content[at] ^= 0xFF
    path.write_bytes(content)
    return Planted("__cluster_metadata-0")


@kind("log-crc", "log-length", "log-tail")
def metadata_snapshot_damaged(p: Planter) -> Planted:
    path = p.one_of([one for one in sorted(p.root.glob("__cluster_metadata-0/*.checkpoint")) if one.stat().st_size > 100])
    content = bytearray(path.read_bytes())
    at = p.dice.between(80, len(content) - 1)
    content[at] ^= 0xFF
    path.write_bytes(content)
    return Planted("__cluster_metadata-0")
