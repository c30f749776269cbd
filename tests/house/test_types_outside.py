"""A type checker finds the package from a program outside of the checkout, and its public names have types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import logstore

with logstore.open("data") as store:
    store.create_topic("orders", partitions=3, config={"compression.type": "zstd"})
    with store.producer(transactional_id="billing-1") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("orders", key=b"42", value=b"paid", headers=[("trace", b"7")])
    for record in store.read("orders", isolation_level="read_committed"):
        reveal_type(record.offset)
    ends = store.consumer().end_offsets([logstore.TopicPartition("orders", 0)])
    store.consumer().offsets_for_times(ends)


def opened(read_only: bool) -> None:
    logstore.open("data", read_only=read_only)
    logstore.dump("data", records=read_only)


for finding in logstore.audit("data"):
    reveal_type(finding.rule)
for topic in logstore.topics("data"):
    reveal_type(topic.partitions)
"""


@pytest.mark.long
def test_a_program_outside_is_checked_strictly(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n`make setup` leaves the path that mypy follows"
    assert [name.replace("builtins.", "") for name in revealed] == ["int", "str", "tuple[int, ...]"]
