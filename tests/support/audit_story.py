"""Data directories told as a story: who wrote what into which partition, what the coordinators decided."""

from __future__ import annotations

import os
import struct
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from logstore.layout.file_names import METADATA_TOPIC
from logstore.layout.partition_metadata import METADATA_TOPIC_ID
from logstore.topics.cluster_metadata import encode_value
from tests.support.encoder import CONTROL, SOME_TIME, TRANSACTIONAL, Batch, Rec

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
TIMEOUT_MS = 60_000
STATE, OFFSETS, METADATA = "__transaction_state-0", "__consumer_offsets-0", "__cluster_metadata-0"
NODE = "version=1\ncluster.id=c\nnode.id=1\n"
Place = tuple[str, int]


class Story:
    """Appends to partitions, named as their directories are; time goes on by a second an append.

    What appends returns the story, to go on with.
    """

    def __init__(self) -> None:
        self.batches: dict[str, list[Batch]] = defaultdict(list)
        self.now_ms = SOME_TIME
        self.cleaner: dict[str, int] = {}
        self._topic_ids: dict[str, str] = {}
        self._started_ms: dict[str, tuple[int, int]] = {}  # of transactional ids, with their last state
        self._made: set[str] = set()

    def end(self, partition: str) -> int:
        """Offset of the next record."""
        batches = self.batches[partition]
        return batches[-1].base_offset + batches[-1].last_offset_delta + 1 if batches else 0

    def append(self, partition: str, batch: Batch, *, offset: int | None = None) -> Self:
        self.now_ms += 1000
        offset = self.end(partition) if offset is None else offset
        batch = replace(batch, base_offset=offset, base_timestamp=self.now_ms, max_timestamp=self.now_ms)
        self.batches[partition].append(batch)
        return self

    def plain(self, partition: str, count: int = 1, *, offset: int | None = None) -> Self:
        """Records of no producer."""
        return self.append(partition, Batch(0, _records(count), last_offset_delta=count - 1), offset=offset)

    def data(
        self, partition: str, producer: tuple[int, int], sequence: int, count: int = 1, *, flags: int = TRANSACTIONAL
    ) -> Self:
        """Records of a producer (id, epoch), in a transaction unless `flags` are 0."""
        producer_id, epoch = producer
        batch = Batch(
            0,
            _records(count),
            last_offset_delta=count - 1,
            flags=flags,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        return self.append(partition, batch)

    def marker(
        self, partition: str, producer: tuple[int, int], *, commit: bool = True, coordinator_epoch: int = 0
    ) -> Self:
        """The end of a transaction."""
        producer_id, epoch = producer
        record = Rec(key=struct.pack(">hh", 0, int(commit)), value=struct.pack(">hi", 0, coordinator_epoch))
        flags = TRANSACTIONAL | CONTROL
        return self.append(partition, Batch(0, [record], flags=flags, producer_id=producer_id, producer_epoch=epoch))

    def state(self, transactional_id: str, producer: tuple[int, int], state: int, places: Sequence[Place] = ()) -> Self:
        """What a coordinator of transaction version 0 writes."""
        key = struct.pack(">h", 0) + _string(transactional_id)
        partitions = struct.pack(">i", -1)
        if state != EMPTY:
            partitions = struct.pack(">i", len(places))
            partitions += b"".join(_string(topic) + struct.pack(">ii", 1, number) for topic, number in places)
        if state == EMPTY or self._started_ms.get(transactional_id, (EMPTY, -1))[0] not in (ONGOING, *PREPARED):
            self._started_ms[transactional_id] = state, -1 if state == EMPTY else self.now_ms
        started = self._started_ms[transactional_id][1]
        self._started_ms[transactional_id] = state, started
        value = struct.pack(">hqhib", 0, *producer, TIMEOUT_MS, state) + partitions
        value += struct.pack(">qq", self.now_ms, started)
        return self.append(STATE, Batch(0, [Rec(key=key, value=value)]))

    def commit_offset(self, group: str, place: Place, offset: int, producer: tuple[int, int] | None = None) -> Self:
        """What a group's coordinator writes, in the producer's transaction if there is one."""
        key = struct.pack(">h", 1) + _string(group) + _string(place[0]) + struct.pack(">i", place[1])
        value = struct.pack(">hqi", 3, offset, -1) + _string("") + struct.pack(">q", self.now_ms)
        batch = Batch(0, [Rec(key=key, value=value)])
        if producer is not None:
            batch = replace(
                batch, flags=TRANSACTIONAL, producer_id=producer[0], producer_epoch=producer[1], base_sequence=0
            )
        return self.append(OFFSETS, batch)

    def metadata(self, kind: str, **fields: object) -> None:
        """A record of the controllers, behind the level that their log begins with."""
        if not self.batches[METADATA]:
            level = encode_value("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 30})
            self.append(METADATA, Batch(0, [Rec(value=level)]))
        self.append(METADATA, Batch(0, [Rec(value=encode_value(kind, fields))]))

    def make_topic(self, name: str, topic_id: str | None = None, *, policy: str | None = None) -> None:
        """A topic of one partition, whose replicas are on nodes 1 and 2."""
        self._topic_ids[name] = topic_id = topic_id or topic_id_of(name)
        self.metadata("TopicRecord", name=name, topicId=topic_id)
        self.make_partition(name, 0)
        if policy is not None:
            self.metadata("ConfigRecord", resourceType=2, resourceName=name, name="cleanup.policy", value=policy)

    def make_partition(self, topic: str, partition: int) -> None:
        self._made.add(f"{topic}-{partition}")
        topic_id = self._topic_ids[topic]
        fields = {"partitionId": partition, "topicId": topic_id, "replicas": [1, 2], "isr": [1, 2], "leader": 1}
        lists = {"removingReplicas": [], "addingReplicas": [], "directories": [topic_id, topic_id]}
        self.metadata("PartitionRecord", **fields, **lists, leaderEpoch=0, partitionEpoch=0)

    def _make_others(self) -> None:
        """Make topics and partitions that were written to and are not made yet."""
        for partition in sorted(self.batches.keys() - self._made - {METADATA}):
            topic, _, number = partition.rpartition("-")
            if topic not in self._topic_ids:
                self.make_topic(topic)
            if partition not in self._made:
                self.make_partition(topic, int(number))

    def write(self, root: Path) -> Path:
        """The directory as a running broker has it; the cluster's metadata, if there is any, has all topics."""
        root.mkdir(parents=True, exist_ok=True)
        if METADATA in self.batches:
            (root / "meta.properties").write_text(NODE)
            self._make_others()
        for partition, batches in self.batches.items():
            directory = root / partition
            directory.mkdir()
            (directory / f"{0:020d}.log").write_bytes(b"".join(batch.to_bytes() for batch in batches))
            (directory / f"{0:020d}.index").write_bytes(b"")
            (directory / f"{0:020d}.timeindex").write_bytes(b"")
            aborted = _aborted(batches)
            if aborted:
                (directory / f"{0:020d}.txnindex").write_bytes(b"".join(aborted))
            (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
            topic_id = topic_id_of(partition.rpartition("-")[0])
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
        (root / "log-start-offset-checkpoint").write_text("0\n0\n")
        (root / "recovery-point-offset-checkpoint").write_text("0\n0\n")
        lines = [f"{name.rpartition('-')[0]} {name.rpartition('-')[2]} {end}\n" for name, end in self.cleaner.items()]
        checkpoint = root / "cleaner-offset-checkpoint"
        checkpoint.write_text(f"0\n{len(lines)}\n{''.join(lines)}")
        os.utime(checkpoint, (time.time() + 120,) * 2)  # long behind the last cleaning, so that it tells of all
        return root


def topic_id_of(name: str) -> str:
    """An id that looks like the name; that of the metadata log is the same in each cluster."""
    if name == METADATA_TOPIC:
        return METADATA_TOPIC_ID
    return name.strip("_").ljust(22, "A")[:21] + "A"


def _aborted(batches: list[Batch]) -> list[bytes]:
    """The entries of the `.txnindex`."""
    first_offsets: dict[int, int] = {}
    entries = []
    for batch in batches:
        producer_id, offset = batch.producer_id, batch.base_offset
        if batch.flags == TRANSACTIONAL:
            first_offsets.setdefault(producer_id, offset)
        elif batch.flags & CONTROL and batch.records and producer_id in first_offsets:
            first_offset = first_offsets.pop(producer_id)
            if batch.records[0].key == struct.pack(">hh", 0, 0):
                stable = min(first_offsets.values(), default=offset + 1)
                entries.append(struct.pack(">hqqqq", 0, producer_id, first_offset, offset, stable))
    return entries


def _records(count: int) -> list[Rec]:
    return [Rec(key=b"k%d" % number, value=b"v", offset_delta=number) for number in range(count)]


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
