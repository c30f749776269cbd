"""Audits directories that only the real Kafka wrote, and counts what is found: nothing should be.

    python -m tests.silence.prove

| variable | says |
|---|---|
| `LOGSTORE_SILENCE_DIRECTORIES` | so many of each Kafka, 1,000 if it is not set |
| `LOGSTORE_SILENCE_SEED` | what is drawn, again |
| `LOGSTORE_KAFKA_VERSIONS` | which Kafkas write, one after the other: all known ones if it is not set |
| `LOGSTORE_SILENCE_KEEP` | a directory for those that something is found in |
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path

from tests.silence import log_world
from tests.silence.broker_session import Session
from tests.silence.snapshots import Snapshot, Tally
from tests.support.oracle import RELEASES, Oracle

PLACE = Path("/dev/shm")
LOGS_BESIDE_A_SESSION = 60


def snapshots(oracle: Oracle, seed: str) -> Iterator[Snapshot]:
    """Without end, of brokers and of logs without one, by turns."""
    with tempfile.TemporaryDirectory(prefix="silence-", dir=PLACE if PLACE.is_dir() else None) as place:
        logs = log_world.snapshots(oracle, Path(place), seed)
        for number in count():
            yield from islice(logs, LOGS_BESIDE_A_SESSION)
            session = Path(place, f"session-{number}")
            session.mkdir()
            yield from Session(oracle, session, f"{seed}-{number}").snapshots()
            shutil.rmtree(session)


def main() -> int:
    seed = os.environ.get("LOGSTORE_SILENCE_SEED") or secrets.token_hex(4)
    limit = int(os.environ.get("LOGSTORE_SILENCE_DIRECTORIES") or 1000)
    print(f"LOGSTORE_SILENCE_SEED={seed}", flush=True)
    error_counts = [audited(release, seed, limit) for release in RELEASES]
    return int(any(error_counts))


def audited(release: str, seed: str, limit: int) -> int:
    """Print what is found in the directories of a Kafka; return how many errors."""
    keep = os.environ.get("LOGSTORE_SILENCE_KEEP")
    kept = Path(keep, release) if keep else None  # the same seed names the same directories for each Kafka
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    tally = Tally(kept)
    try:
        with closing(snapshots(Oracle(release), seed)) as found:
            for snapshot in islice(found, limit):
                tally.audit(snapshot)
    finally:
        print(f"Kafka {release}", tally.text(), sep="\n", flush=True)
    return tally.error_count


if __name__ == "__main__":
    sys.exit(main())
