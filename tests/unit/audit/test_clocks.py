"""Open transactions are judged by the clocks of coordinators, brokers and files, whatever a producer's clock says."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore import clock
from logstore.audit import directory_audit
from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import audit_directory, read_transactions
from logstore.audit.facts.times import Clock
from logstore.audit.open_transactions import Explanation, OpenTransaction, Verdict
from logstore_tools.check_commands import audit as audit_command
from logstore_tools.txns_command import command as txns_command
from tests.support.audit_story import (
    COMPLETE_COMMIT,
    EMPTY,
    NODE,
    ONGOING,
    PREPARE_COMMIT,
    STATE,
    TIMEOUT_MS,
    Story,
    topic_id_of,
)
from tests.support.audit_story_faults import AT_A, PAY, A, begin, clean, hanging_unknown
from tests.support.golden import Golden

HOUR_MS, DAY_MS, MINUTE_MS = 3_600_000, 86_400_000, 60_000
LOG_APPEND_TIME = 0x08
LOG = f"{0:020d}.log"


def at(story: Story, time: Callable[[int], int], partition: str = A, flags: int = 0) -> Story:
    """Change the timestamp of the last batch of a partition."""
    batch = story.batches[partition][-1]
    time_ms = time(batch.max_timestamp)
    changed = replace(batch, base_timestamp=time_ms, max_timestamp=time_ms, flags=batch.flags | flags)
    story.batches[partition][-1] = changed
    return story


def written(story: Story, root: Path, time_ms: int, **others: int) -> Path:
    """Write a story; all files get one time, those of a partition named in `others` another."""
    story.write(root)
    names = {name.replace("_", "-"): time for name, time in others.items()}
    for path in (*root.iterdir(), *root.glob("*/*")):
        here = names.get(path.parent.name.strip("_").replace("_", "-"), time_ms)
        os.utime(path, ns=(here * 1_000_000, here * 1_000_000))
    return root


def only(root: Path, now_ms: int) -> OpenTransaction:
    (one,) = read_transactions(str(root), now_ms)[0].open
    return one


CLOCKS = [
    pytest.param(lambda ms: ms, id="right"),
    pytest.param(lambda ms: ms + 2 * HOUR_MS, id="two hours ahead"),
    pytest.param(lambda ms: ms + 400 * DAY_MS, id="a year ahead"),
    pytest.param(lambda ms: ms * 1000, id="microseconds"),
    pytest.param(lambda ms: ms * 1_000_000, id="nanoseconds"),
    pytest.param(lambda ms: ms - 30 * DAY_MS, id="a month behind"),
    pytest.param(lambda ms: ms // 1000, id="seconds"),
    pytest.param(lambda ms: -1, id="no time"),
]


@pytest.mark.parametrize("time", CLOCKS)
def test_a_hanging_transaction_is_found_whatever_its_producers_clock_says(
    time: Callable[[int], int], tmp_path: Path
) -> None:
    story = at(hanging_unknown(), time)
    root, now_ms = written(story, tmp_path, story.now_ms + MINUTE_MS), story.now_ms + DAY_MS
    one = only(root, now_ms)
    assert one.verdict is Verdict.HANGING
    assert one.age.clock is (Clock.PRODUCER if 0 <= time(story.now_ms) <= story.now_ms else Clock.FILE)
    assert one.age_ms >= DAY_MS - 2 * MINUTE_MS
    assert "transaction-hanging" in {found.rule for found in audit_directory(str(root), now_ms).findings}
    called = CliRunner().invoke(txns_command, ["hanging", str(root), "--now", str(now_ms), "--format", "jsonl"])
    assert (called.exit_code, json.loads(called.output)["verdict"]) == (1, "hanging")


@pytest.mark.parametrize("time_ms", [0, 1000, 499_162_500_000])
def test_times_from_before_the_first_kafka_tell_nothing(time_ms: int, tmp_path: Path) -> None:
    """Tools that pack files for builds that can be repeated give them 1970, or 1985."""
    story = hanging_unknown()
    one = only(written(story, tmp_path, time_ms), story.now_ms + DAY_MS)
    assert (one.verdict, one.age.clock) == (Verdict.HANGING, Clock.PRODUCER)
    assert one.age_ms < DAY_MS + 2 * MINUTE_MS
    assert [row.judged_at for row in logstore.transactions(tmp_path)] == [None]
    said = CliRunner().invoke(txns_command, ["explain", str(tmp_path / A)]).output
    assert "by the times of files and of brokers, as of a moment that no file tells" in said


def test_metadata_tells_the_time_of_files_that_have_none(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("killed"), tmp_path / "data")
    for path in root.rglob("*"):
        os.utime(path, (0, 0))
    (segment,) = logstore.segments(root / "__cluster_metadata-0")
    assert Cluster(str(root)).settled_ms == segment.largest_timestamp - MINUTE_MS


@pytest.mark.parametrize("time", CLOCKS)
def test_a_copy_that_lacks_a_late_marker_is_not_judged(time: Callable[[int], int], tmp_path: Path) -> None:
    story = Story()
    story.state("pay", PAY, EMPTY)
    story.state("pay", PAY, ONGOING, [AT_A])
    at_first = story.now_ms
    story.data(A, PAY, 0)
    at(story, time)
    story.plain(A, 2)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A])
    story.state("pay", PAY, COMPLETE_COMMIT)
    root = written(story, tmp_path, story.now_ms, orders_0=at_first + 2000)
    assert only(root, story.now_ms + DAY_MS).verdict is Verdict.RECENT
    assert audit_directory(str(root), story.now_ms + DAY_MS).findings == () or time(at_first) > story.now_ms + HOUR_MS
    # an hour later the coordinator has gone on, and the marker is still not there
    os.utime(root / STATE / LOG, ns=(0, (story.now_ms + HOUR_MS) * 1_000_000))
    assert only(root, story.now_ms + DAY_MS).verdict is Verdict.MARKER_MISSING


def test_what_was_written_after_its_coordinators_log_was_copied_is_not_judged(tmp_path: Path) -> None:
    story = at(hanging_unknown(), lambda ms: ms - 30 * DAY_MS)
    root = written(story, tmp_path, story.now_ms, transaction_state_0=story.now_ms - 1000)
    one = only(root, story.now_ms + DAY_MS)
    assert one.verdict is Verdict.RECENT
    explanation = Explanation(one.history, [one])
    assert "make a newer copy" in explanation.advice
    assert "abort --topic" not in explanation.advice


def test_a_copy_may_have_cut_times_to_seconds(tmp_path: Path) -> None:
    story = hanging_unknown()
    second = story.now_ms // 1000 * 1000
    root = written(story, tmp_path, second)
    os.utime(root / "cleaner-offset-checkpoint", ns=(0, (second - 5000) * 1_000_000))
    assert only(root, story.now_ms + DAY_MS).verdict is Verdict.RECENT


@pytest.mark.parametrize("stamp", ["marker", "log append time"])
def test_brokers_stamps_behind_it_say_how_old_it_is(stamp: str, tmp_path: Path) -> None:
    """While the file of its segment grows, and its producer's clock is ahead."""
    story = at(hanging_unknown(), lambda ms: ms + DAY_MS)
    if stamp == "marker":
        story.data(A, (8, 0), 0)
        story.marker(A, (8, 0))
    else:
        at_end = story.now_ms
        story.plain(A)
        at(story, lambda ms: at_end, flags=LOG_APPEND_TIME)
    growing_ms = story.now_ms + DAY_MS
    root = written(story, tmp_path, story.now_ms, orders_0=growing_ms)
    one = only(root, growing_ms)
    assert one.verdict is Verdict.HANGING
    assert (one.age.clock, one.age_ms >= DAY_MS) == (Clock.BROKER, True)


