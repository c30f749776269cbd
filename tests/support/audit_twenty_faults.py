"""A data directory with twenty faults of different kinds, and where each is to be found."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.audit_faults import RECORDS, change_batch
from tests.support.audit_story import EMPTY, OFFSETS, ONGOING, PREPARE_COMMIT, STATE, TIMEOUT_MS, Story

SOON_MS = 1000


def twenty_faults(root: Path) -> tuple[dict[str, str], int]:
    """Write the directory.

    Returns:
        From rule to the partition it is found in, and the time that ages are to be counted to.
    """
    story = Story()
    planted = plant_in_logs(story) | plant_in_coordinators(story)
    for topic in ("rotten", "indexed", "epochs"):
        for _ in range(3):
            story.plain(f"{topic}-0", 2)
    story.write(root)
    planted |= plant_in_files(root)
    assert len(planted) == 20
    return planted, story.now_ms + SOON_MS


def idempotent(story: Story, topic: str, *batches: tuple[tuple[int, int], int]) -> None:
    """Batches of one record, each of a producer and a sequence, outside of transactions."""
    for producer, sequence in batches:
        story.data(f"{topic}-0", producer, sequence, flags=0)


def committed(story: Story, group: str, *offsets: int) -> None:
    """Offsets of `input-0` that a group commits, each in a transaction."""
    producer = (1000 + len(group), 0)
    for offset in offsets:
        story.commit_offset(group, ("input", 0), offset, producer)
        story.marker(OFFSETS, producer)


def plant_in_logs(story: Story) -> dict[str, str]:
    """Faults that only what records mean gives away: from rule to the partition it is found in."""
    idempotent(story, "gap", ((1, 0), 0), ((1, 0), 2))
    idempotent(story, "duplicate", ((2, 0), 0), ((2, 0), 1), ((2, 0), 1))
    idempotent(story, "back", ((3, 1), 0), ((3, 0), 0))
    story.data("fenced-0", (4, 0), 0)
    story.marker("fenced-0", (4, 1))
    idempotent(story, "fenced", ((4, 0), 1))
    story.data("hanging-0", (5, 0), 0)
    story.data("missing-0", (9, 0), 0)
    story.data("missing-0", (9, 1), 0)
    story.marker("missing-0", (9, 2))
    for topic, producer_id, is_commit in (("doubled", 10, True), ("contradicting", 11, False)):
        story.data(f"{topic}-0", (producer_id, 0), 0)
        story.marker(f"{topic}-0", (producer_id, 1))
        story.marker(f"{topic}-0", (producer_id, 1), commit=is_commit)
    for number, is_commit in ((0, True), (1, False)):
        story.data(f"torn-{number}", (12, 0), 0)
        story.marker(f"torn-{number}", (12, 1), commit=is_commit)
    story.plain("lost-0", 3)
    story.plain("lost-0", offset=7)
    return {
        "sequence-gap": "gap-0",
        "sequence-duplicate": "duplicate-0",
        "producer-epoch-back": "back-0",
        "producer-fenced": "fenced-0",
        "transaction-hanging": "hanging-0",
        "marker-missing": "missing-0",
        "marker-doubled": "doubled-0",
        "marker-contradicting": "contradicting-0",
        "transaction-atomicity": "torn-1",
        "offsets-lost": "lost-0",
    }


def plant_in_coordinators(story: Story) -> dict[str, str]:
    """Faults between partitions and the internal topics."""
    story.plain("input-0", 50)
    committed(story, "a", 5, 9, 7)
    committed(story, "bb", 5)
    story.commit_offset("bb", ("input", 0), 6)
    committed(story, "ccc", 70)
    story.plain("idle-0")
    for name, producer_id, topic in (("slow", 6, "slow"), ("idle", 7, "idle"), ("late", 8, "late")):
        story.state(name, (producer_id, 0), EMPTY)
        story.state(name, (producer_id, 0), ONGOING, [(topic, 0)])
    story.data("slow-0", (6, 0), 0)
    story.data("late-0", (8, 0), 0)
    story.state("late", (8, 0), PREPARE_COMMIT, [("late", 0)])
    story.plain(STATE)
    story.now_ms += TIMEOUT_MS
    return {
        "chain-back": OFFSETS,
        "chain-mixed": OFFSETS,
        "chain-ahead": OFFSETS,
        "transaction-timeout": "slow-0",
        "transaction-no-data": "idle-0",
        "marker-late": "late-0",
        "internal-record": STATE,
    }


def plant_in_files(root: Path) -> dict[str, str]:
    """Faults of bytes."""
    change_batch(root / "rotten-0" / f"{0:020d}.log", 1, RECORDS + 2, b"\xff", keeps_crc=True)
    (root / "indexed-0" / f"{0:020d}.index").write_bytes(struct.pack(">ii", 1, 5))
    (root / "epochs-0" / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    return {"log-crc": "rotten-0", "offset-index": "indexed-0", "leader-epochs": "epochs-0"}
