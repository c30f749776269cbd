"""Logs for the cleaner: transactions, tombstones, keys that come again, in segments of some batches each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from logstore.config.topic import LogConfig
from logstore.disk.seam import Seam
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from tests.naive import legacy
from tests.properties.fold_stories import marker
from tests.recovery.comparison import UnsyncedSeam
from tests.support.dice import Dice
from tests.support.encoder import LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.judges import judged_config
from tests.support.logs import open_log

NOW = 1_700_000_000_000
DAY_MS = 86_400_000
KEYS = [b"a", b"b", b"c", b"d", b"", b"a key of some more bytes than a word or two"]


@dataclass
class Producer:
    """Writes batches with sequences; the open transaction's batches, if it has one."""

    producer_id: int
    is_transactional: bool
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False


@dataclass
class CleaningCase:
    """A directory to be cleaned, and the settings it is cleaned by."""

    number: int
    segments: Sequence[Sequence[Batch | Entry]]
    config: dict[str, str]
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """One round: the time, and the size of the map's buffer."""

    now_ms: int
    dedupe_size: int


def cleaning_cases(seed: str, count: int, *, codecs: tuple[int, ...] = (0,)) -> Iterator[CleaningCase]:
    """That many logs, the same for the same seed."""
    for number in range(count):
        dice = Dice(f"{seed}/{number}")
        segments = _segments(dice, codecs)
        config = {
            "cleanup.policy": dice.choose(["compact", "compact", "compact,delete"]),
            "delete.retention.ms": str(dice.choose([0, 1000, 60_000])),
            "file.delete.delay.ms": "0",
            "index.interval.bytes": str(dice.choose([0, 100, 400])),
            "internal.segment.bytes": str(dice.choose([400, 2000, 1 << 30])),
            "max.compaction.lag.ms": str(dice.choose([2**63 - 1, 5 * DAY_MS, 40])),
            "max.message.bytes": "1048588",
            "min.cleanable.dirty.ratio": str(dice.choose([0, 0.5, 0.9])),
            "min.compaction.lag.ms": str(dice.choose([0, 0, 30])),
            "retention.ms": "-1",
            "segment.index.bytes": str(dice.choose([256, 4096, 65536])),
        }
        now_ms, steps = NOW, []
        for _ in range(dice.between(1, 3)):
            steps.append(Step(now_ms, dice.choose([100, 150, 4096, 4096])))
            now_ms += dice.choose([1, 1000, 60_000, 2 * DAY_MS])
        yield CleaningCase(number, segments, config, steps)


def example_case(delete_retention_ms: int = 1000) -> CleaningCase:
    """A committed and an aborted transaction, a tombstone, producers' last batches, keys that come again."""
    one, two, three = ({"producer_id": number, "producer_epoch": 0} for number in (1, 2, 3))
    end = {"coordinator_epoch": 0, "base_timestamp": NOW, "max_timestamp": NOW}
    e, zz = Rec(b"e", b"5"), Rec(b"zz", b"6")
    committed = [
        Batch(0, [Rec(b"a", b"1"), Rec(b"b", b"2", offset_delta=1)], 1, flags=TRANSACTIONAL, base_sequence=0, **one),
        marker(2, is_abort=False, **one, **end),
    ]
    aborted = [
        Batch(3, [Rec(b"c", b"3")], flags=TRANSACTIONAL, base_sequence=0, **two),
        marker(4, is_abort=True, **two, **end),
    ]
    plain = [
        Batch(5, [Rec(b"a", b"4"), Rec(b"b", None, offset_delta=1), Rec(b"d", b"4", offset_delta=2)], 2),
        Batch(8, [e], base_sequence=0, **three),
        Batch(9, [e], base_sequence=1, **three),
        Batch(10, [zz, replace(e, offset_delta=1)], 1),
    ]
    active = [Batch(12, [Rec(b"last", b"7")])]
    config = {
        "cleanup.policy": "compact",
        "delete.retention.ms": str(delete_retention_ms),
        "file.delete.delay.ms": "0",
        "internal.segment.bytes": "600",
    }
    return CleaningCase(0, [committed, aborted, plain, active], config)


@dataclass(frozen=True)
class Entry:
    """A message or a wrapper of magic 0 or 1, where a batch may be."""

    base_offset: int
    content: bytes

    def to_bytes(self) -> bytes:
        return self.content


def legacy_cases(seed: str, count: int) -> Iterator[CleaningCase]:
    """Logs as above, with segments of magic 0 and 1 before the others."""
    for case in cleaning_cases(seed, count):
        dice = Dice(f"{seed} legacy {case.number}")
        offset, segments = 0, []
        for _ in range(dice.between(1, 2)):
            segment = []
            for _ in range(dice.between(1, 5)):
                magic, message_count = dice.below(2), dice.choose([1, 1, 2, 4])
                messages = [_message(dice, magic, offset + number) for number in range(message_count)]
                segment.append(Entry(offset, _entry_of(dice, magic, messages)))
                offset += message_count
            segments.append(segment)
        moved = [[replace(batch, base_offset=batch.base_offset + offset) for batch in each] for each in case.segments]
        yield replace(case, segments=[*segments, *moved])