def test_what_is_open_in_a_replica_that_is_out_of_sync_is_not_judged(tmp_path: Path) -> None:
    story = hanging_unknown()
    story.make_topic("orders")
    story.metadata("PartitionChangeRecord", partitionId=0, topicId=topic_id_of("orders"), isr=[2], leader=2)
    root = written(story, tmp_path, story.now_ms)
    (root / "meta.properties").write_text(NODE)
    assert only(root, story.now_ms + DAY_MS).verdict is Verdict.RECENT


@pytest.mark.parametrize("node_id", [1, 2])
def test_beside_a_running_broker_the_coordinators_log_is_read_last(node_id: int, tmp_path: Path) -> None:
    """A coordinator whose log this broker leads knew of the transaction before its data came."""
    story = hanging_unknown()
    story.make_topic("orders")
    soon_ms = clock.now_ms() + 2000  # it writes while its files are read
    root = written(story, tmp_path, soon_ms)
    (root / "meta.properties").write_text(NODE.replace("node.id=1", f"node.id={node_id}"))
    expected = Verdict.HANGING if node_id == 1 else Verdict.RECENT
    assert only(root, soon_ms).verdict is expected


def test_a_file_of_the_future_does_not_make_others_old(tmp_path: Path) -> None:
    story = hanging_unknown()
    soon_ms = clock.now_ms()
    root = written(story, tmp_path, soon_ms)
    os.utime(
        root / "meta.properties" if (root / "meta.properties").exists() else root / "cleaner-offset-checkpoint",
        ns=(0, (soon_ms + 365 * DAY_MS) * 1_000_000),
    )
    assert only(root, soon_ms).verdict is Verdict.RECENT


