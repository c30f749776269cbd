"""`max.decompressed.message.bytes` below what is in a log already: which times are found, and what is appended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.judge import Asked, Judge
from tests.support.encoder import GZIP, SOME_TIME, Batch, Rec, compressed, record_bytes
from tests.support.judges import judged

pytestmark = [pytest.mark.kafka, pytest.mark.by_release]

LIMIT = "max.decompressed.message.bytes"
SIZES = (10, 400, 30, 399)  # of values; one batch each, compressed but for the last
OVERHEAD = 8  # of a record with a key of one byte and a value of 64 to 8,191
MAX_TIMESTAMP = -3
CONFIG = {"internal.segment.bytes": "1000000", "index.interval.bytes": "0", "segment.index.bytes": "65536"}


def batch(number: int, size: int, **fields: Any) -> Batch:
    """Two records; the second has a value of so many bytes."""
    at = SOME_TIME + 10 * number
    records = [Rec(b"k", b"v"), Rec(b"l", bytes(size), offset_delta=1, timestamp_delta=5)]
    is_plain = size == SIZES[-1]
    return Batch(0, records, 1, 0 if is_plain else GZIP, base_timestamp=at, max_timestamp=at + 5, **fields)


def negative() -> Batch:
    """A batch whose record says that it has -1 bytes."""
    stream = compressed(GZIP, b"\x01" + record_bytes(Rec(b"k", b"v"))[1:])
    at = SOME_TIME + 100
    return Batch(0, [Rec()], 0, GZIP, base_timestamp=at, max_timestamp=at, stream=stream)


def work(limits: list[int]) -> dict[str, Any]:
    append = {"op": "append", "epoch": 1, "origin": "CLIENT", "version": -1, "begin": None}
    steps = [{**append, "batches": batch(number, size).to_bytes().hex()} for number, size in enumerate(SIZES)]
    steps.insert(2, {"op": "roll"})
    times = [SOME_TIME + milliseconds for milliseconds in (0, 5, 6, 11, 15, 16, 21, 25, 26, 31, 36)]
    steps += [{"op": "find", "timestamp": at} for at in (*times, MAX_TIMESTAMP)]
    for limit in limits:
        steps.append({"op": "configure", "config": {**CONFIG, LIMIT: str(limit)}})
        steps += [{"op": "find", "timestamp": at} for at in (*times, MAX_TIMESTAMP)]
        steps += [{"op": "follow", "epoch": 1, "batches": batch(9, 400).to_bytes().hex()}]  # a replica takes it
        steps += [{**append, "batches": batch(9, size).to_bytes().hex()} for size in (limit - OVERHEAD, limit)]
        steps += [{"op": "find", "timestamp": MAX_TIMESTAMP}]
        steps += [{"op": "reopen", "clean": False}, {"op": "find", "timestamp": SOME_TIME + 11}]
    steps += [{"op": "follow", "epoch": 1, "batches": negative().to_bytes().hex()}]
    steps += [{"op": "find", "timestamp": at} for at in (SOME_TIME + 96, MAX_TIMESTAMP)]
    config = {**CONFIG, "flush.messages": str(2**62)}
    shared = {"now": SOME_TIME, "requiresVerification": False, "topicId": None, "isClosedAfter": True}
    return {"config": config, "steps": steps, **shared}


def test_times_are_not_found_in_larger_records(asked: Callable[..., Asked], tmp_path: Path) -> None:
    limits = [300, 407, 408, 5000] if judged().bounds_records else []
    judge = Judge(asked("Workloads"), tmp_path)
    assert judge.disagreements(work(limits)) == []
    answers = json.dumps(judge.real(work(limits), tmp_path / "again" / "t-0"))
    text = "Invalid record size: 408 exceeds the configured maximum record size of 300."
    assert (text in answers) == judged().bounds_records