def _message(dice: Dice, magic: int, offset: int) -> legacy.Message:
    value = None if dice.chance(20) else dice.take(dice.below(9))
    return legacy.Message(offset, NOW - dice.below(50) if magic else -1, dice.choose(KEYS), value)


def _entry_of(dice: Dice, magic: int, messages: list[legacy.Message]) -> bytes:
    """Plain, or in a wrapper, if there are several; some of magic 1 with the time of the append."""
    if len(messages) > 1 or dice.chance(30):
        return legacy.wrapped(magic, messages, log_append_time=NOW if magic and dice.chance(20) else None)
    (only,) = messages
    attributes = 8 if magic and dice.chance(20) else 0
    return legacy.entry(
        only.offset, legacy.message(magic, only.key, only.value, timestamp=only.timestamp, attributes=attributes)
    )


def _segments(dice: Dice, codecs: tuple[int, ...]) -> list[list[Batch]]:
    producers = [Producer(number, dice.chance(70)) for number in range(dice.between(1, 3))]
    offset, segments = dice.choose([0, 0, 7]), []
    for _ in range(dice.between(2, 5)):
        segment: list[Batch] = []
        for _ in range(dice.between(1, 8)):
            batch = _batch(dice, producers, offset, codecs)
            segment.append(batch)
            offset += batch.last_offset_delta + 1 + dice.choose([0, 0, 0, 2])
        segments.append(segment)
    return segments


def _batch(dice: Dice, producers: list[Producer], offset: int, codecs: tuple[int, ...]) -> Batch:
    producer = dice.choose(producers)
    time = NOW - dice.below(50)
    if producer.is_open and dice.chance(40):
        producer.is_open = False
        return marker(
            offset,
            is_abort=dice.chance(50),
            coordinator_epoch=0,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_timestamp=time,
            max_timestamp=time,
        )
    if dice.chance(5) and not producer.is_open:
        producer.epoch, producer.sequence = producer.epoch + 1, 0
    is_numbered = producer.is_transactional or dice.chance(50)
    records, delta = [], 0
    for _ in range(dice.choose([1, 1, 2, 3, 6])):
        records.append(_record(dice, delta))
        delta += dice.choose([1, 1, 1, 1, 2])
    last_offset_delta = delta - 1 + dice.choose([0, 0, 0, 2])
    flags = (TRANSACTIONAL if producer.is_transactional else 0) | (LOG_APPEND_TIME if dice.chance(10) else 0)
    batch = Batch(
        offset,
        records,
        last_offset_delta,
        codec=dice.choose(codecs),
        flags=flags,
        base_timestamp=time,
        max_timestamp=time + max(record.timestamp_delta for record in records),
        producer_id=producer.producer_id if is_numbered else -1,
        producer_epoch=producer.epoch if is_numbered else -1,
        base_sequence=producer.sequence if is_numbered else -1,
        leader_epoch=dice.choose([0, 0, 0, 3]) if offset > 20 else 0,
    )
    if is_numbered:
        producer.sequence += last_offset_delta + 1
        producer.is_open = producer.is_open or producer.is_transactional
    return batch


def _record(dice: Dice, delta: int) -> Rec:
    headers = dice.choose([(), (), (), ((b"h", b"x"), ("ü".encode(), None)), ((b"\xff\xfe", b""),)])
    return Rec(
        key=None if dice.chance(4) else dice.choose(KEYS),
        value=None if dice.chance(20) else dice.take(dice.choose([0, 3, 30])),
        headers=headers,
        offset_delta=delta,
        timestamp_delta=dice.choose([0, 0, 5, 1000, -3]),
        attributes=dice.choose([0, 0, 0, 1]),
    )


def lay_out(case: CleaningCase, directory: Path) -> LogConfig:
    """Write the segments, recover them, and date them: a closed log that a broker takes as it is."""
    directory.mkdir(parents=True)
    for segment in case.segments:
        path = directory / f"{segment[0].base_offset:020d}.log"
        path.write_bytes(b"".join(batch.to_bytes() for batch in segment))
    config = judged_config(case.config)
    opened(directory, config, NOW, was_clean=False).close()
    date(directory)
    return config


def date(directory: Path) -> None:
    """Give each file a time of its own, by its base offset."""
    for path in directory.iterdir():
        base_offset = int(path.name.split(".")[0]) if path.name[0].isdigit() else 0
        modified_ms = NOW - 10_000 + base_offset
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


def opened(
    directory: Path,
    config: LogConfig,
    now_ms: int,
    *,
    was_clean: bool,
    seam: Seam | None = None,
) -> PartitionLog:
    """The log; no disk is waited for if no seam says otherwise."""
    settings = LoadSettings(was_clean=was_clean, recovery_point=0, log_start_offset=0, now_ms=now_ms, config=config)
    return open_log(
        directory,
        settings,
        seam=seam or UnsyncedSeam(),
        now_ms=lambda: now_ms,
        requires_verification=False,
    )