def test_no_age_is_negative(tmp_path: Path) -> None:
    story = Story()
    begin(story)
    story.data(A, PAY, 0)
    at(story, lambda ms: ms + DAY_MS)
    story.data(A, (55, 0), 0)
    at(story, lambda ms: ms * 1000)
    root = written(story, tmp_path, story.now_ms)
    for now_ms in (0, story.now_ms - HOUR_MS, story.now_ms + HOUR_MS):
        found = read_transactions(str(root), now_ms)[0].open
        assert len(found) == 2
        assert all(one.age_ms >= 0 for one in found)


def test_a_transaction_is_judged_as_of_the_newest_file_and_says_so(tmp_path: Path) -> None:
    story = Story()
    begin(story)
    story.data(A, PAY, 0)
    root = written(story, tmp_path, story.now_ms)
    called = CliRunner().invoke(txns_command, ["explain", str(root / A), "--now", str(story.now_ms + 5 * DAY_MS)])
    assert "was not done, and within its timeout, when the newest file here was written" in called.output
    assert "age               5 d 2 s by its coordinator's clock" in called.output
    assert "by its coordinator's clock, as of 2023-" in called.output
    assert "wait:" not in called.output
    young = CliRunner().invoke(txns_command, ["explain", str(root / A), "--now", str(story.now_ms + 1000)])
    assert "wait: its coordinator aborts it" in young.output


@pytest.mark.parametrize("damaged", ["partition", "coordinator"])
def test_a_marker_may_have_been_in_damaged_bytes(damaged: str, tmp_path: Path) -> None:
    story = Story()
    begin(story)
    story.data(A, PAY, 0)
    story.plain(A)
    story.marker(A, PAY)
    story.plain(A)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A])
    story.state("pay", PAY, COMPLETE_COMMIT)
    story.data(A, (55, 0), 0)
    root = story.write(tmp_path)
    path = root / (A if damaged == "partition" else STATE) / LOG
    content = bytearray(path.read_bytes())
    sizes = [len(batch.to_bytes()) for batch in story.batches[path.parent.name]]
    content[sum(sizes[:2]) + 70] ^= 1  # the marker, or the decision
    path.write_bytes(content)
    called = CliRunner().invoke(txns_command, ["explain", str(root / A), "--now", str(story.now_ms + DAY_MS)])
    assert called.exit_code == 1
    assert "log-crc" in called.stderr
    assert "are damaged, and" in called.stdout
    assert "do not abort it yet" in called.stdout
    assert "are not in this directory" not in called.stdout


