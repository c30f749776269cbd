"""What Kafka's own dump tool printed about the golden directories, as the records a consumer would be given."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import NamedTuple

from tests.golden.archive import answers, read_rows

BATCH = re.compile(
    r"baseOffset: (?P<base_offset>-?\d+) .*producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+)"
    r" .*isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+)"
)
OLD_BATCH = re.compile(r"offset: \d+ position: ")
RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) (?P<time_type>\w+): (?P<time>-?\d+) keySize: (?P<key_size>-?\d+)"
    r" valueSize: (?P<value_size>-?\d+)(?P<more>.*)"
)
LOG_START_OFFSETS = {("records", "deleted"): 17}  # by DeleteRecords: the records below are still in the file
TIME_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
TIME_MAX_MS = (2**63 - 1) // 1000  # Spark's timestamps are 64-bit microseconds


class Record(NamedTuple):
    """One record, as far as every dump tells it; sizes in bytes, -1 null."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None  # None where Spark has no such time
    timestamp_type: int
    key_size: int
    value_size: int


class Dumped(NamedTuple):
    """One record of any kind with what decides whether it is to be read."""

    record: Record
    producer_id: int
    is_transactional: bool
    marker: str | None  # of a control record: ABORT, COMMIT, or another's text


def all_records(name: str) -> list[Record]:
    """What read_uncommitted gives, by partition and offset."""
    return [dumped.record for dumps in dumps_of(name).values() for dumped in dumps if dumped.marker is None]


def committed_records(name: str) -> list[Record]:
    """What read_committed gives: the markers alone decide, no index and no snapshot."""
    found = []
    for dumps in dumps_of(name).values():
        open_records: dict[int, list[Record]] = {}
        decided: list[Record] = []
        for dumped in dumps:
            if dumped.marker is not None:
                pending = open_records.pop(dumped.producer_id, [])
                decided += pending if dumped.marker == "COMMIT" else []
            elif dumped.is_transactional:
                open_records.setdefault(dumped.producer_id, []).append(dumped.record)
            else:
                decided.append(dumped.record)
        end = min((records[0].offset for records in open_records.values()), default=2**63)
        found += sorted(record for record in decided if record.offset < end)
    return found


@cache
def dumps_of(name: str) -> dict[tuple[str, int], list[Dumped]]:
    """All records of the ordinary topics of a golden directory, by partition."""
    found: dict[tuple[str, int], list[Dumped]] = defaultdict(list)
    for row in read_rows(answers(name)):
        argv = row["argv"]
        if len(argv) == 3 and argv[0] == "--files" and argv[2] == "--print-data-log" and argv[1].endswith(".log"):
            topic, _, partition = argv[1].split("/")[0].rpartition("-")
            if not topic.startswith("__"):
                start = LOG_START_OFFSETS.get((name, topic), 0)
                dumps = _dumped(topic, int(partition), row["stdout"])
                found[topic, int(partition)] += [dumped for dumped in dumps if dumped.record.offset >= start]
    return dict(sorted(found.items()))


def _dumped(topic: str, partition: int, text: str) -> list[Dumped]:
    found = []
    batch: re.Match[str] | None = None
    for line in text.splitlines():
        batch = BATCH.match(line) or (None if OLD_BATCH.match(line) else batch)
        fields = RECORD.match(line)
        if fields:
            marker = re.search(r"endTxnMarker: (\w+)", fields["more"])
            found.append(
                Dumped(
                    Record(
                        topic,
                        partition,
                        int(fields["offset"]),
                        int(fields["time"]) if int(fields["time"]) <= TIME_MAX_MS else None,
                        TIME_TYPES[fields["time_type"]],
                        int(fields["key_size"]),
                        int(fields["value_size"]),
                    ),
                    -1 if batch is None else int(batch["producer_id"]),
                    batch is not None and batch["transactional"] == "true",
                    None if batch is None or batch["control"] == "false" else marker[1] if marker else "other",
                )
            )
    return found
