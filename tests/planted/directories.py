"""Faults around partitions: offset checkpoints, ids, directories that are missing, foreign or too many."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.planted.planter import ELSEWHERE, OF_GROUPS, OF_PRODUCERS, Planted, Planter, in_segment, kind, register
from tests.planted.segment import RECORDS, Segment

CHECKPOINTS = {
    "recovery-point-offset-checkpoint": "recovery points",
    "replication-offset-checkpoint": "high watermarks",
    "log-start-offset-checkpoint": "log starts",
    "cleaner-offset-checkpoint": "cleaner offsets",
}
OTHER_ID = "dqEnd-x7SkKckvU0_kJgLQ"
NO_OP_SIZE = 72  # bytes of a batch with a NoOpRecord
BAD_TEXTS = {
    "version": "5\n0\n",
    "count": "0\n9\n",
    "negative count": "0\n-1\n",
    "words": "0\n1\na b c\n",
    "short line": "0\n1\nrolled 0\n",
    "noise": "\x00\x01\x02",
}


def lines_of(planter: Planter, name: str) -> list[list[str]]:
    path = planter.root / name
    return [line.rsplit(" ", 2) for line in path.read_text().splitlines()[2:]] if path.exists() else []


def write_lines(planter: Planter, name: str, entries: list[list[str]]) -> None:
    body = "".join(" ".join(entry) + "\n" for entry in entries)
    (planter.root / name).write_text(f"0\n{len(entries)}\n{body}")


def offset_in(name: str, word: str, offset: int) -> None:
    def plant(planter: Planter) -> Planted:
        partition = planter.partition().name
        topic, _, number = partition.rpartition("-")
        others = [entry for entry in lines_of(planter, name) if entry[:2] != [topic, number]]
        write_lines(planter, name, [*others, [topic, number, str(offset)]])
        return Planted(partition)

    also = {"offsets-lost", "snapshot-state", "leader-epochs"} if name.startswith("log-start") else ()
    register(f"{word} of a partition at {offset}", plant, ["checkpoint-offset"], also)


def bad_text(name: str, word: str, what: str, text: str) -> None:
    def plant(planter: Planter) -> Planted:
        (planter.root / name).write_text(text)
        return Planted(name)

    register(f"{word} with a wrong {what}", plant, ["checkpoint-format"])


def of_no_directory(name: str, word: str) -> None:
    def plant(planter: Planter) -> Planted:
        write_lines(planter, name, [*lines_of(planter, name), ["nowhere", "3", "0"]])
        return Planted("nowhere-3")

    register(f"{word} of no directory", plant, ["checkpoint-partition"])


for name, word in CHECKPOINTS.items():
    offset_in(name, word, 1 << 40)
    offset_in(name, word, -5)
    of_no_directory(name, word)
    for what, text in BAD_TEXTS.items():
        bad_text(name, word, what, text)


def removed_checkpoint(name: str) -> None:
    def plant(planter: Planter) -> Planted:
        (planter.root / name).unlink()
        return Planted(name)

    register(f"{CHECKPOINTS[name]} removed", plant, ["checkpoint-format"])


removed_checkpoint("recovery-point-offset-checkpoint")
removed_checkpoint("log-start-offset-checkpoint")


@kind("checkpoint-offset")
def recovery_points_of_an_older_copy(planter: Planter) -> Planted:
    name, partition = "recovery-point-offset-checkpoint", planter.partition().name
    known = lines_of(planter, name)
    write_lines(
        planter,
        name,
        [[*one[:2], str(int(one[2]) // 2 if "-".join(one[:2]) == partition else one[2])] for one in known],
    )
    return Planted(partition)


@kind("checkpoint-offset", also={"leader-epochs", *OF_PRODUCERS, *ELSEWHERE})
def directory_of_another_partition_of_its_topic(planter: Planter) -> Planted:
    directory = planter.partition(lambda path: path.name.endswith("-1"))
    ends = {"-".join(one[:2]): one[2] for one in lines_of(planter, "recovery-point-offset-checkpoint")}
    other = planter.partition(
        lambda path: topic_of(path.name) == topic_of(directory.name) and ends[path.name] != ends[directory.name]
    )
    shutil.rmtree(directory)
    shutil.copytree(other, directory)
    return Planted(directory.name)


def topic_id(word: str, text: str | None) -> None:
    def plant(planter: Planter) -> Planted:
        path = planter.partition() / "partition.metadata"
        path.unlink()
        if text is not None:
            path.write_text(text)
        return Planted(path.parent.name)

    register(f"topic id {word}", plant, ["partition-metadata"])


topic_id("removed", None)
topic_id("emptied", "")
topic_id("of version 7", f"version: 7\ntopic_id: {OTHER_ID}")
topic_id("left out", "version: 0\n")
topic_id("of noise", "\x00\x01")
topic_id("too short", "version: 0\ntopic_id: abc")
topic_id("of zeros", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
topic_id("of nobody", f"version: 0\ntopic_id: {OTHER_ID}")


def topic_of(name: str) -> str:
    return name.rpartition("-")[0]


@kind("partition-metadata")
def topic_id_of_another_topic(planter: Planter) -> Planted:
    directory = planter.partition()
    other = planter.partition(lambda path: topic_of(path.name) != topic_of(directory.name))
    shutil.copy(other / "partition.metadata", directory / "partition.metadata")
    return Planted(directory.name)


@kind("partition-unknown")
def directory_of_an_unknown_topic(planter: Planter) -> Planted:
    target = planter.root / "nobody-0"
    shutil.copytree(planter.partition(), target)
    (target / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")
    return Planted(target.name)


@kind("partition-unknown")
def directory_of_a_partition_too_many(planter: Planter) -> Planted:
    directory = planter.partition()
    target = directory.with_name(f"{topic_of(directory.name)}-9")
    shutil.copytree(directory, target)
    return Planted(target.name)


@kind("checkpoint-partition", also=OF_GROUPS)
def directory_removed(planter: Planter) -> Planted:
    known = {"-".join(entry[:2]) for entry in lines_of(planter, "recovery-point-offset-checkpoint")}
    directory = planter.partition(lambda path: path.name in known)
    shutil.rmtree(directory)
    return Planted(directory.name)


@kind("directory-entry")
def foreign_directory(planter: Planter) -> Planted:
    (planter.root / "lost+found").mkdir()
    return Planted("lost+found")


@kind("directory-entry")
def link_that_leads_out(planter: Planter) -> Planted:
    (planter.root / "elsewhere-0").symlink_to("/")
    return Planted("elsewhere-0")


@kind("directory-entry")
def log_of_no_offset(planter: Planter) -> Planted:
    directory = planter.partition()
    (directory / "first.log").write_bytes(b"")
    return Planted(directory.name)


@kind("swap-left-over")
def output_of_the_cleaner_left(planter: Planter) -> Planted:
    log = planter.one_of(planter.logs())
    shutil.copy(log, log.with_name(log.name + ".swap"))
    return Planted(log.parent.name)


def identity(word: str, *lines: str) -> None:
    def plant(planter: Planter) -> Planted:
        path = planter.root / "meta.properties"
        path.unlink()
        if word != "removed":
            path.write_text("".join(f"{line}\n" for line in lines))
        return Planted(path.name)

    register(f"meta.properties {word}", plant, ["meta-properties"])


CLUSTER = "cluster.id=bG9nc3RvcmUtZ29sZGVuLQ"
identity("removed")
identity("emptied")
identity("without a node", "version=1", CLUSTER)
identity("of version 7", "version=7", CLUSTER, "node.id=1")
identity("of a node that is no number", "version=1", CLUSTER, "node.id=one")
identity("of another node", "version=1", CLUSTER, "node.id=4242")
identity("of a directory of nobody", "version=1", CLUSTER, "node.id=1", f"directory.id={OTHER_ID}")


def startup_file(name: str, word: str, change: Callable[[bytes], bytes]) -> None:
    def plant(planter: Planter) -> Planted:
        path = planter.one_of(path for path in [planter.root / name] if path.exists())
        path.write_bytes(change(path.read_bytes()))
        return Planted(path.name)

    register(f"{Path(name).name} {word}", plant, ["startup-file"])


for name in ("bootstrap.checkpoint", "__cluster_metadata-0/quorum-state"):
    startup_file(name, "emptied", lambda data: b"")
    startup_file(name, "of noise", lambda data: b"\x01noise\xff")
    startup_file(name, "cut", lambda data: data[: len(data) // 2])
startup_file("__cluster_metadata-0/quorum-state", "of no version", lambda data: b'{"leaderId":1}')


def metadata_damaged(pattern: str, what: str) -> None:
    def plant(planter: Planter) -> Planted:
        paths = sorted(planter.root.glob(f"__cluster_metadata-0/{pattern}"))
        segment = Segment(planter.one_of(path for path in paths if path.stat().st_size))
        batch = planter.dice.choose(segment.batches)
        batch[planter.dice.between(RECORDS, len(batch) - 1)] ^= 0xFF
        return in_segment(segment)

    register(f"{what} damaged", plant, ["log-crc"])


metadata_damaged("*.log", "metadata log")
metadata_damaged("*.checkpoint", "snapshot of the metadata log")


@kind("offsets-lost", also={"time-index"})  # an entry of the batch
def metadata_log_without_a_batch(planter: Planter) -> Planted:
    segment = Segment(planter.root / "__cluster_metadata-0" / f"{0:020d}.log")
    quiet = [row for row in range(1, len(segment.batches) - 1) if len(segment.batches[row]) == NO_OP_SIZE]
    row = planter.dice.choose(quiet)
    offset = segment.get(row, "base_offset")
    del segment.batches[row]
    segment.save()
    return Planted(segment.log.parent.name, offset)


@kind("startup-file")
def metadata_log_that_begins_behind_its_snapshots(planter: Planter) -> Planted:
    log = planter.root / "__cluster_metadata-0" / f"{0:020d}.log"
    segment = Segment(log)
    del segment.batches[:-1]
    segment.save()
    log.rename(log.with_name(f"{segment.get(0, 'base_offset'):020d}.log"))
    for index in log.parent.glob("*index"):
        index.unlink()
    return Planted(log.parent.name)


def snapshot_in_part(word: str, kept: slice) -> None:
    def plant(planter: Planter) -> Planted:
        snapshots = map(Segment, sorted(planter.root.glob("__cluster_metadata-0/*.checkpoint")))
        segment = planter.one_of(one for one in snapshots if any(map(one.is_data, range(len(one.batches)))))
        segment.log.write_bytes(b"".join(map(bytes, segment.batches[kept])))
        return Planted(segment.log.parent.name)

    register(f"snapshot of the metadata log {word}", plant, ["metadata-snapshot"])


snapshot_in_part("emptied", slice(0, 0))
snapshot_in_part("without its end", slice(0, -1))
snapshot_in_part("without its beginning", slice(1, None))