def test_audit_report_and_txns_count_the_same_that_hold_partitions_back(tmp_path: Path) -> None:
    story = Story()
    begin(story)
    story.data(A, PAY, 0)
    story.data("orders-1", PAY, 0)
    root, now = story.write(tmp_path / "a name"), ["--now", str(story.now_ms + 10 * TIMEOUT_MS)]
    (root / ".kafka_cleanshutdown").write_text("")
    called = CliRunner().invoke(audit_command, [str(root), *now])
    assert (
        f"2 open transactions hold back 2 partitions: `logstore txns list '{root}'`; 2 of them overdue" in called.output
    )
    row = json.loads(CliRunner().invoke(audit_command, [str(root), *now, "--format", "jsonl"]).output.splitlines()[0])
    assert (row["openCount"], row["overdueCount"], row["heldBackCount"]) == (2, 2, 2)
    soon = CliRunner().invoke(audit_command, [str(root), "--now", str(story.now_ms + 1000)])
    assert "2 open transactions hold back 2 partitions" in soon.output
    assert "; none of them overdue" in soon.output
    assert "hold back" not in CliRunner().invoke(audit_command, [str(clean().write(tmp_path / "clean")), *now]).output


def test_only_the_timestamps_that_retention_goes_by_are_too_far_ahead(tmp_path: Path) -> None:
    def rules_of(story: Story, name: str) -> set[str]:
        root = written(story, tmp_path / name, story.now_ms)
        return {found.rule for found in audit_directory(str(root), story.now_ms).findings}

    def ahead(ms: int, policy: str | None = None, **config: str) -> Story:
        story = Story()
        if config or policy:
            story.make_topic("orders", policy=policy)
            for name, value in config.items():
                name = name.replace("_", ".")
                story.metadata("ConfigRecord", resourceType=2, resourceName="orders", name=name, value=value)
        story.plain(A)
        return at(story, lambda now: now + ms)

    assert "timestamp-future" in rules_of(ahead(2 * HOUR_MS), "ahead")
    assert "timestamp-future" in rules_of(ahead(2 * HOUR_MS, "compact,delete"), "both")
    assert "timestamp-future" not in rules_of(ahead(HOUR_MS // 2), "a little")
    assert "timestamp-future" not in rules_of(ahead(2 * HOUR_MS, "compact"), "compacted")
    assert "timestamp-future" not in rules_of(ahead(2 * HOUR_MS, retention_ms="-1"), "kept")


def test_decisions_count_whatever_the_clock_of_the_first_record(tmp_path: Path) -> None:
    """A producer's clock that is ahead made each decision one on an earlier topic of the name."""
    story = Story()
    story.state("pay", PAY, EMPTY)
    story.state("pay", PAY, ONGOING, [AT_A])
    story.data(A, PAY, 0)
    at(story, lambda ms: ms * 1000)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A])
    story.state("pay", PAY, COMPLETE_COMMIT)
    story.state("pay", PAY, EMPTY)
    root = written(story, tmp_path, story.now_ms + HOUR_MS, orders_0=story.now_ms + 2 * MINUTE_MS)
    assert only(root, story.now_ms + DAY_MS).verdict is Verdict.MARKER_MISSING


def test_a_verdict_that_only_the_last_reading_saw_is_recent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = hanging_unknown()
    root, now_ms = story.write(tmp_path), story.now_ms + DAY_MS
    assert only(root, now_ms).verdict is Verdict.HANGING
    monkeypatch.setattr(directory_audit, "read_until_stable", lambda path, read, findings_of, beside=(): (read(), ()))
    assert only(root, now_ms).verdict is Verdict.RECENT
    audited = audit_directory(str(root), now_ms)
    assert (audited.findings, [one.verdict for one in audited.transactions.open]) == ((), [Verdict.RECENT])
    called = CliRunner().invoke(txns_command, ["explain", str(root / A), "--now", str(now_ms)])
    assert (called.exit_code, "no transaction is open" in called.output) == (1, False)


def test_what_is_decided_while_partitions_are_read_is_not_judged(tmp_path: Path) -> None:
    story = Story()
    story.now_ms = clock.now_ms()
    story.state("pay", PAY, EMPTY)
    story.state("pay", PAY, ONGOING, [AT_A])
    story.data(A, PAY, 0)
    story.state("pay", PAY, PREPARE_COMMIT, [AT_A])
    story.state("pay", PAY, COMPLETE_COMMIT)
    written_ms = story.now_ms + HOUR_MS // 2
    root = written(story, tmp_path, written_ms, orders_0=story.now_ms - 3000)
    assert only(root, written_ms + DAY_MS).verdict is Verdict.RECENT
    assert audit_directory(str(root), written_ms + DAY_MS).findings == ()
