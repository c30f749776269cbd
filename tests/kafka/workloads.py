"""Random workloads of one partition, that Kafka's UnifiedLog and ours are given alike (`java/Workloads.java`).

A workload is a JSON object of one line: what the log is opened with, steps, and in "isClosedAfter" whether the log is
closed after them or let go as by a process that is killed. A step has an "op":

    append    batches (hex, offsets from 0), epoch, origin, version, begin: null, or whether the producer, whose
              verification begins before, is of transaction version 2
    records   as append, of one plain batch; ours makes it from its keys, values, timestamps and headers
    columns   the same, as columns
    marker    producerId, producerEpoch, isCommit, coordinatorEpoch, version, epoch
    follow    batches (hex), whose offsets count from the log's end, epoch
    verify    producerId, sequence, producerEpoch, supportsEpochBump: a verification begins, and nothing follows
    start, restart        to an offset: from (end, highWatermark, start, zero) and plus
    configure config: another configuration
    find      timestamp: the first record from then on, or a special offset
    roll, flush, retain, expire                    of the segment, log, old segments, producers
    clean     dedupe: what may be cleaned from where the last round ended, and a round with a map of so many bytes
    time      plus: ms that pass
    reopen    clean: closed and opened again, or let go as by a process that is killed

Each step is answered with what it returned or with its error, and the log's state then.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.dice import Dice
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, SOME_TIME, TRANSACTIONAL, Batch, Rec

Step = dict[str, Any]

EPOCH_MAX = 32767
CRC_POSITION = 17  # in a batch
COLUMNS_SIZE_MAX = 150  # bytes; a larger batch is split where batches may not be large
INDEX_BYTES_OF_MANY = 4096
SEQUENCE_MAX = 2**31 - 1
DEDUPE_SIZES = (100, 4096, 4096)  # bytes
FEW_KEYS = (b"a", b"b", b"c", b"")
TOPIC_ID = "dqEnd-x7SkKckvU0_kJgLQ"


@dataclass
class Actor:
    """What a workload believes of a producer; refusals make it wrong, and its next steps odd."""

    producer_id: int
    is_transactional: bool
    version: int
    epoch: int = 0
    sequence: int = 0
    coordinator_epoch: int = 0
    is_open: bool = False
    last: Step | None = field(default=None, repr=False)


def workload(seed: str) -> dict[str, Any]:
    """The workload of a seed, without its directory."""
    dice = Dice(seed)
    story = Story(dice)
    return {
        "config": story.config,
        "now": SOME_TIME,
        "requiresVerification": dice.chance(25),
        "topicId": TOPIC_ID if dice.chance(30) else None,
        "steps": list(story.steps(dice.choose((5, 15, 40, 80)))),
        "isClosedAfter": True,
    }


class Story:
    """Draws the steps of one workload."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.config = _config(dice)
        self.is_compacted = "cleanup.policy" in self.config
        self.is_messy = dice.chance(50)
        self.leader_epoch = dice.choose((0, 0, 5))
        ids = [0, 1, 7, 16, 2**32, 2**40 + 5, *(1000 * number for number in range(12))]
        count = dice.choose((1, 2, 4, 15))
        self.actors = [
            Actor(
                producer_id=dice.choose(ids),
                is_transactional=dice.chance(60),
                version=dice.choose((0, 1, 2)),
                epoch=dice.choose((0, 0, 0, EPOCH_MAX - 1, EPOCH_MAX)),
                sequence=dice.choose((0, 0, 0, SEQUENCE_MAX - 1, 7)),
            )
            for _ in range(count)
        ]

    def steps(self, count: int) -> Iterator[Step]:
        """`count` steps, or some more."""
        for _ in range(count):
            kind = self.dice.below(100)
            if kind < 16:
                yield self._plain()
            elif kind < 66:
                yield from self._produced(self.dice.choose(self.actors))
            elif kind < 74:
                yield self._moved()
            elif kind < 78:
                yield self._followed()
            elif kind < 84 and self.is_messy:
                yield self._refused()
            elif kind < 88:
                yield {"op": "time", "plus": self.dice.choose((0, 1, 10, 100, 5000, 10**6, 10**8))}
            elif kind < 94 and self.is_compacted and self.dice.chance(50):
                # ours would sync it, which moves its recovery point
                yield from ({"op": op} for op in self.dice.choose((("flush",), ("roll", "flush"))))
                yield {"op": "clean", "dedupe": self.dice.choose(DEDUPE_SIZES)}
            elif kind < 94:
                yield {"op": self.dice.choose(("roll", "flush", "flush", "retain", "expire"))}
            elif kind < 97:
                yield {"op": "reopen", "clean": self.dice.chance(60)}
            elif self.is_messy:
                yield self._cut()

    def _plain(self) -> Step:
        if self.dice.chance(10):
            self.leader_epoch += self.dice.choose((0, 1, 3))
        return self._append(self._batch())

    def _append(self, batch: Batch, **fields: Any) -> Step:
        step = {"op": "append", "batches": batch.to_bytes().hex(), "epoch": self.leader_epoch, "origin": "CLIENT"}
        step = {**step, "version": -1, "begin": None, **fields}
        is_simple = batch.codec == 0 and not batch.flags & ~TRANSACTIONAL and batch.records[0].timestamp_delta == 0
        if step["begin"] is None and is_simple:
            is_small = len(step["batches"]) < 2 * COLUMNS_SIZE_MAX
            step["op"] = self.dice.choose(("append", "records", "columns" if is_small else "records"))
        return step

    def _batch(self, **fields: Any) -> Batch:
        dice = self.dice
        count = dice.choose((1, 1, 1, 2, 3, 8))
        times = [dice.choose((0, 0, 1, 7, -5, 60_000)) for _ in range(count)]
        start = SOME_TIME + dice.choose((0, 0, -1000, 1000, 10**6))
        if dice.chance(4):
            start, times = -1, [0] * count
        records = [
            Rec(
                key=None if dice.chance(3) else self._key(),
                value=None if dice.chance(10) else b"v" * dice.choose((0, 5, 20, 100, 300)),
                headers=[(b"h", b"x")] if dice.chance(10) else [],
                offset_delta=number,
                timestamp_delta=time,
            )
            for number, time in enumerate(times)
        ]
        codec = dice.choose((0, 0, 0, 0, 1, 2, 3, 4))
        defaults = {
            "base_timestamp": start,
            "max_timestamp": start + max(times),
            "codec": 0 if self.is_compacted else codec,  # the cleaner compresses anew, by libraries that are not Java's
            "leader_epoch": -1,
        }
        return Batch(0, records, last_offset_delta=count - 1, **{**defaults, **fields})

    def _key(self) -> bytes:
        return self.dice.choose(FEW_KEYS) if self.is_compacted else self.dice.take(self.dice.below(9))

    def _produced(self, actor: Actor) -> Iterator[Step]:
        dice = self.dice
        if actor.is_transactional and actor.is_open and dice.chance(30):
            yield self._marker(actor)
            return
        if actor.last is not None and dice.chance(12):
            yield actor.last
            return
        epoch, sequence = actor.epoch, actor.sequence
        if self.is_messy and dice.chance(10):
            epoch = max(epoch + dice.choose((-1, 1)), 0)
            sequence = dice.choose((0, sequence, sequence + 3, max(sequence - 2, 0)))
        flags = TRANSACTIONAL if actor.is_transactional and not (self.is_messy and dice.chance(4)) else 0
        batch = self._batch(
            producer_id=actor.producer_id,
            producer_epoch=min(epoch, EPOCH_MAX),
            base_sequence=min(sequence, SEQUENCE_MAX),
            flags=flags,
        )
        begin = actor.version == 2 if flags and not actor.is_open and not dice.chance(10) else None
        actor.last = self._append(batch, begin=begin)
        actor.sequence = (sequence + len(batch.records)) % 2**31
        actor.epoch, actor.is_open = min(epoch, EPOCH_MAX), bool(flags)
        yield actor.last
        if self.is_messy and dice.chance(5):
            yield {
                "op": "verify",
                "producerId": actor.producer_id,
                "sequence": min(actor.sequence + dice.choose((-1, 0, 1)), SEQUENCE_MAX),
                "producerEpoch": max(actor.epoch - dice.choose((0, 0, 1)), 0),
                "supportsEpochBump": dice.chance(50),
            }

    def _marker(self, actor: Actor) -> Step:
        dice = self.dice
        if actor.version == 2:
            actor.epoch, actor.sequence = min(actor.epoch + 1, EPOCH_MAX), 0
        actor.coordinator_epoch += dice.choose((0, 0, 0, 1))
        actor.is_open = False
        is_odd = self.is_messy and dice.chance(15)
        return {
            "op": "marker",
            "producerId": actor.producer_id,
            "producerEpoch": max(actor.epoch - dice.choose((0, 1)), 0) if is_odd else actor.epoch,
            "isCommit": dice.chance(50),
            "coordinatorEpoch": actor.coordinator_epoch - (dice.below(2) if is_odd else 0),
            "version": actor.version,
            "epoch": self.leader_epoch,
        }

    def _moved(self) -> Step:
        dice = self.dice
        return {"op": "start", "from": dice.choose(("start", "highWatermark")), "plus": dice.choose((0, 1, 2, -1, -3))}

    def _cut(self) -> Step:
        dice = self.dice
        return {"op": "restart", "from": dice.choose(("end", "zero")), "plus": dice.choose((0, 3, 100))}

    def _followed(self) -> Step:
        """What a leader sends to its replicas, sometimes with gaps, sometimes again, sometimes of a later leader."""
        dice = self.dice
        data, offset = b"", dice.choose((0, 0, 0, 4, 2**31 + 5)) if not dice.chance(10) else -1
        # Kafka writes batches of which a later one finds an index full, and is damaged by it
        has_room = int(self.config["segment.index.bytes"]) >= INDEX_BYTES_OF_MANY
        for _ in range(dice.choose((1, 1, 2, 4)) if has_room else 1):
            epoch = self.leader_epoch + (1 if dice.chance(5) else 0)
            batch = self._batch(leader_epoch=epoch)
            data += struct.pack(">q", offset) + batch.to_bytes()[8:]
            offset += len(batch.records) + dice.choose((0, 0, 0, 3))
            if dice.chance(3):
                offset -= 5
        return {"op": "follow", "batches": data.hex(), "epoch": self.leader_epoch}

    def _refused(self) -> Step:
        """What a client must not send."""
        dice = self.dice
        kind = dice.below(8)
        batch = self._batch()
        data = bytearray(batch.to_bytes())
        if kind == 0:
            data[dice.choose((-1, CRC_POSITION, dice.between(CRC_POSITION, len(data) - 1)))] ^= 1 << dice.below(8)
        elif kind == 1:
            data += self._batch().to_bytes()
        elif kind == 2:
            del data[dice.choose((-1, -5, 20, 0)) :]
        elif kind == 3:
            data[7] = 3
        elif kind == 4:
            data = bytearray(self._batch(flags=CONTROL).to_bytes())
        elif kind == 5:
            data = bytearray(self._batch(flags=LOG_APPEND_TIME).to_bytes())
        elif kind == 6:
            wrong = batch.last_offset_delta + dice.choose((-1, 1))
            data = bytearray(replace(batch, last_offset_delta=wrong).to_bytes())
        else:
            data = bytearray(self._batch(base_timestamp=SOME_TIME + 10**9, max_timestamp=SOME_TIME + 10**9).to_bytes())
        return {**self._append(batch), "op": "append", "batches": data.hex()}


