"""Each circumstance that silences a rule: what breaks the rule there is noted, and not found."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.audit import log_pass
from logstore.audit.checks import BY_NAME, RULES
from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import CLEANED, Silence
from tests.naive.batch import scan
from tests.naive.checksum import crc32c
from tests.support import audit_faults, audit_story_faults
from tests.support.audit_faults import ATTRIBUTES, CRC, FIRST, LAST, RECORDS, ROLLED, SECOND, change_batch
from tests.support.audit_story import (
    COMPLETE_COMMIT,
    EMPTY,
    METADATA,
    NODE,
    ONGOING,
    PREPARE_COMMIT,
    STATE,
    Story,
    topic_id_of,
)
from tests.support.audit_story_faults import (
    AT_A,
    NEXT,
    PAY,
    A,
    aborted_before_another,
    chain_ahead,
    clean,
    group_ahead,
    group_behind,
)
from tests.support.encoder import CONTROL
from tests.support.golden import Golden

Build = Callable[[Path, Path], int]  # writes a directory, perhaps from the golden one; returns when it was written, ms
Change = Callable[[Path, int], None]  # changes a directory of that time
CLEANER, CLEAN_SHUTDOWN = "cleaner-offset-checkpoint", ".kafka_cleanshutdown"
RECOVERY_POINT, LOG_START = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"


def planted(rule: str, number: int, *changes: Change) -> Build:
    """A fault of the library in the golden directory, which was closed in order."""

    def build(root: Path, golden: Path) -> int:
        shutil.copytree(golden, root)
        audit_faults.FAULTS[rule][number](root)
        for change in changes:
            change(root, 0)
        return 0

    return build


def told(make: Callable[[], Story], *changes: Change) -> Build:
    """A story, of a broker that runs."""

    def build(root: Path, golden: Path) -> int:
        story = make()
        story.write(root)
        for change in changes:
            change(root, story.now_ms)
        return story.now_ms

    return build


def fault(rule: str, *changes: Change, number: int = 0) -> Build:
    """A story of the library."""
    return told(audit_story_faults.FAULTS[rule][number], *changes)


def without(*names: str) -> Change:
    def change(root: Path, now_ms: int) -> None:
        for name in names:
            for path in root.glob(name):
                (shutil.rmtree if path.is_dir() else os.unlink)(path)

    return change


def write(name: str, content: bytes) -> Change:
    def change(root: Path, now_ms: int) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)

    return change


def append(name: str, form: str, *values: int) -> Change:
    def change(root: Path, now_ms: int) -> None:
        with (root / name).open("ab") as file:
            file.write(struct.pack(form, *values))

    return change


def damaged(log: str, number: int = 0) -> Change:
    """A batch does not fit its checksum."""
    return lambda root, now_ms: change_batch(root / f"{log}.log", number, CRC, b"\0\0\0\1", keeps_crc=True)


def of_a_moment_ago(root: Path, now_ms: int) -> None:
    """The newest file is older than the last events: it was copied before others."""
    for path in root.rglob("*"):
        os.utime(path, (now_ms / 1000 - 30,) * 2)


def cleaned(*partitions: str) -> Change:
    lines = "".join(f"{one.rpartition('-')[0]} {one.rpartition('-')[2]} {1 << 40}\n" for one in partitions)
    return write(CLEANER, f"0\n{len(partitions)}\n{lines}".encode())


def snapshot(*rows: tuple[int, ...]) -> bytes:
    """Rows of id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset."""
    entries = struct.pack(">i", len(rows)) + b"".join(struct.pack(">qhiqiqiq", *row) for row in rows)
    return struct.pack(">hI", 1, crc32c(entries)) + entries


def behind(make: Callable[[], Story]) -> Build:
    """Another replica leads, and may be ahead of this one."""

    def story() -> Story:
        story = make()
        story.make_topic("orders")
        change = {"partitionId": 0, "topicId": topic_id_of("orders"), "isr": [2], "leader": 2}
        story.metadata("PartitionChangeRecord", **change)
        return story

    return told(story, write("meta.properties", NODE.encode()))


def merged(root: Path, now_ms: int) -> None:
    """Segments of the story beside the one that they were merged into."""
    content, rows = (root / A / f"{FIRST}.log").read_bytes(), 6
    batches = [
        content[size * number : size * (number + 1)] for size in [len(content) // rows] for number in range(rows)
    ]
    segments = {0: batches[:1] + batches[2:5], 2: batches[2:4], 4: batches[4:5], 5: batches[5:]}
    for base_offset, found in segments.items():
        for suffix in ("log", "index", "timeindex"):
            name = f"{base_offset:020d}.{suffix}"
            (root / A / name).write_bytes(b"".join(found) if suffix == "log" else b"")


def odd_control_record(root: Path, now_ms: int) -> None:
    """A control record of the metadata log has a type that is not known."""
    path = root / METADATA / f"{FIRST}.log"
    content = path.read_bytes()
    rows = scan(content, 0, len(content)).rows
    number = next(number for number, row in enumerate(rows) if content[row.position + ATTRIBUTES + 1] & CONTROL)
    key = content.index(b"\0\0\0", rows[number].position + RECORDS)
    change_batch(path, number, key + 3 - rows[number].position, b"\x63")


def six_of_a_compacted_topic() -> Story:
    story = Story()
    story.make_topic("orders", policy="compact")
    for _ in range(6):
        story.plain(A)
    return story


def idempotent() -> Story:
    story = Story()
    story.data(A, (9, 0), 0, flags=0)
    story.data(A, (9, 0), 1, flags=0)
    return story


def decided(*markers: tuple[tuple[int, int], bool, bool], is_made_again: bool = False) -> Callable[[], Story]:
    """One commit is decided. The markers, each of a producer with data or without, commit or abort.

    Args:
        is_made_again: the topic was deleted since, and made again under its name.
    """

    def tell() -> Story:
        story = Story()
        story.plain(A)
        story.state("pay", PAY, EMPTY)
        story.state("pay", PAY, ONGOING, [AT_A])
        story.state("pay", PAY, PREPARE_COMMIT, [AT_A])
        story.state("pay", PAY, COMPLETE_COMMIT)
        if is_made_again:
            story.batches.pop(A)
            story.make_topic("orders")
        for producer, has_data, is_commit in markers:
            if has_data:
                story.data(A, producer, 0)
            story.marker(A, producer, commit=is_commit)
        story.plain(A)
        return story

    return tell


def of_a_newer_kafka() -> Story:
    story = audit_story_faults.completed_otherwise()
    story.metadata("FeatureLevelRecord", name="metadata.version", featureLevel=99)
    return story


def with_a_bad_record() -> Story:
    story = audit_story_faults.completed_otherwise()
    story.plain(STATE)
    return story


COMMIT, ABORT_OF_NEXT = (PAY, True, True), (NEXT, False, False)
KILLED = without(CLEAN_SHUTDOWN, RECOVERY_POINT)
SNAPSHOT = f"{METADATA}/{{:020d}}-{99:010d}.checkpoint".format
SILENCED: dict[tuple[str, Silence], Build] = {
    ("log-crc", Silence.GROWING): planted("log-crc", 0, damaged(f"{ROLLED}/{LAST}", -1)),
    ("log-tail", Silence.GROWING): planted("log-tail", 0),
    ("log-offset-order", Silence.COPIED): told(six_of_a_compacted_topic, merged),
    ("log-delete-horizon", Silence.CHECKPOINT_LOST): planted(
        "log-delete-horizon", 0, without(CLEANER, METADATA, "meta.properties")
    ),
    ("offsets-lost", Silence.CHECKPOINT_LOST): fault("offsets-lost", without(CLEANER)),
    ("offsets-lost", Silence.START_UNKNOWN): planted("log-tail", 0, without(CLEAN_SHUTDOWN, f"{ROLLED}/{FIRST}.*")),
    ("timestamp-future", Silence.METADATA_MISSING): fault(
        "timestamp-future", write(f"{METADATA}/{5:020d}.log", b""), write("meta.properties", NODE.encode())
    ),
    ("offset-index", Silence.OPEN): planted(
        "orphan-index", 0, append(f"{ROLLED}/{LAST}.index", ">ii", 90, 1 << 20), KILLED
    ),
    ("offset-index", Silence.DAMAGED): planted("offset-index", 0, damaged(f"{ROLLED}/{SECOND}", 1)),
    ("offset-index", Silence.GROWING): planted("offset-index", 1),
    ("offset-index-missing", Silence.OPEN): planted("offset-index-missing", 0, KILLED),
    ("time-index", Silence.OPEN): planted(
        "orphan-index", 0, append(f"{ROLLED}/{LAST}.timeindex", ">qi", 1 << 60, 1 << 20), KILLED
    ),
    ("time-index", Silence.DAMAGED): planted("time-index", 1, damaged(f"{ROLLED}/{SECOND}")),
    ("time-index", Silence.GROWING): planted("time-index", 1),
    ("time-index-missing", Silence.OPEN): planted("time-index-missing", 0, KILLED),
    ("time-index-end", Silence.DAMAGED): planted("time-index-end", 0, damaged(f"{ROLLED}/{SECOND}")),
    ("time-index-end", Silence.GROWING): planted("time-index-end", 0),
    ("transaction-index", Silence.COMPACTED): planted("transaction-index", 0, cleaned(ROLLED)),
    ("transaction-index", Silence.BEFORE_START): planted(
        "transaction-index", 0, without(f"{ROLLED}/{FIRST}.*", f"{ROLLED}/{SECOND}.snapshot")
    ),
    ("transaction-index", Silence.DAMAGED): planted("transaction-index", 0, damaged(f"{ROLLED}/{FIRST}")),
    ("transaction-index", Silence.GROWING): planted("transaction-index", 0),
    ("transaction-index", Silence.OPEN): planted("transaction-index", 0, KILLED),
    ("transaction-index", Silence.FOLLOWED): told(
        aborted_before_another, write(f"{A}/{FIRST}.txnindex", struct.pack(">hqqqq", 0, 7, 0, 1, 3))
    ),
    ("snapshot-format", Silence.OPEN): told(clean, write(f"{A}/{2:020d}.snapshot", b"")),
    ("snapshot-state", Silence.COMPACTED): told(
        idempotent, cleaned(A), write(f"{A}/{2:020d}.snapshot", snapshot((8, 0, 0, 0, 0, 0, -1, -1)))
    ),
    ("snapshot-state", Silence.BEFORE_START): planted(
        "snapshot-state", 0, without(f"{ROLLED}/{FIRST}.*", f"{ROLLED}/{SECOND}.log")
    ),
    ("snapshot-state", Silence.DAMAGED): planted("snapshot-state", 0, damaged(f"{ROLLED}/{FIRST}")),
    ("snapshot-state", Silence.START_UNKNOWN): told(idempotent, write(f"{A}/{2:020d}.snapshot", snapshot())),
    ("snapshot-state", Silence.EXPIRED): told(
        idempotent, without(CLEANER), write(f"{A}/{2:020d}.snapshot", snapshot()), write(CLEAN_SHUTDOWN, b"")
    ),
    ("snapshot-missing", Silence.DAMAGED): planted("snapshot-missing", 1, damaged(f"{ROLLED}/{FIRST}")),
    ("snapshot-missing", Silence.BEFORE_START): planted(
        "snapshot-missing", 1, write(LOG_START, b"0\n1\nrolled 0 76\n")
    ),
    ("sequence-gap", Silence.COMPACTED): fault("sequence-gap", cleaned(A)),
    ("sequence-gap", Silence.EXPIRED): fault("sequence-gap", write(f"{A}/{16:020d}.snapshot", snapshot())),
    ("sequence-gap", Silence.DAMAGED): fault("sequence-gap", damaged(f"{A}/{FIRST}", -2)),
    ("sequence-duplicate", Silence.COMPACTED): fault("sequence-duplicate", cleaned(A)),
    ("sequence-duplicate", Silence.EXPIRED): fault("sequence-duplicate", write(f"{A}/{16:020d}.snapshot", snapshot())),
    ("sequence-duplicate", Silence.DAMAGED): fault("sequence-duplicate", damaged(f"{A}/{FIRST}", -2)),
    ("leader-epochs", Silence.START_UNKNOWN): planted(
        "log-tail", 0, write(f"{ROLLED}/leader-epoch-checkpoint", b"0\n1\n0 20\n"), KILLED
    ),
    ("leader-epochs", Silence.DAMAGED): told(
        idempotent, write(f"{A}/leader-epoch-checkpoint", b"0\n2\n0 0\n1 9\n"), damaged(f"{A}/{FIRST}", -1)
    ),
    ("metadata-behind", Silence.UNSETTLED): planted("metadata-behind", 0, without(CLEAN_SHUTDOWN)),
    ("partition-metadata", Silence.UNSETTLED): planted(
        "partition-metadata", 2, without(CLEAN_SHUTDOWN), of_a_moment_ago
    ),
    ("checkpoint-offset", Silence.UNSETTLED): planted("checkpoint-offset", 0, without(CLEAN_SHUTDOWN)),
    ("checkpoint-offset", Silence.DAMAGED): planted("checkpoint-offset", 0, damaged(f"{ROLLED}/{LAST}", -1)),
    ("checkpoint-offset", Silence.NOT_LOADED): told(
        six_of_a_compacted_topic, write(CLEAN_SHUTDOWN, b""), write("replication-offset-checkpoint", b"0\n0\n")
    ),
    ("checkpoint-partition", Silence.UNSETTLED): planted("checkpoint-partition", 0, without(CLEAN_SHUTDOWN)),
    ("internal-record", Silence.NEWER_KAFKA): planted("newer-kafka", 0, odd_control_record),
    ("metadata-snapshot", Silence.DAMAGED): planted(
        "log-tail", 0, write(SNAPSHOT(5), b""), damaged(f"{METADATA}/{FIRST}", 1)
    ),
    ("metadata-snapshot", Silence.UNSETTLED): planted("log-tail", 0, write(SNAPSHOT(1 << 30), b""), KILLED),
    ("transaction-hanging", Silence.UNSETTLED): fault("transaction-hanging", of_a_moment_ago),
    ("transaction-hanging", Silence.DAMAGED): fault("transaction-hanging", damaged(f"{STATE}/{FIRST}", 1)),
    ("transaction-hanging", Silence.COORDINATOR_MISSING): fault("transaction-hanging", without(STATE)),
    ("transaction-timeout", Silence.CLOSED): fault("transaction-timeout", write(CLEAN_SHUTDOWN, b"")),
    ("transaction-no-data", Silence.DAMAGED): fault("transaction-no-data", damaged(f"{A}/{FIRST}")),
    ("transaction-no-data", Silence.CLOSED): fault("transaction-no-data", write(CLEAN_SHUTDOWN, b"")),
    ("marker-late", Silence.CLOSED): fault("marker-late", write(CLEAN_SHUTDOWN, b"")),
    ("marker-missing", Silence.UNSETTLED): told(decided(), of_a_moment_ago),
    ("marker-missing", Silence.MADE_AGAIN): told(decided(is_made_again=True)),
    ("marker-missing", Silence.NOT_ON_RECORD): fault("marker-doubled"),
    ("marker-doubled", Silence.UNSETTLED): told(decided(COMMIT, (PAY, False, True)), of_a_moment_ago),
    ("marker-doubled", Silence.MADE_AGAIN): told(decided(COMMIT, (PAY, False, True), is_made_again=True)),
    ("marker-contradicting", Silence.UNSETTLED): told(decided(COMMIT, (NEXT, True, True)), of_a_moment_ago),
    ("marker-contradicting", Silence.MADE_AGAIN): told(decided((PAY, True, False), is_made_again=True)),
    ("marker-unexplained", Silence.UNSETTLED): told(decided(COMMIT, ABORT_OF_NEXT), of_a_moment_ago),
    ("marker-unexplained", Silence.MADE_AGAIN): told(decided(COMMIT, ABORT_OF_NEXT, is_made_again=True)),
    ("marker-unexplained", Silence.NOT_ON_RECORD): fault("marker-doubled"),
    ("coordinator-state", Silence.DAMAGED): told(with_a_bad_record),
    ("coordinator-state", Silence.NEWER_KAFKA): told(of_a_newer_kafka),
    ("group-ahead", Silence.BEHIND): behind(group_ahead),
    ("group-ahead", Silence.UNSETTLED): told(group_ahead, of_a_moment_ago),
    ("group-behind", Silence.BEHIND): behind(group_behind),
    ("chain-ahead", Silence.BEHIND): behind(chain_ahead),
    ("chain-ahead", Silence.UNSETTLED): told(chain_ahead, of_a_moment_ago),
}


def test_every_silence_of_a_rule_has_a_directory() -> None:
    expected = {(rule.name, one) for rule in RULES for one in rule.unless if one not in CLEANED}
    assert expected == {pair for pair in SILENCED if pair[1] not in CLEANED}
    by_cleaner = {rule.name for rule in RULES if set(CLEANED) <= set(rule.unless)}
    assert by_cleaner == {rule for rule, one in SILENCED if one in CLEANED}


@pytest.mark.parametrize(("rule", "silence"), SILENCED, ids=lambda one: getattr(one, "name", one))
def test_a_silenced_rule_is_noted(
    rule: str, silence: Silence, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if silence is Silence.GROWING:
        monkeypatch.setattr(log_pass, "segment_size", lambda path: 1 << 60)
    root = tmp_path / "data"
    now_ms = SILENCED[rule, silence](root, golden("transactions"))
    audited = audit_directory(str(root), now_ms + 1000)
    assert silence in BY_NAME[rule].unless
    assert (rule, silence.value) in audited.unasked
