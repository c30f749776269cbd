"""What Kafka itself leaves behind is no finding: a small directory for each class of false alarm."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import audit_directory, read_transactions
from logstore.audit.finding import Silence
from logstore.audit.groups import group_lags
from logstore.audit.open_transactions import Verdict
from logstore.audit.verify import verify_partition_directory
from tests.naive.checksum import crc32c
from tests.support.audit_story import COMPLETE_COMMIT, METADATA, NODE, ONGOING, PREPARE_COMMIT, Story
from tests.support.audit_story_faults import (
    AT_A,
    FAULTS,
    PAY,
    A,
    B,
    aborted_before_another,
    begin,
    chain_ahead,
    clean,
    end,
    hanging_unknown,
    lost_between,
)
from tests.support.encoder import TRANSACTIONAL, Batch
from tests.support.stores import FEW_PARTITIONS, open_store

CLEANER = "cleaner-offset-checkpoint"
STRAY = "orders-0.0123456789abcdef0123456789abcdef-stray"
OVERLAP = {"log-offset-order", "log-offset-range"}
ID, OTHER_ID = "ordersAAAAAAAAAAAAAAAA", "ABEiM0RVZneImaq7zN3u_w"


def findings(root: Path, story: Story) -> list[str]:
    """The rules that are broken."""
    return [finding.rule for finding in audit_directory(str(root), story.now_ms + 1000).findings]


def no_checkpoint(root: Path) -> None:
    (root / CLEANER).unlink()


def torn_checkpoint(root: Path) -> None:
    (root / CLEANER).write_bytes(b"0\n3\n")


def checkpoint_that_is_a_directory(root: Path) -> None:
    no_checkpoint(root)
    (root / CLEANER).mkdir()


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (no_checkpoint, []),
        (torn_checkpoint, ["checkpoint-format"]),
        (checkpoint_that_is_a_directory, ["directory-entry"]),
    ],
)
def test_without_the_cleaners_checkpoint_holes_are_not_judged(
    harm: Callable[[Path], None], found: list[str], tmp_path: Path
) -> None:
    story = clean()
    story.data(A, (9, 1), 1, flags=0)
    story.plain(A, offset=story.end(A) + 3)
    story.data(A, (9, 1), 7, flags=0)  # batches of the producer were cleaned away too
    root = story.write(tmp_path)
    harm(root)
    audited = audit_directory(str(root), story.now_ms)
    assert [finding.rule for finding in audited.findings] == found
    reason = "cleaner-offset-checkpoint is missing or unreadable"
    assert {rule for (rule, why), count in audited.unasked.items() if why == reason and count == 1} == {
        "offsets-lost",
        "sequence-gap",
    }


def test_a_crash_between_swap_and_checkpoint_leaves_holes_above_it(tmp_path: Path) -> None:
    story = lost_between()
    story.cleaner[A] = 2
    assert findings(story.write(tmp_path), story) == []


def test_a_crash_before_the_first_checkpoint_leaves_holes(tmp_path: Path) -> None:
    story = lost_between()
    root = story.write(tmp_path)
    assert findings(root, story) == ["offsets-lost"]
    os.utime(root / CLEANER, ns=(0, 0))
    assert findings(root, story) == []


@pytest.mark.parametrize(("policy", "found"), [("compact", []), ("delete", ["offsets-lost"]), (None, ["offsets-lost"])])
def test_a_follower_of_a_compacted_leader_has_holes(policy: str | None, found: list[str], tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders", policy=policy)
    story.plain(A)
    story.plain(A, offset=5)
    root = story.write(tmp_path)
    assert findings(root, story) == found
    no_checkpoint(root)  # the policy tells without it
    assert findings(root, story) == found


def test_a_topic_that_was_compacted_once_has_holes(tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders", policy="compact")
    story.metadata("ConfigRecord", resourceType=2, resourceName="orders", name="cleanup.policy", value="delete")
    story.plain(A)
    story.plain(A, offset=5)
    assert findings(story.write(tmp_path), story) == []


@pytest.mark.parametrize("broker", ["", "1"])
def test_a_topic_that_brokers_compact_has_holes(broker: str, tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders")
    story.metadata("ConfigRecord", resourceType=4, resourceName=broker, name="log.cleanup.policy", value="compact")
    story.metadata("ConfigRecord", resourceType=4, resourceName=broker, name="log.cleanup.policy", value=None)
    story.plain(A)
    story.plain(A, offset=5)
    assert findings(story.write(tmp_path), story) == []


@pytest.mark.parametrize(("policy", "found"), [(None, []), ("compact", ["offsets-lost"])])
def test_a_topic_has_holes_where_brokers_cleaned_one_without_a_policy(
    policy: str | None, found: list[str], tmp_path: Path
) -> None:
    """`log.cleanup.policy` stands in their `server.properties`, and this replica's cleaner has not come here yet."""
    story = Story()
    story.make_topic("orders")
    story.make_topic("payments", policy=policy)
    story.plain("payments-0")
    story.plain("payments-0", offset=5)
    story.cleaner["payments-0"] = 6
    story.plain(A)
    story.plain(A, offset=5)
    assert findings(story.write(tmp_path), story) == found