def _config(dice: Dice) -> dict[str, str]:
    config = {
        "internal.segment.bytes": str(dice.choose((300, 700, 2000, 2000, 10_000, 1_000_000))),
        "index.interval.bytes": str(dice.choose((0, 1, 100, 300, 4096))),
        "segment.index.bytes": str(dice.choose((12, 24, 40, 100, 4096, 65_536, 65_536, 65_536))),
        "segment.ms": str(dice.choose((1, 100, 10_000, 10**9, 10**9, 10**9))),
        "flush.messages": str(dice.choose((1, 3, 20, 2**62, 2**62))),
        "max.message.bytes": str(dice.choose((500, 10**6, 10**6, 10**6))),
        "retention.ms": "-1",
    }
    rare = {
        "message.timestamp.type": "LogAppendTime",
        "max.compaction.lag.ms": "50",
        "compression.type": "uncompressed",
        "message.timestamp.before.max.ms": "500",
        "message.timestamp.after.max.ms": "100",
        "producer.id.expiration.ms": str(dice.choose((1000, 10**7))),
        "preallocate": "true",
        "retention.bytes": str(dice.choose((0, 3000))),
        "retention.ms": str(dice.choose((0, 5000))),
    }
    config |= {name: value for name, value in rare.items() if dice.chance(15)}
    if dice.chance(25):
        config |= {
            "cleanup.policy": dice.choose(("compact", "compact", "compact,delete")),
            "delete.retention.ms": dice.choose(("0", "100", "86400000")),
            "segment.index.bytes": "65536",  # Kafka leaves its files where a cleaning finds an index full
        }
    return config
