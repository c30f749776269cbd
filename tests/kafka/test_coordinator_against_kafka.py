"""The coordinator's rules beside the real TransactionCoordinator: same requests, same answers, records and memory."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from logstore.topics.transaction_state import TransactionMetadata, decode_value
from tests.properties.coordinator_author import Author
from tests.support.oracle import Oracle
from tests.support.sampling import case_count

pytestmark = pytest.mark.kafka

WORKLOADS = case_count("LOGSTORE_ORACLE_CASES", sample=75, whole=300)
SEED = 890


def _comparable(result: dict[str, Any]) -> dict[str, Any]:
    """Appended values by their meaning, for Kafka groups partitions in the order of its hash maps."""
    events = [[*event[:2], str(_meaning(event[2]))] if event[0] == "append" else event for event in result["events"]]
    return {"events": sorted(events, key=json.dumps), "known": result["known"]}


def _meaning(value: str) -> tuple[TransactionMetadata, list[tuple[str, int]]]:
    metadata = decode_value(bytes.fromhex(value))
    assert metadata is not None
    return metadata._replace(partitions=()), sorted(metadata.partitions)


def test_requests_are_answered_as_the_real_coordinator_answers_them(oracle: Oracle, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    authors = [Author(rng) for _ in range(WORKLOADS)]
    for author in authors:
        author.write()
    questions = [{"version": one.version, "steps": one.workload} for one in authors]
    answers = oracle.answers("Coordinations", questions=questions, cwd=tmp_path)
    seen: set[str] = set()
    for author, answer in zip(authors, answers, strict=True):
        for number, theirs in enumerate(answer["steps"]):
            ours = author.results[number]
            theirs["known"] = theirs["known"] if ours["known"] else []  # what is pending is for the next step
            history = json.dumps(author.workload[: number + 1])
            assert _comparable(ours) == _comparable(theirs), f"version {author.version}: {history}"
            seen |= {event[1] for event in ours["events"] if event[0] in ("init", "add", "end")}
    assert seen >= {
        *("NONE", "CONCURRENT_TRANSACTIONS", "INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED", "INVALID_TXN_STATE"),
        *("INVALID_REQUEST", "INVALID_TRANSACTION_TIMEOUT", "NOT_COORDINATOR"),
    }