def test_nothing_is_promised_of_files_beside_a_stray_log(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    shutil.copytree(root / A, root / STRAY)
    (root / STRAY / f"{0:020d}.index").write_bytes(bytes(4096))
    (root / STRAY / f"{2:020d}.snapshot").write_bytes(snapshot())
    (root / STRAY / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert findings(root, story) == []
    (root / STRAY).rename(root / STRAY.replace("stray", "delete"))
    assert verify_partition_directory(str(root / STRAY.replace("stray", "delete"))).findings == ()


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_stray_directory_does_not_stand_for_the_live_one(is_empty: bool, tmp_path: Path) -> None:
    story = hanging_unknown()
    root = story.write(tmp_path)
    if is_empty:
        (root / STRAY).mkdir()
        shutil.copy(root / A / "partition.metadata", root / STRAY)
        for suffix in ("log", "index", "timeindex"):
            (root / STRAY / f"{0:020d}.{suffix}").write_bytes(b"")
    else:
        shutil.copytree(root / B, root / STRAY)
        (root / STRAY / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")  # of a topic before
    assert findings(root, story) == ["transaction-hanging"]
    transactions, _ = read_transactions(str(root), story.now_ms + 1000)
    assert [(one.name, one.verdict) for one in transactions.open] == [(A, Verdict.HANGING)]


@pytest.mark.parametrize("knows_cluster", [True, False])
def test_commits_to_a_topic_that_was_deleted_are_not_missed(knows_cluster: bool, tmp_path: Path) -> None:
    story = Story()
    begin(story)
    story.data(A, PAY, 0)
    story.marker(A, PAY)
    story.data(B, PAY, 0)
    story.marker(B, PAY)
    end(story)
    del story.batches[A]
    if knows_cluster:
        story.make_topic("orders")
    story.plain(A)
    story.state("pay", PAY, ONGOING, [AT_A])
    story.data(A, PAY, 1)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A])
    story.marker(A, PAY)
    story.state("pay", PAY, COMPLETE_COMMIT)
    assert findings(story.write(tmp_path), story) == []


def test_a_decision_that_was_written_again_counts_once(tmp_path: Path) -> None:
    story = clean()
    for _ in range(2):
        story.state("pay", (7, 1), ONGOING, [AT_A])
        for _ in range(2):
            story.state("pay", (7, 1), PREPARE_COMMIT, [AT_A])
        story.marker(A, (7, 1))
        story.state("pay", (7, 1), COMPLETE_COMMIT)
    assert findings(story.write(tmp_path), story) == []


def test_a_damaged_marker_is_told_once(tmp_path: Path) -> None:
    story = Story()
    begin(story)
    story.data(A, PAY, 0)
    story.data(B, PAY, 0)
    story.marker(A, PAY)
    position = sum(len(batch.to_bytes()) for batch in story.batches[A])
    story.marker(B, PAY)
    story.plain(A)
    end(story)
    root = story.write(tmp_path)
    with (root / A / f"{0:020d}.log").open("r+b") as log:
        log.seek(position - 1)
        log.write(b"\x01")
    assert findings(root, story) == ["log-crc"]


def test_the_coordinator_may_be_in_another_log_dir(tmp_path: Path) -> None:
    story = hanging_unknown()
    root = story.write(tmp_path)
    (root / "meta.properties").write_text(NODE)
    assert findings(root, story) == []
    transactions, _ = read_transactions(str(root), story.now_ms)
    assert [one.verdict for one in transactions.open] == [Verdict.UNKNOWN]


def test_epochs_begin_where_the_log_start_was_raised_to(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    for entries in ("1\n0 4\n", "0\n"):  # of one that was raised to the log's end, a crash leaves none
        (root / A / "leader-epoch-checkpoint").write_text(f"0\n{entries}")
        assert findings(root, story) == []
    (root / ".kafka_cleanshutdown").touch()
    for entries, is_told in {
        "1\n0 4\n": False,  # the start was lost by an earlier crash
        "0\n": True,  # a broker that leads has one
        "1\n1 4\n": True,
        "1\n0 99\n": True,  # behind the end
    }.items():
        (root / A / "leader-epoch-checkpoint").write_text(f"0\n{entries}")
        assert ("leader-epochs" in findings(root, story)) == is_told


def test_epochs_may_begin_in_a_segment_that_was_just_deleted(tmp_path: Path) -> None:
    """Another thread flushes them, which a clean shutdown does not wait for; the files go a minute later."""
    story = Story()
    story.plain(A, 5, offset=5)
    root = story.write(tmp_path)
    (root / ".kafka_cleanshutdown").touch()
    (root / A / "leader-epoch-checkpoint").write_text("0\n1\n0 2\n")
    for path in (root / A).glob("0*"):
        path.rename(path.with_stem(f"{5:020}"))
    assert "offsets-lost" in findings(root, story)
    for base_offset, is_told in {0: True, 2: False}.items():
        (root / A / f"{base_offset:020}.log.deleted").touch()
        assert ("offsets-lost" in findings(root, story)) == is_told


def test_epochs_below_the_first_may_be_lost_by_an_earlier_crash(tmp_path: Path) -> None:
    """The log start was raised to the log's end, and lost; the broker led again, in another epoch, and was closed."""
    story = Story()
    story.plain(A, 5)
    story.plain(A)
    story.batches[A][-1] = replace(story.batches[A][-1], leader_epoch=2)
    root = story.write(tmp_path)
    (root / ".kafka_cleanshutdown").touch()
    for entry, is_told in {"2 5": False, "1 5": True, "1 6": True}.items():
        (root / A / "leader-epoch-checkpoint").write_text(f"0\n1\n{entry}\n")
        assert ("leader-epochs" in findings(root, story)) == is_told


@pytest.mark.parametrize(
    ("is_tiered", "start", "found"),
    [
        ("true", 0, []),
        ("true", 1, ["group-behind", "offsets-lost"]),
        ("false", 0, ["group-behind", "offsets-lost"]),
        (None, 0, []),  # no metadata log tells, and the checkpoint has only tiered logs that start before a segment
        (None, None, ["group-behind", "offsets-lost"]),
    ],
)
def test_older_segments_may_be_in_remote_storage(
    is_tiered: str | None, start: int | None, found: list[str], tmp_path: Path
) -> None:
    story = Story()
    if is_tiered is not None:
        story.make_topic("orders")
        story.metadata(
            "ConfigRecord", resourceType=2, resourceName="orders", name="remote.storage.enable", value=is_tiered
        )
    story.plain(A, offset=2)
    story.commit_offset("copy", AT_A, 0)
    root = story.write(tmp_path)
    for file in (root / A).glob(f"{0:020d}.*"):
        file.rename(file.with_stem(f"{2:020d}"))
    (root / "log-start-offset-checkpoint").write_text("0\n0\n" if start is None else f"0\n1\norders 0 {start}\n")
    (root / ".kafka_cleanshutdown").touch()
    assert sorted({"group-behind", "offsets-lost"} & set(findings(root, story))) == found


@pytest.mark.parametrize(("leader", "isr", "found"), [(2, [2], []), (2, [1, 2], []), (1, [1, 2], ["chain-ahead"])])
def test_a_replica_that_is_behind_does_not_break_chains(
    leader: int, isr: list[int], found: list[str], tmp_path: Path
) -> None:
    story = chain_ahead()
    story.make_topic("orders")
    story.metadata("PartitionChangeRecord", partitionId=0, topicId=ID, isr=isr, leader=leader)
    root = story.write(tmp_path)
    (root / "meta.properties").write_text(NODE)
    assert findings(root, story) == found


def snapshot(*rows: tuple[int, ...]) -> bytes:
    """Rows of id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset."""
    entries = struct.pack(">i", len(rows)) + b"".join(struct.pack(">qhiqiqiq", *row) for row in rows)
    return struct.pack(">hI", 1, crc32c(entries)) + entries


def test_a_snapshot_may_know_a_marker_that_was_cleaned_away(tmp_path: Path) -> None:
    story = Story()
    story.plain(A)
    story.data(A, (9, 0), 0, flags=0)
    story.batches[A][-1] = story.batches[A][-1].__class__(**{**vars(story.batches[A][-1]), "base_offset": 5})
    written_ms = story.now_ms
    story.plain(A)
    story.cleaner[A] = 5
    root = story.write(tmp_path)
    (root / A / f"{7:020d}.snapshot").write_bytes(snapshot((9, 0, 0, 5, 0, written_ms, 3, -1)))
    assert findings(root, story) == []
    story.cleaner[A] = 0
    (root / A / f"{7:020d}.snapshot").write_bytes(snapshot((9, 0, 1, 5, 0, written_ms, 3, -1)))
    assert findings(root, story) == ["snapshot-state"]


def test_a_state_may_be_made_anew_from_a_log_start_that_no_checkpoint_has(tmp_path: Path) -> None:
    """A follower whose log start was raised to 2 was truncated to 2, and killed when it had fetched some more."""
    story = Story()
    story.data(A, (9, 0), 0)
    story.data(A, (8, 0), 0)
    story.data(A, (9, 0), 1)
    written_ms = story.now_ms
    root = story.write(tmp_path)
    path = root / A / f"{3:020d}.snapshot"
    path.write_bytes(snapshot((9, 0, 1, 2, 0, written_ms, -1, 2)))
    assert "snapshot-state" not in findings(root, story)
    (root / ".kafka_cleanshutdown").touch()
    assert "snapshot-state" in findings(root, story)
    (root / ".kafka_cleanshutdown").unlink()
    path.write_bytes(snapshot((9, 0, 1, 2, 0, written_ms, -1, 2), (8, 0, 0, 1, 0, written_ms - 1000, -1, -1)))
    assert "snapshot-state" in findings(root, story)  # it knows of what was before


@pytest.mark.parametrize(("survivor_flags", "is_told"), [(TRANSACTIONAL, False), (0, True)])
def test_a_producer_may_expire_beside_an_older_one_whose_transaction_was_open(
    survivor_flags: int, is_told: bool, tmp_path: Path
) -> None:
    """Producer 9, of a clock ahead, expired while 8 was open; a state made anew since has only 8, from a snapshot."""
    story = Story()
    story.data(A, (8, 0), 0, flags=survivor_flags)
    written_ms = story.now_ms
    story.data(A, (9, 0), 0, flags=0)
    story.batches[A][-1] = replace(story.batches[A][-1], max_timestamp=written_ms + 5000)
    if survivor_flags:
        story.marker(A, (8, 0))
    row = (8, 0, 0, 0, 0, *((story.now_ms, 0) if survivor_flags else (written_ms, -1)), -1)
    root = story.write(tmp_path)
    (root / A / f"{story.end(A):020d}.snapshot").write_bytes(snapshot(row))
    assert ("snapshot-state" in findings(root, story)) == is_told


@pytest.mark.parametrize(("recovery_point", "found"), [("orders 0 0", []), ("orders 0 3", ["index-zeros"])])
def test_a_future_log_that_begins_anew_may_still_have_the_segment_before(
    recovery_point: str, found: list[str], tmp_path: Path
) -> None:
    """The new segment is made before the old one goes, whose indexes are as a broker has them open."""
    story = Story()
    story.plain(A)
    root = story.write(tmp_path)
    directory = (root / A).rename(root / f"{A}.0123456789abcdef0123456789abcdef-future")
    (directory / f"{0:020d}.index").write_bytes(bytes(4096))
    (directory / f"{1:020d}.log").touch()
    (root / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{recovery_point}\n")
    rules = findings(root, story)
    assert [rule for rule in rules if rule.startswith("index")] == found


@pytest.mark.parametrize(
    ("policy", "is_closed", "found"),
    [("compact", False, set()), ("compact", True, OVERLAP), ("delete", False, OVERLAP)],
)
def test_a_copy_may_hold_segments_beside_the_one_that_they_were_merged_into(
    policy: str, is_closed: bool, found: set[str], tmp_path: Path
) -> None:
    story = Story()
    story.make_topic("orders", policy=policy)
    for _ in range(6):
        story.plain(A)
    root = story.write(tmp_path)
    if is_closed:
        (root / ".kafka_cleanshutdown").touch()
    encoded = [batch.to_bytes() for batch in story.batches[A]]
    for base_offset, content in {
        0: encoded[:1] + encoded[2:5],
        2: encoded[2:4],
        4: encoded[4:5],
        5: encoded[5:],
    }.items():
        for suffix in ("log", "index", "timeindex"):
            (root / A / f"{base_offset:020d}.{suffix}").write_bytes(b"".join(content) if suffix == "log" else b"")
    assert OVERLAP & set(findings(root, story)) == found
    last = root / A / f"{4:020d}.log"
    last.unlink()  # it was deleted before the copy came to it
    assert OVERLAP & set(findings(root, story)) == found
    last.write_bytes(b"")
    assert OVERLAP & set(findings(root, story)) == OVERLAP  # what was merged is in no segment


def test_a_broker_may_be_killed_before_it_writes_to_a_snapshot(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    (root / A / f"{2:020d}.snapshot").write_bytes(b"")
    assert findings(root, story) == []
    (root / A / f"{2:020d}.snapshot").write_bytes(b"\0")
    assert findings(root, story) == ["snapshot-format"]


def entry(producer_id: int, first_offset: int, last_offset: int, stable_offset: int) -> bytes:
    """Of a `.txnindex`."""
    return struct.pack(">hqqqq", 0, producer_id, first_offset, last_offset, stable_offset)


def test_an_aborted_transaction_stays_in_its_index_when_its_data_is_cleaned_away(tmp_path: Path) -> None:
    story = Story()
    story.plain(A)
    story.plain(A, offset=6)
    story.marker(A, PAY, commit=False)
    story.cleaner[A] = 6
    root = story.write(tmp_path)
    (root / A / f"{0:020d}.txnindex").write_bytes(entry(7, 2, 7, 8))
    assert findings(root, story) == []
    (root / A / f"{0:020d}.txnindex").write_bytes(entry(7, 6, 7, 8))
    assert findings(root, story) == ["transaction-index"]


def test_a_follower_writes_another_last_stable_offset(tmp_path: Path) -> None:
    story = aborted_before_another()
    root = story.write(tmp_path)
    (root / A / f"{0:020d}.txnindex").write_bytes(entry(7, 0, 1, 3))  # all that in one append
    assert findings(root, story) == []
    (root / A / f"{0:020d}.txnindex").write_bytes(entry(7, 0, 1, 0))
    assert findings(root, story) == ["transaction-index"]


def test_topics_are_known_by_a_snapshot_of_the_metadata_log(tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders", policy="compact")
    content = b"".join(batch.to_bytes() for batch in story.batches.pop(METADATA))
    story.make_topic("later", OTHER_ID)
    root = story.write(tmp_path)
    log = root / METADATA / f"{0:020d}.log"
    behind = [Batch(**{**vars(one), "base_offset": 20 + one.base_offset}) for one in story.batches[METADATA]]
    log.rename(log.with_name(f"{20:020d}.log")).write_bytes(b"".join(one.to_bytes() for one in behind))
    (root / METADATA / f"{20:020d}-{1:010d}.checkpoint").write_bytes(content)
    cluster = Cluster(str(root))
    assert not cluster.has_history
    assert list(cluster.image.topics) == ["orders", "later"]
    assert cluster.image.topic_config("orders") == {"cleanup.policy": "compact"}
    assert cluster.created_ms("orders") == 0
    assert cluster.created_ms("later") > 0


def test_the_metadata_log_is_closed_behind_the_others(tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders")
    root = story.write(tmp_path)
    (root / ".kafka_cleanshutdown").touch()
    (root / METADATA / f"{0:020d}.index").write_bytes(bytes(4096))
    (root / METADATA / f"{0:020d}.timeindex").write_bytes(bytes(4092))
    assert findings(root, story) == []


def test_an_aborted_metadata_transaction_makes_no_topic(tmp_path: Path) -> None:
    story = Story()
    for name, topic_id, kind in (("orders", ID, "EndTransactionRecord"), ("gone", OTHER_ID, "AbortTransactionRecord")):
        story.metadata("BeginTransactionRecord")
        story.make_topic(name, topic_id)
        story.metadata(kind)
    cluster = Cluster(str(story.write(tmp_path)))
    assert cluster.partition_count("orders") == 1
    assert cluster.partition_count("gone") is None
    assert cluster.unreadable == []


def test_faults_are_found_beside_a_metadata_log(tmp_path: Path) -> None:
    for number, story in enumerate([FAULTS["offsets-lost"][0](), FAULTS["marker-missing"][0]()]):
        before = dict(story.batches)
        story.batches.clear()
        story.now_ms -= 10_000_000
        story.make_topic("orders")
        story.now_ms += 10_000_000
        story.batches.update(before)
        found = findings(story.write(tmp_path / str(number)), story)
        assert found == [["offsets-lost"], ["marker-missing"]][number]


def test_a_producer_that_expired_may_go_on_anywhere(tmp_path: Path) -> None:
    story = Story()
    story.data(A, (9, 0), 0, flags=0)
    story.plain(A, 2)
    story.data(A, (9, 0), 5, flags=0)
    root = story.write(tmp_path)
    assert findings(root, story) == ["sequence-gap"]
    (root / A / f"{2:020d}.snapshot").write_bytes(snapshot())
    assert findings(root, story) == []


def test_the_cleaner_may_take_the_data_before_a_marker_of_a_new_epoch(tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders", policy="compact")
    story.data(A, (9, 0), 0)
    story.marker(A, (9, 0))
    story.plain(A)
    data_offset = story.end(A)
    story.data(A, (9, 1), 0)
    story.marker(A, (9, 1))
    story.data(A, (9, 1), 1)
    story.batches[A] = [batch for batch in story.batches[A] if batch.base_offset != data_offset]
    assert "sequence-gap" not in findings(story.write(tmp_path / "cleaned"), story)
    story.data(A, (9, 1), 3)
    assert "sequence-gap" in findings(story.write(tmp_path / "lost"), story)


def test_an_index_in_use_may_have_only_entries_that_were_cut_off(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    (root / A / f"{0:020d}.index").write_bytes(struct.pack(">iiii", 1, 70, 2, 140))
    (root / A / f"{0:020d}.timeindex").write_bytes(struct.pack(">qi", 1, 1))
    assert findings(root, story) == []
    (root / A / f"{0:020d}.index").write_bytes(struct.pack(">ii", 1, 5))  # no batch can begin there
    assert findings(root, story) == ["offset-index"]


def test_an_index_in_use_may_end_in_entries_that_were_cut_off(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    second = len(story.batches[A][0].to_bytes())
    right = struct.pack(">ii", story.batches[A][1].base_offset + 1, second)
    stale = struct.pack(">ii", 4000, 1 << 20) + struct.pack(">ii", 3, 5)
    times = struct.pack(">qi", story.batches[A][1].max_timestamp, story.batches[A][1].base_offset + 1)
    index, time_index = root / A / f"{0:020d}.index", root / A / f"{0:020d}.timeindex"
    index.write_bytes(right + stale)
    time_index.write_bytes(times + struct.pack(">qi", 1, 4000))
    assert findings(root, story) == []
    index.write_bytes(stale + right)
    assert set(findings(root, story)) == {"offset-index"}
    index.write_bytes(right)
    time_index.write_bytes(struct.pack(">qi", 1, 2) + times)
    assert findings(root, story) == ["time-index"]


def test_files_of_the_active_segment_may_be_copied_before_they_are_finished(tmp_path: Path) -> None:
    story = Story()
    for sequence in range(2):
        story.data(A, PAY, sequence)
        story.marker(A, PAY, commit=False)
    root = story.write(tmp_path)
    aborted = root / A / f"{0:020d}.txnindex"
    entries = aborted.read_bytes()
    (root / A / f"{0:020d}.timeindex").write_bytes(bytes(4096))
    for content in (entries[:34], b""):  # entries of 34 bytes are written after the batches
        aborted.write_bytes(content)
        assert findings(root, story) == []
    aborted.write_bytes(entries[34:])
    assert findings(root, story) == ["transaction-index"]
    aborted.write_bytes(b"")
    (root / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    assert findings(root, story) == []
    (root / A / f"{4:020d}.log").write_bytes(b"")
    assert {"transaction-index", "time-index"} <= set(findings(root, story))


def test_zeros_of_a_preallocated_file_are_no_torn_tail(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    log = root / A / f"{0:020d}.log"
    batches = log.read_bytes()
    log.write_bytes(batches + bytes(1000))
    result = audit_directory(str(root), story.now_ms)
    assert (result.findings, [note for note in result.notes if note.reason == Silence.DAMAGED.value]) == ((), [])
    log.write_bytes(batches + bytes(1000) + b"x")
    assert findings(root, story) == ["log-tail"]
    log.write_bytes(batches + bytes(1000))
    (root / ".kafka_cleanshutdown").touch()
    assert "log-tail" in findings(root, story)


def test_checkpoints_tell_of_partitions_that_were_deleted_a_moment_ago(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (root / name).write_text("0\n1\nlost 0 0\n")
    assert findings(root, story) == ["checkpoint-partition"]
    (root / STRAY.replace("orders", "lost").replace("stray", "delete")).mkdir()
    assert findings(root, story) == []


def test_ids_are_compared_with_the_metadata_log(tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders", OTHER_ID)
    story.plain(A)
    root = story.write(tmp_path)
    (finding,) = audit_directory(str(root), story.now_ms).findings
    assert (finding.rule, finding.found) == ("partition-metadata", ID)
    assert finding.expected == f"{OTHER_ID}, as __cluster_metadata"
    for file in (*root.iterdir(), *root.glob("*/*")):  # a broker killed before it set the directories of a topic aside
        os.utime(file, ns=(0, story.now_ms * 1_000_000))
    assert findings(root, story) == []


def test_an_operator_may_reset_a_group_that_commits_in_transactions(tmp_path: Path) -> None:
    for number, (offset, found) in enumerate({5: ["chain-mixed"], 0: []}.items()):
        story = clean()
        story.commit_offset("copy", AT_A, offset)
        assert findings(story.write(tmp_path / str(number)), story) == found


def test_an_empty_log_may_have_no_topic_id_yet(tmp_path: Path) -> None:
    story = clean()
    root = story.write(tmp_path)
    empty = root / "made-0"
    empty.mkdir()
    (empty / f"{0:020d}.log").write_bytes(b"")
    assert findings(root, story) == []
    (empty / f"{0:020d}.log").write_bytes((root / A / f"{0:020d}.log").read_bytes())
    assert "partition-metadata" in findings(root, story)


@pytest.mark.parametrize("rule", ["transaction-hanging", "marker-missing", "transaction-timeout", "marker-late"])
def test_files_may_be_copied_one_after_the_other(rule: str, tmp_path: Path) -> None:
    """What happened in the last minute before the newest file is not judged, unless the directory was closed."""
    for number, fault in enumerate(FAULTS[rule]):
        story = fault()
        root = story.write(tmp_path / str(number))
        assert rule in findings(root, story)
        for newest_ms, found in ((story.now_ms, False), (story.now_ms + 10**9, True)):
            for file in (*root.iterdir(), *root.glob("*/*")):
                os.utime(file, ns=(0, newest_ms * 1_000_000))
            assert (rule in findings(root, story)) == found or "between" in fault.__name__
        verdict = {one.verdict for one in read_transactions(str(root), story.now_ms)[0].open}
        assert Verdict.RECENT not in verdict


def test_a_lag_beyond_the_end_is_not_clamped(tmp_path: Path) -> None:
    groups = audit_directory(str(FAULTS["group-ahead"][0]().write(tmp_path)), 0).groups
    lags = {lag.group_id: lag.lag for lag in group_lags(groups)}
    assert lags["plain"] == groups.view(*AT_A).end - 99 < 0


@pytest.mark.parametrize(
    ("broker_ids", "is_closed", "is_told"), [([1], True, True), ([2, 1], True, False), ([1], False, False)]
)
def test_the_cleaner_of_a_broker_that_was_always_alone_leaves_out_the_last_segment(
    broker_ids: list[int], is_closed: bool, is_told: bool, tmp_path: Path
) -> None:
    story = Story()
    for broker_id in broker_ids:
        fields = {"brokerId": broker_id, "brokerEpoch": 1, "endPoints": [], "features": [], "logDirs": [ID]}
        story.metadata("RegisterBrokerRecord", **fields)
    if 2 in broker_ids:
        story.metadata("UnregisterBrokerRecord", brokerId=2, brokerEpoch=1)
    story.make_topic("orders", policy="compact")
    story.plain(A)
    story.plain(A, offset=3)
    root = story.write(tmp_path)
    if is_closed:
        (root / ".kafka_cleanshutdown").touch()
    assert ("offsets-lost" in findings(root, story)) == is_told


def test_a_clean_shutdown_leaves_recovery_points_where_logs_end(tmp_path: Path) -> None:
    """It leaves out those of logs that were not loaded yet; a broker that runs is behind with all of them."""
    story = Story()
    story.plain(A, 3)
    root = story.write(tmp_path)
    for content, is_told in {"0\n0\n": False, "0\n1\norders 0 3\n": False, "0\n1\norders 0 2\n": True}.items():
        (root / "recovery-point-offset-checkpoint").write_text(content)
        assert findings(root, story) == []
        (root / ".kafka_cleanshutdown").touch()
        assert ("checkpoint-offset" in findings(root, story)) == is_told
        (root / ".kafka_cleanshutdown").unlink()


def test_producer_ids_of_other_brokers_may_come_before_their_blocks(tmp_path: Path) -> None:
    for count, is_told in {1: True, 2: False}.items():
        story = Story()
        for broker_id in range(1, count + 1):
            fields = {"brokerId": broker_id, "brokerEpoch": 1, "endPoints": [], "features": [], "logDirs": [ID]}
            story.metadata("RegisterBrokerRecord", **fields)
        story.metadata("ProducerIdsRecord", brokerId=1, brokerEpoch=1, nextProducerId=1000)
        story.make_topic("orders")
        story.data(A, (1000, 0), 0, flags=0)
        root = story.write(tmp_path / str(count))
        (root / ".kafka_cleanshutdown").touch()
        assert ("metadata-behind" in findings(root, story)) == is_told


def test_a_store_writes_on_in_the_epoch_that_a_crash_took_with_the_log_start(tmp_path: Path) -> None:
    """A broker leads again in a higher epoch, and registers; both leave no epoch of the records that come back."""
    with open_store(tmp_path / "data", config=FEW_PARTITIONS) as store:
        store.create_topic("orders")
        for _ in range(3):
            store.producer().send("orders", b"paid").result()
        log = store.log("orders", 0)
        log.flush()
        log.delete_records(log.log_end_offset)
        shutil.copytree(tmp_path / "data", tmp_path / "crashed")
    for _ in range(2):
        with open_store(tmp_path / "crashed") as store:
            assert store.log("orders", 0).log_start_offset == 0
        assert audit_directory(str(tmp_path / "crashed"), 0).findings == ()
        with open_store(tmp_path / "crashed") as store:
            store.producer().send("orders", b"paid").result()
